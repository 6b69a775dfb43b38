import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { decodeFrame } from "../../src/storage/file/format/record.js";
import type { StoredStream } from "../../src/storage/storage.js";
import { append, bytesOf, crash, created, openEngine } from "./engine.js";
import { Barrier } from "./watched-files.js";

/** The paths of a directory's journal files, oldest first. */
export function journalFiles(dir: string): string[] {
  return readdirSync(join(dir, "journal"))
    .sort()
    .map((name) => join(dir, "journal", name));
}

/** A directory that a crash left with three journal files, all with records of a stream whose sidecar was never written. */
export async function crashedWithThreeFiles(): Promise<{ readonly dir: string; readonly stream: StoredStream }> {
  const engine = await openEngine();
  engine.files.gate = ({ kind, path }) => (kind === "rename" && path.includes("meta.json") ? new Barrier().opened : undefined);
  const stream = await created(engine.storage, "s");
  for (let index = 0; journalFiles(engine.dir).length < 3; index += 1) await append(engine.storage, stream, bytesOf(1500, index));
  return { dir: await crash(engine), stream };
}

/** Where the frames of a journal file begin, and where the last one ends. */
export function framesOf(path: string): { readonly offsets: readonly number[]; readonly end: number } {
  const bytes = readFileSync(path);
  const offsets: number[] = [];
  let end = 0;
  for (let frame = decodeFrame(bytes, 0); frame !== null; frame = decodeFrame(bytes, end)) {
    offsets.push(end);
    end = frame.nextOffset;
  }
  return { offsets, end };
}
