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

/** Makes ids that no other process makes. */
export class RequestIds {
  /** The last id but for its last digits, and the number of those in `ID_ENDS`. */
  start = "";
  number: number = ID_ENDS.length - 1;
  readonly #boot = `${randomBytes(6).toString("hex")}-`;
  #thousands = 0;

  /** Goes on to the next. */
  next(): void {
    this.number += 1;
    if (this.number < ID_ENDS.length) return;
    this.number = 0;
    this.#thousands += 1;
    this.start = this.#boot + this.#thousands;
  }
}
