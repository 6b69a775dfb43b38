import { Random } from "../helpers/random.js";
import type { Incarnation } from "./model.js";
import type { ProducerStamp } from "../../src/storage/storage.js";

/** How much later than its TTL a stream may go: reads are noted at most this often. */
export const MAX_ROUND_MS = 500;

/** One append, close or first content, with all its retries. */
export interface Operation {
  readonly id: number;
  readonly name: string;
  readonly body: Buffer;
  /** What it is in the stream. */
  readonly stored: Buffer;
  readonly closes: boolean;
  readonly producer: ProducerStamp | null;
  readonly seq: string | null;
  readonly invokedAt: number;
  /** When it was sent first, in milliseconds since 1970. */
  sentMs: number;
  /** When the last try was answered or cut off; `Infinity` while one is under way. */
  endedAt: number;
  inFlight: number;
  tries: number;
  /** The checks, in the answers' tokens, of the incarnations that acknowledged it as new. */
  readonly takenBy: Set<number>;
  /** The stream that it is in or can only be in. */
  inside: Incarnation | null;
  acked: boolean;
  /** Where it was acknowledged. */
  from: number | null;
  /** Every try was refused for sure: it is not there. */
  refused: boolean;
  /** A try was cut off, so that it may be there. */
  maybe: boolean;
}

/** A client with a producer id: it tries again until each of its appends is acknowledged, in order. */
export interface Producer {
  readonly id: string;
  epoch: number;
  nextSeq: number;
  readonly unacked: Operation[];
  lastAcked: Operation | null;
}

/** One try of an append on its way. */
export interface Try {
  /** The tick and the time at which it was sent. */
  readonly since: number;
  readonly sentMs: number;
  readonly isRetry: boolean;
  /** The streams that may have been there then. */
  readonly before: readonly Incarnation[];
  readonly producer: Producer | null;
  /** Whether no earlier append of the producer waits for its acknowledgement. */
  readonly isNext: boolean;
}

/** The bodies that streams of a kind get. */
export type PayloadKind = "json" | "text" | "binary";

/** A body that says whose it is, and what it becomes in the stream. */
export function payloadOf(id: number, kind: PayloadKind, length: number): { readonly body: Buffer; readonly stored: Buffer } {
  const mark = `#${String(id).padStart(8, "0")}`;
  const random = new Random(id);
  if (kind === "json") {
    const first = JSON.stringify({ op: mark, fill: "j".repeat(length) });
    if (!random.chance(0.3)) return { body: Buffer.from(` ${first}\n`), stored: Buffer.from(`${first},\n`) };
    const second = JSON.stringify(["more", id]);
    return { body: Buffer.from(`[${first} , ${second}]`), stored: Buffer.from(`${first},\n${second},\n`) };
  }
  const fill = Buffer.alloc(length, kind === "text" ? `${id} ` : "");
  // No byte of the filling looks like the mark of another operation.
  if (kind === "binary") for (let at = 0; at < length; at += 1) fill[at] = 128 + ((Math.imul(at + 1, id * 2 + 1) >>> 3) % 128);
  const body = Buffer.concat([Buffer.from(mark), fill]);
  return { body, stored: body };
}
