import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { HeldBody } from "../../../src/http/bounds/body-memory.js";
import type { Exchange } from "../../../src/http/exchange/exchange.js";
import { InFlight } from "../../../src/http/answer/in-flight.js";

class FakeExchange {
  slot = -1;
  code: string | null = null;
  body: HeldBody | null = null;
  isCut = false;
  isHeld = true;
  readonly req = { socket: { destroy: () => void (this.isCut = true) } };

  releaseRight(): void {
    this.isHeld = false;
  }
}

function exchange(): Exchange & FakeExchange {
  return new FakeExchange() as unknown as Exchange & FakeExchange; // all that is asked of one here
}

describe("requests in flight", () => {
  test("are counted until they end, in any order, and once", () => {
    const inFlight = new InFlight();
    const exchanges = Array.from({ length: 10 }, exchange);
    for (const each of exchanges) inFlight.begin(each);
    assert.equal(inFlight.size, 10);
    for (const [at, each] of [3, 9, 0, 5, 5, 1, 2, 4, 6, 7, 8, 0].entries()) {
      const ending = exchanges[each];
      assert.ok(ending !== undefined, String(at));
      inFlight.end(ending);
      assert.deepEqual([ending.slot, ending.isHeld], [-1, false]);
    }
    assert.equal(inFlight.size, 0);
  });

  test("give the memory of their bodies back when they end, once", () => {
    const inFlight = new InFlight();
    const ending = exchange();
    let releases = 0;
    inFlight.begin(ending);
    ending.body = { release: () => void (releases += 1) } as unknown as HeldBody; // all that is asked of one here
    for (let round = 0; round < 2; round += 1) inFlight.end(ending);
    assert.deepEqual([releases, ending.body], [1, null]);
  });

  test("count as failed that end with a fault behind the beginning of their answer, on their way or not", () => {
    const inFlight = new InFlight();
    const [late, early] = [exchange(), exchange()];
    for (const each of [late, early]) inFlight.begin(each);
    inFlight.fails(early);
    for (const each of [late, early]) inFlight.end(each);
    inFlight.fails(late);
    assert.equal(inFlight.figures.refusalsWith("internal-error"), 2);
  });

  test("are waited for when the server stops", async () => {
    const inFlight = new InFlight();
    const [first, second] = [exchange(), exchange()];
    inFlight.begin(first);
    inFlight.begin(second);
    assert.equal(inFlight.closing, false);
    let isOver = false;
    const closed = inFlight.drain().then(() => (isOver = true));
    assert.equal(inFlight.closing, true);
    inFlight.end(first);
    await Promise.resolve();
    assert.equal(isOver, false);
    inFlight.end(second);
    await closed;
  });

  test("are not waited for when there are none", () => new InFlight().drain());

  test("can be cut", () => {
    const inFlight = new InFlight();
    const exchanges = [exchange(), exchange()];
    for (const each of exchanges) inFlight.begin(each);
    inFlight.destroyAll();
    assert.ok(exchanges.every(({ isCut }) => isCut));
  });
});
