import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeChange, type Change } from "../../../../src/storage/nats/log/change.js";
import type { Published } from "../../../../src/storage/nats/log/replicated-log.js";
import { publishAgain } from "../../../../src/storage/nats/writing/publishing.js";
import { append, created, readAll, recordOf, settled, startCreate } from "../../../helpers/engine.js";
import { frontEnds, withFrontEnds } from "../../../helpers/front-ends.js";
import type { MemoryLog } from "../../../helpers/memory-log.js";
import { Random } from "../../../helpers/random.js";
import { VirtualClock } from "../../../helpers/virtual-clock.js";

const TIMEOUT_MS = 30_000;

/** Its time stands still, as after a step back of the system's time; its timers run. */
class HeldClock extends VirtualClock {
  isHeld = false;
  #heldAtMs = 0;

  override nowMs(): number {
    return this.isHeld ? this.#heldAtMs : super.nowMs();
  }

  hold(): void {
    this.#heldAtMs = super.nowMs();
    this.isHeld = true;
  }

  /** Goes on for as long as timers do. */
  get elapsedMs(): number {
    return super.nowMs();
  }
}

for (const kind of ["unknown", "untaken"] as const)
  test(`what no server takes is given up in time while the clock stands still: ${kind}`, async () => {
    const clock = new HeldClock();
    const { all, stop } = frontEnds(1, new Random(1), undefined, { clock, stopwatchMs: () => clock.elapsedMs });
    const [one] = all;
    assert.ok(one !== undefined);
    const { storage, way } = one;
    const steps = async (): Promise<void> => {
      const stream = await created(storage, "s", "x", { ttlSeconds: 60 });
      clock.hold();
      answerAll(way, { kind });
      const givenUp = async (work: Promise<unknown>, outcome: string): Promise<void> => {
        const sinceMs = clock.elapsedMs;
        assert.equal(await work, outcome);
        const tookMs = clock.elapsedMs - sinceMs;
        assert.ok(tookMs >= TIMEOUT_MS && tookMs < TIMEOUT_MS + 1000, `${outcome} came after ${tookMs} ms`);
      };
      const refused = kind === "unknown" ? "unknown" : "overloaded";
      await givenUp(append(storage, stream, recordOf("y")), refused);
      assert.equal(storage.touch(stream, 5000), true);
      await givenUp(settled(storage, stream), "overloaded");
      await givenUp(startCreate(storage, "new").outcome, refused);
    };
    await clock.through(steps()).finally(() => {
      clock.isHeld = false;
      return stop();
    });
  });

test("what this server may not publish is given up at once, and is certainly not there", async () => {
  await withFrontEnds(async ({ clock }, { storage, way }) => {
    const stream = await created(storage, "s", "x", { ttlSeconds: 60 });
    const { publish } = way;
    answerAll(way, { kind: "refused" });
    const sinceMs = clock.nowMs();
    assert.equal(await append(storage, stream, recordOf("y")), "overloaded");
    assert.equal(storage.touch(stream, 5000), true);
    assert.equal(await settled(storage, stream), "overloaded");
    assert.ok(clock.nowMs() - sinceMs < 1000);
    way.publish = publish;
    assert.equal(await append(storage, stream, recordOf("z")), "durable");
    assert.equal(String(await readAll(storage, stream)), "xz");
  });
});

/** Has each publish end so. */
function answerAll(way: MemoryLog, published: Published): void {
  way.publish = () => Promise.resolve(published);
}

for (const [kind, outcome] of [
  ["pending", "moved"],
  ["unknown", "unknown"],
] as const)
  test(`an attempt that ends ${kind}, where others and a purge came first, is ${outcome}: the purge may have taken only what may be there`, async () => {
    await withFrontEnds(async ({ clock }, { way }) => {
      const subject = "sd.test.0.s.s";
      const nothing = Buffer.alloc(0);
      for (const [publication, expected] of [
        ["first", 0],
        ["second", 1],
      ] as const)
        await way.publish(subject, encodeChange({ ...EMPTY, publication }), nothing, expected);
      await way.purge(subject, 2);
      const options = { log: way, clock, stopwatchMs: () => clock.nowMs(), timeoutMs: TIMEOUT_MS, random: () => 0 };
      const draft = { change: EMPTY, head: encodeChange(EMPTY), body: nothing };
      const attempt = { subject, draft, expected: 0, sentAtMs: clock.nowMs() };
      assert.deepEqual(await publishAgain(options, attempt, { kind }), { kind: outcome });
    });
  });

const EMPTY: Change = {
  id: "0a1b",
  name: "s",
  publication: "ours",
  deletedAtMs: null,
  from: 0,
  to: 0,
  records: [],
  config: { contentType: "text/plain", createdAtMs: 0, ttlSeconds: null, expiresAtMs: null, forkedFrom: null },
  earliest: 0,
  earliestAtMs: 0,
  newestAtMs: 0,
  messages: 0,
  closedAtMs: null,
  isClosed: false,
  closedBy: null,
  lastSeq: null,
  producers: { kind: "here", marks: [] },
};
