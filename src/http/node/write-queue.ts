// Counts the bytes of a connection that the client has not taken.
//
// Private names: `_handle` of a socket, with `_parent` under TLS, and `writeQueueSize` of that. Node's public
// `writableLength` shrinks only when a whole write is out, so that a client which slowly reads a large answer would
// seem to stand still, and would be cut off. Where a version of Node lacks them, only `writableLength` counts.

import type { Line } from "./message.js";

/** How many written bytes the system has not taken. */
interface WriteQueue {
  readonly writeQueueSize?: number;
}

/** Under TLS only the connection below has a queue. */
interface QueuedSocket {
  readonly _handle?: (WriteQueue & { readonly _parent?: WriteQueue }) | null;
}

/** How many written bytes of a connection are not sent yet: shrinks even when the client takes part of one write. */
export function unsentBytesOf(socket: Line): number {
  if (socket.unsentBytes !== undefined) return socket.unsentBytes;
  const { _handle: handle } = socket as Line & QueuedSocket; // as its type says
  return socket.writableLength + (handle?._parent?.writeQueueSize ?? handle?.writeQueueSize ?? 0);
}
