import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { FileStream } from "../../src/storage/file/memory/file-stream.js";
import { segmentPath, sidecarPath } from "../../src/storage/file/format/layout.js";
import { decodeSidecar, type Sidecar } from "../../src/storage/file/format/sidecar.js";

/** What a segment of a stream has. */
export function segmentOf(stream: FileStream, start = 0): Buffer {
  return readFileSync(segmentPath(stream.directory, start));
}

/** What the sidecar of a stream says. */
export function sidecarOf(stream: FileStream): Sidecar {
  const read = decodeSidecar(readFileSync(sidecarPath(stream.directory)));
  assert.ok(read.kind === "sound");
  return read.sidecar;
}
