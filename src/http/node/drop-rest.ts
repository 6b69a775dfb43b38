// Drops the requests of a connection that come after its last answer.
//
// Private names: `parser` of a socket and `onIncoming` of that. Node makes a ServerResponse for every request and keeps
// it until those before it are answered: 3,600 for one read of the shortest requests, nearly 11 MiB. Nothing public
// stops that but the end of the connection. Where a version of Node lacks the names, nothing is dropped.

import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";

/** What a client may send after its last request, and its answers still come. */
const MAX_DROPPED_BYTES = 1024 * 1024;

/** A request with Node's private mark of one that changes the protocol. */
type Incoming = IncomingMessage & { upgrade?: boolean | null };

/** A socket with Node's private members for its parser. */
interface ParsedSocket {
  readonly parser?: { onIncoming?: ((req: Incoming) => number) | null } | null;
}

/**
 * Drops all requests that come on the connection from now on, before Node makes an answer for them; too many bytes of
 * them cut it. They are read: otherwise nobody would learn that the client has gone. Returns false where this version
 * of Node lacks the private fields.
 */
export function dropRest(socket: Socket): boolean {
  const { parser } = socket as ParsedSocket; // as its type says
  if (typeof parser?.onIncoming !== "function") return false;
  let readBefore: number | null = null;
  const look = (): void => {
    readBefore ??= socket.bytesRead;
    if (socket.bytesRead - readBefore > MAX_DROPPED_BYTES) socket.destroy();
  };
  parser.onIncoming = (req) => {
    // Nobody takes the connection over.
    req.upgrade = false;
    req.on("data", look);
    look();
    return 0;
  };
  return true;
}
