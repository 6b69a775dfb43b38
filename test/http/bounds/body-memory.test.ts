import assert from "node:assert/strict";
import { Socket } from "node:net";
import { describe, test } from "node:test";
import { BodyMemory, HeldBody, SMALL_BODY_BYTES } from "../../../src/http/bounds/body-memory.js";
import type { Cause } from "../../../src/http/bounds/shared-room.js";
import { ManualClock } from "../../helpers/manual-clock.js";
import { Random } from "../../helpers/random.js";

const MIB = 1024 * 1024;

class TestBody extends HeldBody {
  cause: Cause | null = null;

  constructor(promisedBytes: number, client = "192.0.2.1") {
    super({ req: { socket: new Socket() }, client }, promisedBytes);
  }

  override giveWay(cause: Cause): void {
    this.cause = cause;
    this.release();
  }
}

function memoryOf(
  maxSmallBytes: number,
  maxLargeBytes: number,
  maxBodyBytes = MIB,
): { readonly memory: BodyMemory; readonly clock: ManualClock } {
  const clock = new ManualClock();
  return { memory: new BodyMemory({ maxSmallBytes, maxLargeBytes, maxBodyBytes, clock }), clock };
}

describe("memory for request bodies", () => {
  test("is counted by what came, not by what is promised", () => {
    const { memory } = memoryOf(MIB, MIB);
    const body = new TestBody(MIB);
    assert.equal(memory.hold(body, 10), true);
    assert.equal(memory.hold(body, 20), true);
    assert.equal(memory.bytes, 30);
    body.release();
    body.release();
    assert.equal(memory.bytes, 0);
  });

  test("has room of their own for small ones, where one that grows does not stay", () => {
    const { memory } = memoryOf(SMALL_BODY_BYTES, MIB);
    const [growing, small] = [new TestBody(0), new TestBody(0)];
    assert.equal(memory.hold(growing, SMALL_BODY_BYTES), true);
    assert.equal(memory.hold(small, 1), false);
    assert.equal(memory.hold(growing, 1), true);
    assert.equal(memory.hold(small, SMALL_BODY_BYTES), true);
    assert.equal(memory.bytes, 2 * SMALL_BODY_BYTES + 1);
  });

  test("is not had back from a body that is whole, however long its answer takes", () => {
    const { memory, clock } = memoryOf(MIB, MIB);
    const [told, inChunks] = [new TestBody(MIB / 2), new TestBody(0)];
    assert.equal(memory.hold(told, MIB / 2), true);
    assert.equal(memory.hold(inChunks, MIB / 2), true);
    inChunks.finish();
    clock.advance(60_000);
    assert.equal(memory.hold(new TestBody(MIB), 1), false);
    assert.deepEqual([told.cause, inChunks.cause], [null, null]);
  });

  test("holds one body of the greatest size in any case", () => {
    const { memory } = memoryOf(MIB, MIB, 10 * MIB);
    assert.equal(memory.hold(new TestBody(10 * MIB), 10 * MIB), true);
    assert.equal(memory.hold(new TestBody(MIB), 1), false);
  });

  test("is what the bodies hold, whatever comes and goes", (context) => {
    const seed = Date.now();
    context.diagnostic(`seed ${seed}`);
    const random = new Random(seed);
    const { memory, clock } = memoryOf(4 * SMALL_BODY_BYTES, MIB, MIB / 2);
    let bodies: TestBody[] = [];
    for (let round = 0; round < 5_000; round += 1) {
      const isNew = bodies.length === 0 || random.chance(0.3);
      const body = isNew
        ? new TestBody(random.chance(0.5) ? 0 : random.integer(1, MIB / 2), `192.0.2.${random.integer(1, 4)}`)
        : random.pick(bodies);
      const bytes = random.integer(1, SMALL_BODY_BYTES);
      if (isNew) bodies.push(body);
      if (!memory.hold(body, bytes) || random.chance(0.1)) body.release();
      else if (random.chance(0.1)) body.finish();
      bodies = bodies.filter(({ room }) => room !== null);
      const heldBytes = bodies.reduce((sum, each) => sum + each.heldBytes, 0);
      assert.equal(memory.bytes, heldBytes);
      assert.ok(heldBytes <= 4 * SMALL_BODY_BYTES + MIB);
      if (random.chance(0.05)) clock.advance(random.integer(1, 12_000));
    }
    for (const body of bodies) body.release();
    assert.equal(memory.bytes, 0);
  });
});
