import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { test } from "node:test";
import { Exchange } from "../../src/http/exchange.js";
import { readHeaders } from "../../src/http/request-headers.js";

function exchangeWith(...rawHeaders: string[]): Exchange {
  // An exchange only carries the two.
  return new Exchange({} as IncomingMessage, {} as ServerResponse, { path: "/", query: "" }, readHeaders(rawHeaders), false);
}

test("an exchange lets go of its headers, and leaves those of somebody else's server alone", () => {
  const exchange = exchangeWith("Host", "a", "Origin", "b");
  exchange.forgetHeaders();
  assert.deepEqual([exchange.headers.host, exchange.headers.origin], [null, null]);
  assert.deepEqual(Object.keys(exchange.req), []);
});

test("an exchange owes its client the reading of a promised body", () => {
  assert.equal(exchangeWith("Content-Length", "1").bodyPending, true);
  assert.equal(exchangeWith("Content-Length", "0").bodyPending, false);
  assert.equal(exchangeWith().bodyPending, false);
});
