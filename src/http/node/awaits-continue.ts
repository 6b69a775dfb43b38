// Tells whether a client has been told to send its body.
//
// Private name: `_sent100` of an answer, which Node sets where it has told so by itself, as nobody listens to
// `checkContinue`. Where a version of Node lacks it, the client is told twice, which it must take.

import type { IncomingMessage, ServerResponse } from "node:http";

/** Whether the client of a connection of HTTP/1.1 still waits for a 100 before it sends its body. */
export function awaitsContinue({ headers, httpVersionMajor }: IncomingMessage, res: ServerResponse): boolean {
  const asks = headers.expect?.toLowerCase() === "100-continue" && httpVersionMajor < 2;
  return asks && Reflect.get(res, "_sent100") !== true;
}
