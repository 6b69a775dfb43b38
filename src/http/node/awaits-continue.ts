/*
 * Node notes in `_sent100` of an answer that it has told the client to send its body, as it does where nobody listens to
 * `checkContinue`. Where it notes no more, the client is told twice, which it must take.
 */
import type { IncomingMessage, ServerResponse } from "node:http";

/** Whether the client still waits for a 100 before it sends its body. */
export function awaitsContinue({ headers }: IncomingMessage, res: ServerResponse): boolean {
  return headers.expect?.toLowerCase() === "100-continue" && Reflect.get(res, "_sent100") !== true;
}
