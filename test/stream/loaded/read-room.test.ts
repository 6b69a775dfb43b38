import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { StorageBusyError } from "../../../src/storage/storage.js";
import type { ReadClient } from "../../../src/stream/rules/scan-turns.js";
import { MAX_READ_BYTES, ReadRoom } from "../../../src/stream/loaded/read-room.js";

const MIB = 1024 * 1024;

/** Reads that end when the test says so. */
class Reads {
  readonly #ends: ((bytes: number) => void)[] = [];
  begun = 0;
  retained = 0;

  readonly stream = { retain: () => void (this.retained += 1), release: () => void (this.retained -= 1) };

  begin(room: ReadRoom, bytes: number, client?: ReadClient): Promise<number> {
    const found = room.use(this.stream, bytes, client, () => {
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
    assert.equal(reads.retained, 4);
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

  test("begins and hands out little in a turn of the event loop, or one that is long", async () => {
    const room = new ReadRoom();
    const { stream } = new Reads();
    const turns: number[] = [];
    let [now, isOver] = [0, false];
    setImmediate(function tick() {
      now += 1;
      if (!isOver) setImmediate(tick);
    });
    const noteTurn = (): void => void turns.push(now);
    const there = Array.from({ length: 5 }, async () => room.use(stream, 2 * MIB, undefined, noteTurn));
    await Promise.all(there);
    assert.deepEqual(turns.splice(0), [0, 0, 1, 1, 2]);
    await turn();
    // What comes from the disk at once, of which more is read than is handed out.
    const coming = Array.from({ length: 3 }, async () => {
      await room.use(stream, 16 * MIB, undefined, turn);
      noteTurn();
    });
    await Promise.all(coming);
    isOver = true;
    assert.equal(new Set(turns).size, 3, String(turns));
  });

  test("hands out nothing for clients that have gone", async () => {
    const room = new ReadRoom();
    const reads = new Reads();
    const clients = [{ isGone: false }, { isGone: false }];
    const found = clients.map((client) => reads.begin(room, 3 * MIB, client));
    await turn();
    reads.end(1);
    reads.end(2);
    for (const client of clients) client.isGone = true;
    for (const { status } of await Promise.allSettled(found)) assert.equal(status, "rejected");
    await turn();
    assert.equal(await Promise.resolve(room.use(reads.stream, MAX_READ_BYTES, undefined, () => 3)), 3);
  });

  test("is free again after what was there at once, and after faults", async () => {
    const room = new ReadRoom();
    const { stream } = new Reads();
    const all = MAX_READ_BYTES;
    assert.equal(
      room.use(stream, all, undefined, () => "there"),
      "there",
    );
    const fails = (): never => {
      throw new Error("a fault");
    };
    await turn();
    assert.throws(() => room.use(stream, all, undefined, fails), /a fault/);
    await assert.rejects(async () => room.use(stream, all, undefined, () => Promise.reject(new Error("a fault"))), /a fault/);
    await turn();
    assert.equal(
      room.use(stream, all, undefined, () => "there"),
      "there",
    );
  });

  test("reads nothing for clients that have gone, and the next one is read at once", async () => {
    const room = new ReadRoom();
    const reads = new Reads();
    const clients = Array.from({ length: 50 }, () => ({ isGone: false }));
    const held = reads.begin(room, MAX_READ_BYTES);
    const left = clients.map((client) => reads.begin(room, 48 * MIB, client));
    const next = reads.begin(room, MAX_READ_BYTES, { isGone: false });
    for (const client of clients) client.isGone = true;
    reads.end(1);
    await held;
    for (const read of await Promise.allSettled(left)) assert.ok(read.status === "rejected" && read.reason instanceof StorageBusyError);
    await turn();
    assert.equal(reads.begun, 2);
    assert.equal(reads.retained, 1);
    reads.end(2);
    assert.equal(await next, 2);
    assert.throws(() => reads.begin(room, MIB, { isGone: true }), StorageBusyError);
    assert.equal(reads.begun, 2);
  });

  test("has 4,096 wait, and no more", async () => {
    const room = new ReadRoom();
    const reads = new Reads();
    const client = { isGone: false };
    const held = reads.begin(room, MAX_READ_BYTES);
    const waiting = Array.from({ length: 4096 }, () => reads.begin(room, MIB, client));
    await assert.rejects(reads.begin(room, MIB, client), StorageBusyError);
    assert.equal(reads.retained, 4096);
    client.isGone = true;
    reads.end(1);
    await held;
    await Promise.allSettled(waiting);
    assert.equal(reads.begun, 1);
    assert.equal(reads.retained, 0);
  });

  test("is not asked for small reads", () => {
    const room = new ReadRoom();
    const reads = new Reads();
    void reads.begin(room, MAX_READ_BYTES);
    assert.equal(
      room.use(reads.stream, 64 * 1024, undefined, () => "small"),
      "small",
    );
    reads.end(0);
  });
});
