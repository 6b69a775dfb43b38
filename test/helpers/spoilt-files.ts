import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The one file under `dir` whose path ends like this; what was set aside does not count. */
export function fileIn(dir: string, end: string): string {
  const paths = readdirSync(dir, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(end) && !path.startsWith("damaged"));
  assert.equal(paths.length, 1, `${paths.length} files end with ${end}`);
  return join(dir, paths[0] ?? "");
}

/** Flips one bit of a file's byte at `offset`. */
export function flipBit(path: string, offset: number): void {
  const bytes = readFileSync(path);
  bytes.writeUInt8(bytes.readUInt8(offset) ^ 4, offset);
  writeFileSync(path, bytes);
}

/** Turns every bit of a file's byte at `offset` around. */
export function turnByte(path: string, offset: number): void {
  const bytes = readFileSync(path);
  bytes[offset] = (bytes[offset] ?? 0) ^ 0xff;
  writeFileSync(path, bytes);
}

/** Writes nonsense over the middle of a file: more than one byte is wrong. */
export function spoil(path: string): void {
  const bytes = readFileSync(path);
  bytes.fill("?", 60, 110);
  writeFileSync(path, bytes);
}
