import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { Exchange } from "../../src/http/exchange/exchange.js";
import { readHeaders } from "../../src/http/request/request-headers.js";
import { splitTarget } from "../../src/http/request/target.js";

/** What a bare exchange differs in from a GET of `/` without headers. */
export interface BareExchangeParts {
  readonly url?: string;
  /** Names and values in turn, as Node has them. */
  readonly rawHeaders?: readonly string[];
  readonly awaitsContinue?: boolean;
  readonly socket?: Socket;
  /** What Node makes answers of. */
  readonly kind?: typeof ServerResponse;
}

/** An exchange whose request came from nowhere: its socket is not connected unless the test brings one that is. */
export function bareExchange({
  url = "/",
  rawHeaders = [],
  awaitsContinue = false,
  socket = new Socket(),
  kind = ServerResponse,
}: BareExchangeParts = {}): Exchange {
  const req = new IncomingMessage(socket);
  return new Exchange(req, new kind(req), splitTarget(url), readHeaders(rawHeaders), awaitsContinue);
}
