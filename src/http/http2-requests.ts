// Leads requests of HTTP/2 to the dispatcher.

import type { Clock } from "../ops/clock.js";
import type { Log } from "../ops/log.js";
import type { Clients } from "./bounds/clients.js";
import { ResetsByClient } from "./bounds/resets-by-client.js";
import { STREAM_METHODS } from "./encoding/cors.js";
import { problem, type Problem } from "./encoding/problems.js";
import { Sessions, type SessionsOptions } from "./http2/sessions.js";
import type { StreamRequest } from "./http2/stream-request.js";
import type { Dispatcher } from "./dispatch.js";

/** What a header counts for beside its name and its value (RFC 9113, 6.5.2). */
const HEADER_BYTES = 32;

/** What the connections of HTTP/2 are served with. */
export interface Http2Options {
  readonly dispatcher: Pick<Dispatcher, "handleStream">;
  readonly clock: Clock;
  readonly log: Log;
  readonly clients: Pick<Clients, "isTrusted">;
  readonly limits: SessionsOptions["limits"] & { readonly maxHeaderSize: number };
}

/** The connections of HTTP/2, whose requests go to the dispatcher. */
export function http2Sessions({ dispatcher, clock, log, clients, limits }: Http2Options): Sessions {
  return new Sessions({
    clock,
    log,
    limits,
    resets: new ResetsByClient(clients),
    serve: (req, res) => dispatcher.handleStream(req, res, refusalOf(req, limits.maxHeaderSize)),
  });
}

/** What HTTP/1.1 refuses before the dispatcher sees it. */
function refusalOf(req: StreamRequest, maxHeaderSize: number): Problem | null {
  if (req.method === "CONNECT") return problem("method-not-allowed", { allow: STREAM_METHODS });
  let bytes = 0;
  for (let at = 0; at + 1 < req.rawHeaders.length; at += 2)
    bytes += (req.rawHeaders[at]?.length ?? 0) + (req.rawHeaders[at + 1]?.length ?? 0) + HEADER_BYTES;
  return bytes > maxHeaderSize ? problem("header-too-large") : null;
}
