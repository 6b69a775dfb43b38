// Reads a stream once before it is exported: tar needs to know how long a file is before it begins.

import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { isJsonContentType } from "../../../protocol/content-type.js";
import { messagesLength } from "../../../protocol/json/json-frame.js";
import { EXIT } from "../../command/verb.js";
import type { Failure } from "../remote/failure.js";
import { streamCalled, type Session } from "../session/session.js";
import { lifetimeOf } from "../streams/info.js";
import type { ListedStream } from "../streams/listing.js";
import { cutIntoPieces } from "./piece-cuts.js";
import { StreamData } from "./stream-data.js";
import type { ArchivedFork, ArchivedPiece, StreamHead } from "./stream-head.js";

/** What a first reading found. */
export interface Surveyed {
  readonly kind: "surveyed";
  readonly head: StreamHead;
  /** The data file, where one answer had all of it; `null` where it is to be read again. */
  readonly data: Buffer | null;
  /** Where the data file begins: an offset, and bytes behind it. */
  readonly from: string;
  readonly skip: number;
  /** Bytes of the whole stream, with what a fork has from its source. */
  readonly whole: number;
}

/** The stream that a fork begins as, and how much of that is in the archive. */
export interface Source {
  readonly name: string;
  readonly whole: number;
}

const LINE_FEED = 0x0a;

/**
 * Reads `stream` to its tail. Of a fork only what differs from its source is kept: what both begin with is the fork's
 * for certain, whoever appended it.
 */
export async function survey(
  session: Session,
  stream: ListedStream,
  source: Source | null,
  onBytes: (bytes: number) => void,
): Promise<Surveyed | Failure> {
  const { name, contentType } = stream;
  const isJson = isJsonContentType(contentType);
  const data = new StreamData(session, name, contentType);
  const shared = source === null ? null : new SharedBeginning(session, source, contentType);
  const hash = createHash("sha256");
  const pieces: ArchivedPiece[] = [];
  let [from, skip, whole, closed] = ["-1", 0, 0, stream.closed];
  let kept: Buffer | null = Buffer.alloc(0);
  for (;;) {
    const part = await data.next();
    if (part === null) break;
    if (part.kind === "failure") return part;
    const common = shared === null ? 0 : await shared.take(part.bytes);
    if (typeof common !== "number") return common;
    const own = part.bytes.subarray(common);
    if (pieces.length === 0) [from, skip] = own.length === 0 ? [part.next, 0] : [part.from, common];
    if (own.length > 0) {
      hash.update(own);
      kept = pieces.length === 0 ? own : null;
      for (const piece of cutIntoPieces(own, isJson)) pieces.push([piece.length, crc32(piece)]);
    }
    whole += part.bytes.length;
    closed = part.isClosed;
    onBytes(part.bytes.length);
  }
  const bytes = pieces.reduce((sum, [length]) => sum + length, 0);
  const fork = shared?.fork ?? null;
  const lifetime = stream.bytes === null ? await lifetimeAfterRead(session, name) : stream;
  if ("kind" in lifetime) return lifetime;
  const { ttlSeconds } = lifetime;
  // Where there is a TTL, the time of expiry is what the last use has made of it.
  const expiresAt = ttlSeconds === null ? lifetime.expiresAt : null;
  const sha256 = hash.digest("hex");
  const head = { format: 1, name, contentType, ttlSeconds, expiresAt, closed, fork, bytes, pieces, sha256 } as const;
  return { kind: "surveyed", head, data: kept, from, skip, whole };
}

/**
 * Of a stream that the list does not tell of. A head says how much of a time to live is left: all of it, as the stream
 * was read just now, unless the server counts from the creation.
 */
async function lifetimeAfterRead(
  session: Session,
  name: string,
): Promise<Pick<ListedStream, "ttlSeconds" | "expiresAt"> | Failure> {
  const asked = { method: "HEAD", target: session.server.target(name) } as const;
  const head = await session.expect([200], streamCalled(name), asked);
  return head.kind === "failure" ? head : lifetimeOf(head);
}

/** Finds how much a fork and its source begin with alike. */
class SharedBeginning {
  readonly #name: string;
  readonly #source: StreamData;
  readonly #hash = createHash("sha256");
  readonly #isJson: boolean;
  /** How much of the source may still be compared. */
  #left: number;
  #bytes: Buffer = Buffer.alloc(0);
  #hasEnded = false;
  /** Messages that both have, or bytes. */
  #units = 0;

  constructor(session: Session, { name, whole }: Source, contentType: string) {
    this.#name = name;
    this.#source = new StreamData(session, name, contentType);
    this.#isJson = isJsonContentType(contentType);
    this.#left = whole;
  }

  /** What both begin with; `null` for nothing. Called once, when all was taken. */
  get fork(): ArchivedFork | null {
    return this.#units === 0 ? null : { from: this.#name, at: this.#units, sha256: this.#hash.digest("hex") };
  }

  /** How many bytes of the fork's next part its source has too. */
  async take(part: Buffer): Promise<number | Failure> {
    let common = 0;
    while (common < part.length && !this.#hasEnded) {
      if (this.#bytes.length === 0) {
        const next = await this.#source.next();
        // A source that is deleted meanwhile has left its fork all the bytes.
        const isGone = next?.kind === "failure" && next.status === EXIT.missing;
        if (next?.kind === "failure" && !isGone) return next;
        this.#bytes = next?.kind === "data" ? next.bytes.subarray(0, this.#left) : this.#bytes;
        this.#left -= this.#bytes.length;
        this.#hasEnded = this.#bytes.length === 0;
        continue;
      }
      const length = Math.min(this.#bytes.length, part.length - common);
      const alike = alikeLength(this.#bytes.subarray(0, length), part.subarray(common, common + length));
      common += alike;
      this.#bytes = this.#bytes.subarray(alike);
      this.#hasEnded = alike < length;
    }
    const whole = this.#isJson ? part.lastIndexOf(LINE_FEED, common - 1) + 1 : common;
    const kept = common === 0 ? 0 : whole;
    const alike = part.subarray(0, kept);
    this.#hash.update(alike);
    this.#units += this.#isJson ? messagesLength(alike, Infinity).count : kept;
    return kept;
  }
}

/** How many bytes two buffers of one length begin with alike. */
function alikeLength(one: Buffer, other: Buffer): number {
  if (one.equals(other)) return one.length;
  let at = 0;
  while (one[at] === other[at]) at += 1;
  return at;
}
