import { createServer } from "../../src/server.js";
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
