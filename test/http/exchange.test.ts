import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { test } from "node:test";
import { Exchange } from "../../src/http/exchange.js";
import { readHeaders } from "../../src/http/request-headers.js";

function exchangeWith(...rawHeaders: string[]): Exchange {
  // An exchange only carries the two.
  return new Exchange({} as IncomingMessage, {} as ServerResponse, { path: "/", query: "" }, readHeaders(rawHeaders), false);
}

test("an exchange owes its client the reading of a promised body", () => {
  assert.equal(exchangeWith("Content-Length", "1").bodyPending, true);
  assert.equal(exchangeWith("Content-Length", "0").bodyPending, false);
  assert.equal(exchangeWith().bodyPending, false);
});
