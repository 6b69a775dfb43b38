import { splitTarget } from "./target.js";

/**
 * What a host has taken off in front of `path`, as `app.use("/api", streams)` does; empty where that is nothing.
 * Express and Connect keep the target as it was sent in `originalUrl`.
 */
export function mountOf(req: object, path: string): string {
  if (!("originalUrl" in req) || typeof req.originalUrl !== "string") return "";
  const original = splitTarget(req.originalUrl).path;
  if (!original.startsWith("/")) return "";
  if (original.endsWith(path)) return original.slice(0, original.length - path.length);
  // Where nothing is left of the path, they make a `/` of it.
  return path === "/" ? original : "";
}
