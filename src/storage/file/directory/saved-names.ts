// The names of all streams, as a clean end leaves them for the next start (docs/format.md, The names).

import { isSystemError, readWhole, removeFile } from "../disk/files.js";
import { replaceFile } from "../disk/replacement.js";
import { crc32 } from "../format/crc32.js";
import { FORMAT } from "../format/sidecar.js";
import type { DataDirectory } from "./directory.js";

/** Bytes that are decoded in one turn of the event loop. */
const PIECE_BYTES = 256 * 1024;
const LINE_END = 0x0a;

/** Saves names that are in order, as they are after the journal's `batch`. */
export async function saveNames(directory: DataDirectory, batch: number, names: readonly string[]): Promise<void> {
  const { files, layout } = directory;
  // No name has a line break in it.
  const text = Buffer.from(`${names.join("\n")}\n`);
  await replaceFile(files, layout.names, Buffer.concat([Buffer.from(headOf(directory, batch, text)), text]));
}

/** Takes the saved names away; `null` where there are none, or they are not those after `batch`. */
export async function takeSavedNames(directory: DataDirectory, batch: number): Promise<string[] | null> {
  const { files, layout } = directory;
  try {
    const bytes = await readWhole(files, layout.names);
    if (bytes === null) return null;
    await removeFile(files, layout.names);
    const text = bytes.subarray(bytes.indexOf(LINE_END) + 1);
    const head = bytes.toString("latin1", 0, bytes.length - text.length);
    return head === headOf(directory, batch, text) ? await linesOf(text) : null;
  } catch (error) {
    // The directories have the names too.
    if (isSystemError(error)) return null;
    throw error;
  }
}

function headOf({ directoryId }: DataDirectory, batch: number, text: Buffer): string {
  const sum = crc32(text).toString(16).padStart(8, "0");
  return `${JSON.stringify({ format: FORMAT, directory: directoryId.toString("hex"), batch, crc32: sum })}\n`;
}

async function linesOf(text: Buffer): Promise<string[]> {
  const lines: string[] = [];
  for (let at = 0; at < text.length;) {
    const end = text.indexOf(LINE_END, Math.min(at + PIECE_BYTES, text.length - 1)) + 1;
    for (const line of text.toString("utf8", at, end - 1).split("\n")) lines.push(line);
    at = end;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  return lines;
}
