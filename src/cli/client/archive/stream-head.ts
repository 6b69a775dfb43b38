// The JSON head of a stream in an archive (docs/format.md, An archive of streams).

import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { checkedName } from "../../../protocol/names/stream-name.js";

/** Bytes of the data file that become one append, and their CRC-32. Of JSON a piece is whole messages. */
export type ArchivedPiece = readonly [bytes: number, crc32: number];

/** The stream that a fork begins as, earlier in the archive. */
export interface ArchivedFork {
  readonly from: string;
  /** How many messages of it, or bytes. */
  readonly at: number;
  /** Of these as a data file has them, in hexadecimal. */
  readonly sha256: string;
}

/** What an archive says of a stream, beside its data. */
export interface StreamHead {
  readonly format: 1;
  readonly name: string;
  readonly contentType: string;
  readonly ttlSeconds: number | null;
  /** `null` where it has a TTL, or lives for ever. */
  readonly expiresAt: string | null;
  readonly closed: boolean;
  readonly fork: ArchivedFork | null;
  /** Of the data file, which begins behind what a fork has from its source. */
  readonly bytes: number;
  readonly pieces: readonly ArchivedPiece[];
  /** Of the data file, in hexadecimal. */
  readonly sha256: string;
}

/** The largest head: it has an entry for each MiB of data. */
export const MAX_HEAD_BYTES = 64 * 1024 * 1024;
/** The largest piece: an append as large as a server may be told to take. */
export const MAX_PIECE_BYTES = 256 * 1024 * 1024;

/** The text of a head: its last member is a checksum of all others. */
export function formatHead(head: StreamHead): string {
  return `${JSON.stringify({ ...head, crc32: checksumOf(head) })}\n`;
}

/** The head that a text is, or what is wrong with it. */
export function parseHead(text: string): StreamHead | { readonly fault: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { fault: "is no JSON" };
  }
  if (typeof value !== "object" || value === null) return { fault: "is no object" };
  const members: Readonly<Record<string, unknown>> = { ...value };
  const head = headOf(members);
  if ("fault" in head || members["crc32"] === checksumOf(head)) return head;
  return { fault: "is damaged: it does not have its checksum" };
}

function checksumOf(head: StreamHead): number {
  return crc32(JSON.stringify(head));
}

function headOf(members: Readonly<Record<string, unknown>>): StreamHead | { readonly fault: string } {
  const { format, name, contentType, ttlSeconds, expiresAt, closed, fork, bytes, pieces, sha256 } = members;
  if (format !== 1) return { fault: `has the format ${JSON.stringify(format)}, which this version does not know` };
  if (typeof name !== "string") return { fault: "has no name" };
  const checked = checkedName(name);
  if ("fault" in checked) return { fault: `has a name that is none: ${checked.fault}` };
  if (typeof contentType !== "string" || typeof closed !== "boolean" || typeof sha256 !== "string")
    return { fault: "lacks contentType, closed or sha256" };
  if (!isCountOrNull(ttlSeconds)) return { fault: "has a ttlSeconds that is no number" };
  if (expiresAt !== null && typeof expiresAt !== "string") return { fault: "has an expiresAt that is no time" };
  const origin = forkOf(fork);
  if (origin === undefined) return { fault: "has a fork that is none" };
  const known = piecesOf(pieces);
  if (known === null || !isCount(bytes) || known.reduce((sum, [length]) => sum + length, 0) !== bytes)
    return { fault: "has pieces that are not its bytes" };
  return { format, name, contentType, ttlSeconds, expiresAt, closed, fork: origin, bytes, pieces: known, sha256 };
}

/** Who appends the stream's data: the same for the same data, so that a second import goes on with the first. */
export function importerOf({ name, fork, sha256, pieces }: StreamHead): string {
  const hash = createHash("sha256").update(JSON.stringify([name, fork, sha256, pieces]));
  return `import-${hash.digest("hex").slice(0, 40)}`;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function isCountOrNull(value: unknown): value is number | null {
  return value === null || isCount(value);
}

function forkOf(value: unknown): ArchivedFork | null | undefined {
  if (typeof value !== "object" || value === null) return value === null ? null : undefined;
  const { from, at, sha256 }: Readonly<Record<string, unknown>> = { ...value };
  if (typeof from !== "string" || "fault" in checkedName(from)) return undefined;
  return isCount(at) && typeof sha256 === "string" ? { from, at, sha256 } : undefined;
}

function piecesOf(value: unknown): readonly ArchivedPiece[] | null {
  if (!Array.isArray(value)) return null;
  const pieces: ArchivedPiece[] = [];
  for (const piece of value) {
    const [bytes, crc]: unknown[] = Array.isArray(piece) ? piece : [];
    if (!isCount(bytes) || bytes === 0 || bytes > MAX_PIECE_BYTES || !isCount(crc)) return null;
    pieces.push([bytes, crc]);
  }
  return pieces;
}
