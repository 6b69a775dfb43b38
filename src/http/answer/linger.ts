// Keeps reading from a refused client, so that it does not lose its answer to a reset.

import type { Clock } from "../../ops/clock.js";
import type { Exchange } from "../exchange/exchange.js";
import { OwnResponse } from "../node/own-response.js";

/** How long, and for how many bytes, a refused client may go on sending. */
const MAX_LINGER_MS = 30_000;
const MAX_LINGER_BYTES = 256 * 1024 * 1024;

/**
 * Reads and drops what the client still sends after its answer has been written, then ends the answer. Closing at once
 * would reset the connection, and the client might lose the answer unread.
 */
export function linger({ req, res, awaitsContinue }: Exchange, clock: Clock): void {
  if (res instanceof OwnResponse) res.isWhole = true;
  let droppedBytes = 0;
  // A client that waits for `100 Continue` learns at once that this is all; it may send its body all the same.
  if (awaitsContinue) req.socket.end();
  const timer = clock.after(MAX_LINGER_MS, () => req.socket.destroy());
  req.on("data", (chunk: Buffer) => {
    droppedBytes += chunk.length;
    if (droppedBytes > MAX_LINGER_BYTES) req.socket.destroy();
  });
  // After the end of the body, or of the connection.
  req.on("close", () => {
    timer.cancel();
    if (req.socket.writable) res.end();
    else req.socket.destroySoon();
  });
}
