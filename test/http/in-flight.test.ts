import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Exchange } from "../../src/http/exchange.js";
import { InFlight } from "../../src/http/in-flight.js";
import { bareExchange } from "../helpers/bare-exchange.js";

const MAX_BYTES = 10;

function begin(inFlight: InFlight): Exchange {
  const exchange = bareExchange();
  inFlight.begin(exchange);
  return exchange;
}

/** The numbers from 0 below `count`, in every order. */
function ordersOf(count: number): number[][] {
  if (count === 0) return [[]];
  return ordersOf(count - 1).flatMap((order) => Array.from({ length: count }, (_, at) => [...order.slice(0, at), count - 1, ...order.slice(at)]));
}

describe("requests end in any order, and only those without an answer are cut", () => {
  for (const order of ordersOf(4)) {
    test(order.join(", "), () => {
      for (let ended = 0; ended <= order.length; ended += 1) {
        const inFlight = new InFlight(MAX_BYTES);
        const exchanges = order.map(() => begin(inFlight));
        const gone = order.slice(0, ended);
        for (const at of gone) inFlight.end(exchanges[at] ?? assert.fail());
        assert.equal(inFlight.size, order.length - ended);
        inFlight.destroyAll();
        assert.deepEqual(exchanges.map(({ req }) => req.socket.destroyed), exchanges.map((_, at) => !gone.includes(at)));
      }
    });
  }
});

describe("a request ends once", () => {
  test("a second end does nothing to the others", () => {
    const inFlight = new InFlight(MAX_BYTES);
    const first = begin(inFlight);
    const second = begin(inFlight);
    inFlight.hold(first, 4);
    inFlight.hold(second, 3);
    inFlight.end(first);
    inFlight.end(first);
    assert.deepEqual([inFlight.size, inFlight.bodyBytes], [1, 3]);
  });

  test("the end of one that never began does nothing", () => {
    const inFlight = new InFlight(MAX_BYTES);
    begin(inFlight);
    inFlight.end(bareExchange());
    assert.equal(inFlight.size, 1);
  });

  test("one that has ended can begin again", () => {
    const inFlight = new InFlight(MAX_BYTES);
    const exchange = begin(inFlight);
    inFlight.end(exchange);
    inFlight.begin(exchange);
    assert.equal(inFlight.size, 1);
    inFlight.end(exchange);
    assert.equal(inFlight.size, 0);
  });
});

describe("bodies in memory", () => {
  test("are bounded for all requests together, to the byte", () => {
    const inFlight = new InFlight(MAX_BYTES);
    const first = begin(inFlight);
    const second = begin(inFlight);
    assert.equal(inFlight.hold(first, 6), true);
    assert.equal(inFlight.hold(second, 4), true);
    assert.equal(inFlight.hold(second, 1), false);
    assert.deepEqual([inFlight.bodyBytes, first.heldBytes, second.heldBytes], [10, 6, 4], "what is refused is not counted");
  });

  test("give their room back when their request ends", () => {
    const inFlight = new InFlight(MAX_BYTES);
    const first = begin(inFlight);
    const second = begin(inFlight);
    inFlight.hold(first, 3);
    inFlight.hold(first, 3);
    inFlight.hold(second, 4);
    inFlight.end(first);
    assert.deepEqual([inFlight.bodyBytes, first.heldBytes], [4, 0]);
    assert.equal(inFlight.hold(second, 6), true);
  });
});

describe("a stop", () => {
  test("waits for nothing when nothing is in flight", async () => {
    const inFlight = new InFlight(MAX_BYTES);
    assert.equal(inFlight.closing, false);
    await inFlight.close();
    assert.equal(inFlight.closing, true);
  });

  test("waits until the last request has its answer", async () => {
    const inFlight = new InFlight(MAX_BYTES);
    const told: string[] = [];
    const first = begin(inFlight);
    const second = begin(inFlight);
    const closed = inFlight.close().then(() => told.push("closed"));
    assert.equal(inFlight.closing, true);
    inFlight.end(second);
    await Promise.resolve();
    told.push("one is left");
    inFlight.end(first);
    await closed;
    assert.deepEqual(told, ["one is left", "closed"]);
  });
});
