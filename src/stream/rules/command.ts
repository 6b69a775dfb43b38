import type { JsonFrame } from "../../protocol/json/json-frame.js";
import type { ParsedOffset, TokenPlace } from "../../protocol/offset.js";
import type { ProducerStamp } from "../../storage/storage.js";

/** The part of a create that names the stream to fork and the place (docs/api.md, Fork a stream). */
export interface ForkRequest {
  /** The source's name. */
  readonly source: string;
  /** `Stream-Fork-Offset` as sent and as read; `null` for the source's tail. */
  readonly offset: string | null;
  readonly place: ParsedOffset | null;
  /** How many bytes, or messages of a JSON stream, after the offset. */
  readonly subOffset: number;
}

/** A body as it was sent, or, when it was checked while it arrived, as a JSON stream stores it, and not empty. */
export type Body = Buffer | JsonFrame;

/** The head of a request to create a stream (docs/api.md, Create a stream). */
export interface CreateHead {
  /** As sent; `null` when the header is absent. */
  readonly contentType: string | null;
  readonly ttlSeconds: number | null;
  readonly expiresAtMs: number | null;
  readonly closed: boolean;
  /** `null` for a stream that begins empty. */
  readonly fork: ForkRequest | null;
}

/** A request to create a stream. */
export interface CreateCommand extends CreateHead {
  /** The initial content; empty when there is none. */
  readonly body: Body;
}

/** The head of a request to append, to close, or both (docs/api.md, Append). */
export interface AppendHead {
  readonly contentType: string | null;
  readonly closes: boolean;
  readonly producer: ProducerStamp | null;
  readonly seq: string | null;
  /** Where the stream must end for it, from `If-Match`; `null` where that may be anywhere. */
  readonly ifMatch: TokenPlace | null;
}

/** A request to append, to close, or both. */
export interface AppendCommand extends AppendHead {
  readonly body: Body;
}
