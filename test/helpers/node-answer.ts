import assert from "node:assert/strict";
import { ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { Exchange } from "../../src/http/exchange/exchange.js";

/** The answer of an exchange as Node's own, for what the rooms above do not ask of an answer. */
export function nodeAnswer({ res }: Pick<Exchange, "res">): ServerResponse {
  assert.ok(res instanceof ServerResponse);
  return res;
}

/** The connection of a request of HTTP/1.1. */
export function socketOf({ req }: Pick<Exchange, "req">): Socket {
  assert.ok(req.socket instanceof Socket);
  return req.socket;
}
