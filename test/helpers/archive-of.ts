import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { formatHead, type ArchivedFork, type StreamHead } from "../../src/cli/client/archive/stream-head.js";
import { ARCHIVE_END, tarHeader, tarPadding } from "../../src/cli/client/archive/tar.js";

/** An archive of one JSON stream with these lines. */
export function archiveOf(text: string, more: Partial<StreamHead> = {}): Buffer {
  const data = Buffer.from(text);
  const pieces: StreamHead["pieces"] = data.length === 0 ? [] : [[data.length, crc32(data)]];
  const sha256 = createHash("sha256").update(data).digest("hex");
  const facts = { ttlSeconds: null, expiresAt: null, closed: false, fork: null };
  const head = Buffer.from(
    formatHead({ format: 1, name: "a", contentType: "application/json", ...facts, bytes: data.length, pieces, sha256, ...more }),
  );
  const file = (name: string, bytes: Buffer) => [tarHeader({ name, size: bytes.length }, 0), bytes, tarPadding(bytes.length)];
  return Buffer.concat([...file("1.json", head), ...file("1.data", data), ARCHIVE_END]);
}

/** A fork of `from` as an archive has it, which begins with `inherited`: so many messages of it, or bytes. */
export function forkOf(from: string, at: number, inherited: string): ArchivedFork {
  return { from, at, sha256: createHash("sha256").update(inherited).digest("hex") };
}
