import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { describe, test } from "node:test";
import { Exchange } from "../../../src/http/exchange/exchange.js";
import { OwnResponse } from "../../../src/http/node/own-response.js";
import { readHeaders } from "../../../src/http/request/request-headers.js";
import { bareExchange } from "../../helpers/bare-exchange.js";
import { directExchange } from "../../helpers/direct-exchange.js";
import { nodeAnswer, socketOf } from "../../helpers/node-answer.js";

function exchangeWith(...rawHeaders: string[]): Exchange {
  // An exchange only carries the two.
  return new Exchange({} as IncomingMessage, {} as ServerResponse, { path: "/", query: "" }, readHeaders(rawHeaders), false);
}

test("an exchange releases its headers, and leaves those of an embedding server alone", () => {
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

describe("an exchange on a connection of its own", () => {
  test("has an answer of Node's as soon as something asks for it", async (context) => {
    const { client, exchange } = await directExchange(context);
    assert.notEqual(exchange.direct, null);
    assert.equal(exchange.isAnswered, false);
    const res = nodeAnswer(exchange);
    assert.equal(exchange.res, res);
    assert.equal(exchange.direct, null);
    res.writeHead(200, { "Content-Length": 5 });
    assert.equal(exchange.isAnswered, true);
    res.end("hello");
    assert.equal((await client.answer()).text, "hello");
  });

  test("has none any more behind its direct answer", async (context) => {
    const { client, exchange } = await directExchange(context);
    exchange.direct?.answer(exchange, "HTTP/1.1 204 No Content\r\n\r\n");
    assert.equal((await client.answer()).status, 204);
    assert.throws(() => exchange.res, /Node has made no answer/);
  });

  for (const isHandedOver of [false, true]) {
    test(`hears that its client has gone${isHandedOver ? ", also where it gets Node's answer later" : ""}`, async (context) => {
      const { client, exchange } = await directExchange(context);
      assert.equal(exchange.isGone, false);
      const gone = new Promise<void>((resolve) => exchange.onGone(resolve));
      if (isHandedOver) assert.equal(exchange.res.destroyed, false);
      client.socket.destroy();
      await gone;
      assert.equal(exchange.isGone, true);
    });
  }

  test("gets a destroyed answer of Node's where its client has gone before", async (context) => {
    const { client, exchange } = await directExchange(context);
    const socket = socketOf(exchange);
    // Nobody may answer any more, but a handler may still be on its way to do so.
    socket.removeAllListeners("close");
    const closed = once(socket, "close");
    client.socket.destroy();
    await closed;
    assert.equal(exchange.res.destroyed, true);
    assert.equal(exchange.isGone, true);
  });
});

test("an exchange knows whether it came to our own server", async (context) => {
  assert.equal(bareExchange().isOwn, false);
  assert.equal(bareExchange({ kind: OwnResponse }).isOwn, true);
  assert.equal((await directExchange(context)).exchange.isOwn, true);
});
