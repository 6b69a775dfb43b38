import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Context } from "../../../src/http/context/context.js";
import type { Exchange } from "../../../src/http/exchange/exchange.js";
import { guard } from "../../../src/http/context/guard.js";
import type { Problem } from "../../../src/http/encoding/problems.js";
import { created, openEngine } from "../../helpers/engine.js";
import { tokenIn } from "../../helpers/tokens.js";
import { DamagedStreamError, DeletedStreamError, NoMajorityError, StorageBusyError } from "../../../src/stream/loaded/stream.js";

const NO_ANSWER = "The NATS servers can't answer for this stream now: /health says whether a majority of them does.";

/** A request in the middle of its work, and what becomes of it. */
class Work {
  readonly problems: Problem[] = [];
  readonly logged: string[] = [];
  isCut = false;
  hasEnded = false;
  faults = 0;
  readonly #exchange: Exchange;
  readonly #context: Context;

  constructor({ isAnswered = false } = {}) {
    // All that is asked of the two here.
    this.#exchange = {
      req: { method: "GET", socket: { destroy: () => (this.isCut = true) } },
      isAnswered,
      target: { path: "/a" },
    } as unknown as Exchange;
    this.#context = {
      log: { error: (message: string, fields: { fault: string }) => this.logged.push(`${message}: ${fields.fault}`) },
      responder: { refuse: (_exchange: Exchange, problem: Problem) => this.problems.push(problem) },
      inFlight: { end: () => (this.hasEnded = true), fails: () => (this.faults += 1) },
    } as unknown as Context;
  }

  get refusals(): string[] {
    return this.problems.map(({ code }) => code);
  }

  async do(work: () => void | Promise<void>): Promise<this> {
    guard(this.#context, this.#exchange, work);
    await Promise.resolve();
    return this;
  }
}

describe("the guard of a request's handler", () => {
  test("that succeeds is left alone", async () => {
    for (const work of [() => {}, () => Promise.resolve()]) {
      const done = await new Work().do(work);
      assert.deepEqual([done.refusals, done.logged], [[], []]);
    }
  });

  for (const [title, work] of [
    [
      "that throws",
      () => {
        throw new Error("oh");
      },
    ],
    ["that rejects", () => Promise.reject(new Error("oh"))],
  ] as const) {
    test(`${title} is logged and answered with 500`, async () => {
      const done = await new Work().do(work);
      assert.deepEqual(done.refusals, ["internal-error"]);
      assert.match(done.logged.join(), /^a request failed: Error: oh\n/);
    });

    test(`${title} in the middle of its answer cuts the connection`, async () => {
      const done = await new Work({ isAnswered: true }).do(work);
      assert.deepEqual([done.refusals, done.isCut, done.hasEnded, done.faults], [[], true, true, 1]);
    });
  }

  test("that meets damaged bytes says so; the engine has logged it", async () => {
    const done = await new Work().do(() => Promise.reject(new DamagedStreamError("a", "0.seg", "checksum")));
    assert.deepEqual([done.refusals, done.logged], [["stream-damaged"], []]);
  });

  test("that meets damaged bytes says from where on the stream can be read again", async (context) => {
    const { storage } = await openEngine();
    context.after(() => storage.close());
    const stream = await created(storage, "s", "hello");
    const work = await new Work().do(() => Promise.reject(new DamagedStreamError("s", "0.seg", "checksum", 0, { stream, position: 5 })));
    assert.deepEqual(work.problems, [
      {
        kind: "refused",
        code: "stream-damaged",
        nextOffset: tokenIn(stream.id, 5),
        detail: `It can be read again from the offset ${tokenIn(stream.id, 5)} on.`,
      },
    ]);
  });

  test("that meets damaged bytes in the middle of its answer cuts the connection", async () => {
    const done = await new Work({ isAnswered: true }).do(() => Promise.reject(new DamagedStreamError("a", "0.seg", "checksum")));
    assert.deepEqual([done.refusals, done.logged, done.isCut, done.hasEnded], [[], [], true, true]);
  });

  test("whose stream is deleted meanwhile finds none", async () => {
    const done = await new Work().do(() => Promise.reject(new DeletedStreamError("gone")));
    assert.deepEqual([done.refusals, done.logged], [["stream-not-found"], []]);
  });

  test("that meets too many open files may try again", async () => {
    const done = await new Work().do(() => Promise.reject(new StorageBusyError("EMFILE")));
    assert.deepEqual([done.refusals, done.logged], [["overloaded"], []]);
  });

  test("that meets no majority of a cluster's servers says so", async () => {
    const done = await new Work().do(() => Promise.reject(new NoMajorityError("no leader answers")));
    assert.deepEqual(done.problems, [{ kind: "refused", code: "overloaded", detail: NO_ANSWER }]);
    assert.deepEqual(done.logged, []);
  });

  test("that throws no error is told of as it is", async () => {
    assert.match((await new Work().do(() => Promise.reject("odd"))).logged.join(), /odd/);
  });
});
