// Finds the name that a request has across servers, or makes one.

import { randomBytes } from "node:crypto";
import { ID_ENDS } from "../encoding/head.js";

/** Printable, without what would need an escape in a header or in JSON. */
const REQUEST_ID = /^[A-Za-z0-9._~:/+=@-]{1,128}$/;
/** Version, trace, parent and flags (https://www.w3.org/TR/trace-context/); all zeros are no trace. */
const TRACEPARENT = /^[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?$/;

/** What a request says of itself. */
export interface NamedRequest {
  /** From `X-Request-Id`. */
  readonly requestId: string | null;
  readonly traceparent: string | null;
}

/**
 * The id that a client or a proxy gave a request: its `X-Request-Id`, or the trace of its `traceparent`. At most 128
 * characters; `null` where there is none, or none that can be used.
 */
export function givenId({ requestId, traceparent }: NamedRequest): string | null {
  if (requestId !== null && REQUEST_ID.test(requestId)) return requestId;
  return traceparent === null ? null : (TRACEPARENT.exec(traceparent)?.[1] ?? null);
}

/** Makes ids that no other process makes. They do not tell how many requests came between two of them. */
export class RequestIds {
  /** The last id but for its last digits, and the number of those in `ID_ENDS`. */
  start = "";
  number = 0;
  /** The ends, in the order in which they are used with this start. */
  readonly #order: Uint16Array = Uint16Array.from(ID_ENDS.keys());
  #at = ID_ENDS.length;

  /** Goes on to the next. */
  next(): void {
    if (this.#at === ID_ENDS.length) this.#begin();
    this.number = this.#order[this.#at] ?? 0;
    this.#at += 1;
  }

  #begin(): void {
    this.#at = 0;
    this.start = `${randomBytes(8).toString("hex")}-`;
    const order = this.#order;
    for (const [at, random] of new Uint16Array(new Uint8Array(randomBytes(2 * order.length)).buffer).entries()) {
      const other = random % order.length;
      [order[at], order[other]] = [order[other] ?? 0, order[at] ?? 0];
    }
  }
}
