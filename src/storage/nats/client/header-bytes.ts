// Headers as the client of NATS has them before it takes them apart. Private names: `_rdata` of a message has its
// headers and its data, and `hdr` of its `_msg` how many bytes of that are headers, below 0 where there are none. Where
// the client lacks them, headers are asked for name by name.

import type { NatsMessage } from "./nats-client.js";

/** The bytes of a message's headers: none where it has none, `null` where the client does not show them. */
export function headerBytesOf(message: NatsMessage): Buffer | null {
  const { _rdata: bytes, _msg: place } = message as NatsMessage & Partial<Internals>; // looked at right below
  if (!(bytes instanceof Uint8Array) || typeof place?.hdr !== "number") return null;
  return Buffer.from(bytes.buffer, bytes.byteOffset, Math.max(place.hdr, 0));
}

interface Internals {
  readonly _rdata: unknown;
  readonly _msg: { readonly hdr: unknown };
}
