import assert from "node:assert/strict";
import { Socket } from "node:net";
import { describe, test } from "node:test";
import { Holder, SharedRoom, type Cause } from "../../../src/http/bounds/shared-room.js";
import { ManualClock } from "../../helpers/manual-clock.js";

const STILL_MS = 10_000;

class TestHolder extends Holder {
  cause: Cause | null = null;
  readonly #room: TestRoom;
  readonly #bytes: number;

  constructor(room: TestRoom, client: string, bytes: number) {
    super({ req: { socket: new Socket() }, client });
    this.#room = room;
    this.#bytes = bytes;
    this.movedAtMs = room.clock.nowMs();
  }

  override get chargedBytes(): number {
    return this.#bytes;
  }

  override giveWay(cause: Cause): void {
    this.cause = cause;
    this.#room.leave(this);
    this.#room.give(this.#bytes);
  }
}

class TestRoom extends SharedRoom<TestHolder> {
  readonly clock: ManualClock;

  constructor(clock = new ManualClock(), minShareBytes = 10) {
    super(100, minShareBytes, clock);
    this.clock = clock;
  }

  /** One that comes in, with room or without. */
  hold(client: string, bytes: number): TestHolder {
    const holder = new TestHolder(this, client, bytes);
    this.take(bytes);
    this.enter(holder);
    return holder;
  }
}

function causesOf(...holders: readonly TestHolder[]): (Cause | null)[] {
  return holders.map(({ cause }) => cause);
}

describe("a room that clients share", () => {
  test("is one client's alone while nobody else asks", () => {
    const room = new TestRoom();
    const holders = [room.hold("a", 60), room.hold("a", 40)];
    assert.equal(room.fits(1), false);
    assert.equal(room.makeRoom(1, "a", null), false);
    assert.deepEqual(causesOf(...holders), [null, null]);
  });

  test("has room for one, however large, where nothing else is", () => {
    const room = new TestRoom();
    assert.equal(room.fits(1000), true);
    room.hold("a", 1000);
    assert.equal(room.fits(1), false);
  });

  test("is made by those that stand still, the longest first, whoever they are", () => {
    const room = new TestRoom();
    const first = room.hold("a", 40);
    room.clock.advance(1);
    const second = room.hold("b", 40);
    room.clock.advance(1);
    const third = room.hold("c", 20);
    room.clock.advance(STILL_MS - 2);
    second.noteMoved(10 * 1024, room.clock.nowMs());
    assert.equal(room.makeRoom(30, "a", null), true);
    assert.deepEqual(causesOf(first, second, third), ["still", null, null]);
    room.clock.advance(2);
    assert.equal(room.makeRoom(60, "a", null), true);
    assert.deepEqual(causesOf(first, second, third), ["still", null, "still"]);
  });

  test("is left alone by the one that asks for it", () => {
    const room = new TestRoom();
    const asker = room.hold("a", 100);
    room.clock.advance(STILL_MS);
    assert.equal(room.makeRoom(10, "a", asker), false);
    assert.equal(asker.cause, null);
  });

  for (const [bytes, cause] of [
    [10 * 1024 - 1, "still"],
    [10 * 1024, null],
  ] as const) {
    test(`of which ${bytes} bytes in ten seconds ${cause === null ? "move" : "stand still"}`, () => {
      const room = new TestRoom();
      const holder = room.hold("a", 100);
      room.clock.advance(STILL_MS - 1);
      for (let left = bytes; left > 0; left -= 512) holder.noteMoved(Math.min(512, left), room.clock.nowMs());
      room.clock.advance(1);
      room.makeRoom(1, "a", null);
      assert.equal(holder.cause, cause);
    });
  }

  test("is taken from a client beyond its share, and only until the other has what it asks for", () => {
    const room = new TestRoom();
    const holders = [room.hold("a", 20), room.hold("a", 20), room.hold("a", 20), room.hold("b", 40)];
    assert.equal(room.makeRoom(30, "c", null), true);
    // A share is a third. What one client holds moved at the same time: it goes in the order in which it came.
    assert.deepEqual(causesOf(...holders), ["share", "share", null, null]);
  });

  test("is not taken for a client that has its share already", () => {
    const room = new TestRoom();
    const holders = [room.hold("a", 51), room.hold("b", 49)];
    assert.equal(room.makeRoom(2, "b", null), false);
    assert.equal(room.makeRoom(50, "c", null), false);
    assert.deepEqual(causesOf(...holders), [null, null]);
  });

  test("leaves every client so much, however many there are", () => {
    const room = new TestRoom();
    const holders = Array.from({ length: 10 }, (_, client) => room.hold(`client ${client}`, 10));
    assert.equal(room.makeRoom(5, "one more", null), false);
    assert.ok(holders.every(({ cause }) => cause === null));
  });

  test("leaves no client more than half of it, though one alone might be larger", () => {
    const room = new TestRoom(new ManualClock(), 100);
    const large = room.hold("a", 90);
    assert.equal(room.makeRoom(20, "b", null), true);
    assert.equal(large.cause, "share");
  });

  test("is not searched again and again for the same client, and is for another", () => {
    const room = new TestRoom();
    room.hold("a", 90);
    const other = room.hold("b", 10);
    assert.equal(room.makeRoom(10, "a", null), false);
    room.clock.advance(99);
    other.movedAtMs -= STILL_MS;
    assert.equal(room.makeRoom(10, "a", null), false);
    assert.equal(room.makeRoom(10, "c", null), true);
    room.hold("c", 10);
    other.cause = null;
    const still = room.hold("d", 0);
    still.movedAtMs -= STILL_MS;
    room.clock.advance(1);
    room.makeRoom(10, "a", null);
    assert.equal(still.cause, "still");
  });

  test("forgets those that leave, in any order and once", () => {
    const room = new TestRoom();
    const holders = Array.from({ length: 5 }, () => room.hold("a", 10));
    for (const at of [1, 1, 4, 0, 3, 2]) {
      const holder = holders[at];
      if (holder !== undefined) room.leave(holder);
    }
    assert.equal(room.isVacant, true);
    const seen: Holder[] = [];
    const again = [room.hold("b", 1), room.hold("b", 1), room.hold("b", 1)];
    room.forEach((holder) => {
      seen.push(holder);
      holder.giveWay("still");
    });
    assert.deepEqual([seen.length, new Set(seen).size, room.isVacant, causesOf(...again)], [3, 3, true, ["still", "still", "still"]]);
  });
});
