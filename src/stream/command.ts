import type { ParsedOffset } from "../protocol/offset.js";
import type { ProducerStamp } from "../storage/storage.js";

/** What a create says of the stream that is to be forked (protocol: Forks). */
export interface ForkRequest {
  /** The source's name. */
  readonly source: string;
  /** `Stream-Fork-Offset` as sent and as read; `null` for the source's tail. */
  readonly offset: string | null;
  readonly place: ParsedOffset | null;
  /** So many bytes, or messages of a JSON stream, behind the offset. */
  readonly subOffset: number;
}

/** A request to create a stream, as the protocol's headers say it (specification 4.1). */
export interface CreateCommand {
  /** As sent; `null` when the header is absent. */
  readonly contentType: string | null;
  readonly ttlSeconds: number | null;
  readonly expiresAtMs: number | null;
  readonly closed: boolean;
  /** `null` for a stream that begins empty. */
  readonly fork: ForkRequest | null;
  /** The initial content; empty when there is none. */
  readonly body: Buffer;
}

/** A request to append, to close, or both (specification 4.2 and 4.3). */
export interface AppendCommand {
  readonly contentType: string | null;
  readonly body: Buffer;
  readonly closes: boolean;
  readonly producer: ProducerStamp | null;
  readonly seq: string | null;
}
