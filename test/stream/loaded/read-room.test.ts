import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { MAX_READ_BYTES, ReadRoom } from "../../../src/stream/loaded/read-room.js";

const MIB = 1024 * 1024;

/** Reads that end when the test says so. */
class Reads {
  readonly #ends: ((bytes: number) => void)[] = [];
  begun = 0;
  retained = 0;

  readonly stream = { retain: () => void (this.retained += 1), release: () => void (this.retained -= 1) };

  begin(room: ReadRoom, bytes: number): Promise<number> {
    const found = room.use(this.stream, bytes, () => {
      this.begun += 1;
      return new Promise<number>((resolve) => this.#ends.push(resolve));
    });
    assert.ok(found instanceof Promise);
    return found;
  }

  end(bytes: number): void {
    this.#ends.shift()?.(bytes);
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

describe("the room for reads", () => {
  test("has so much at a time: others wait in their order, with their streams in memory", async () => {
    const room = new ReadRoom();
    const reads = new Reads();
    const all = [48, 48, 48, 1, 1].map((mib) => reads.begin(room, mib * MIB));
    await turn();
    assert.equal(reads.begun, 2, "also those that would fit: large ones would never have their turn");
    assert.equal(reads.retained, 3);
    reads.end(1);
    assert.equal(await all[0], 1);
    assert.equal(reads.begun, 2, "who has it counts it first");
    await turn();
    assert.equal(reads.begun, 5);
    for (let at = 2; at <= 5; at += 1) reads.end(at);
    assert.deepEqual(await Promise.all(all), [1, 2, 3, 4, 5]);
    assert.equal(reads.retained, 0);
  });

  test("gives a read that is longer than all of it the whole", async () => {
    const room = new ReadRoom();
    const reads = new Reads();
    const long = reads.begin(room, 2 * MAX_READ_BYTES);
    const next = reads.begin(room, MIB);
    await turn();
    assert.equal(reads.begun, 1);
    reads.end(1);
    await long;
    await turn();
    assert.equal(reads.begun, 2);
    reads.end(2);
    await next;
  });

  test("is free again after what was there at once, and after faults", async () => {
    const room = new ReadRoom();
    const { stream } = new Reads();
    const all = MAX_READ_BYTES;
    assert.equal(
      room.use(stream, all, () => "there"),
      "there",
    );
    const fails = (): never => {
      throw new Error("a fault");
    };
    assert.throws(() => room.use(stream, all, fails), /a fault/);
    await assert.rejects(async () => room.use(stream, all, () => Promise.reject(new Error("a fault"))), /a fault/);
    await turn();
    assert.equal(
      room.use(stream, all, () => "there"),
      "there",
    );
  });

  test("is not asked for small reads", () => {
    const room = new ReadRoom();
    const reads = new Reads();
    void reads.begin(room, MAX_READ_BYTES);
    assert.equal(
      room.use(reads.stream, 64 * 1024, () => "small"),
      "small",
    );
    reads.end(0);
  });
});
