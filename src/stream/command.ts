import type { ProducerStamp } from "../storage/storage.js";

/** A request to create a stream, as the protocol's headers say it (specification 4.1). */
export interface CreateCommand {
  /** As sent; `null` when the header is absent. */
  readonly contentType: string | null;
  readonly ttlSeconds: number | null;
  readonly expiresAtMs: number | null;
  readonly closed: boolean;
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
