import { createServer } from "../../src/server.js";
import { append, created, forked, openEngine } from "./engine.js";
import { tempDir } from "./temp-dir.js";

/** A log that nobody reads. */
export const NO_LOG = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/** A directory with one stream, `a/b`, that says `hello`; no server has it open any more. */
export async function closedDirectory(): Promise<string> {
  const dir = tempDir();
  const server = await createServer({ dir, port: 0, journalBytes: 65536, log: NO_LOG });
  await fetch(`${server.url}a/b`, { method: "PUT", headers: { "Content-Type": "text/plain" }, body: "hello" });
  await server.close();
  return dir;
}

/** A directory with `source`, its fork `left` and that one's fork `leaf`, and their ids; nobody has it open any more. */
export async function closedFamily(): Promise<{
  readonly dir: string;
  readonly ids: { readonly source: string; readonly left: string; readonly leaf: string };
}> {
  const { dir, storage } = await openEngine();
  const source = await created(storage, "source", "x".repeat(3000));
  await append(storage, source, "y".repeat(3000));
  const left = await forked(storage, source, "left", 4000, "left");
  const leaf = await forked(storage, left, "leaf", 2000, "leaf");
  await storage.close();
  return { dir, ids: { source: source.id, left: left.id, leaf: leaf.id } };
}
