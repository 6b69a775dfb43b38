import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FileStream } from "../../../../src/storage/file/memory/file-stream.js";
import { MutableState } from "../../../../src/storage/state.js";
import { bytesOf, configOf, recordOf, rollAt } from "../../../helpers/engine.js";
import { haveSameClass } from "../../../helpers/hidden-class.js";

const IDENTITY = { id: "i", name: "n", config: configOf() };

function streamWith(lengths: readonly number[]): FileStream {
  const stream = new FileStream(IDENTITY, "/d", null);
  for (const length of lengths) {
    const { segmentStart } = stream.reserve(length, 0, rollAt(100));
    stream.advance(recordOf(bytesOf(length)), length, segmentStart, 1);
  }
  return stream;
}

describe("places", () => {
  test("an append is never split: it begins a segment where the last has no room for all of it", () => {
    const stream = new FileStream(IDENTITY, "/d", null);
    const places = [60, 40, 1, 99, 250, 10, 0].map((length) => stream.reserve(length, 0, rollAt(100)));
    assert.deepEqual(places, [
      { position: 0, segmentStart: 0 },
      { position: 60, segmentStart: 0 },
      { position: 100, segmentStart: 100 },
      { position: 101, segmentStart: 100 },
      { position: 200, segmentStart: 200 },
      { position: 450, segmentStart: 450 },
      { position: 460, segmentStart: 450 },
    ]);
  });

  test("what was reserved is given back when it fails, and older entries are void", () => {
    const stream = streamWith([60]);
    stream.reserve(50, 0, rollAt(100));
    const { generation } = stream;
    stream.disk.fitted.add(0);
    stream.unreserve();
    assert.ok(stream.generation > generation);
    assert.equal(stream.boundSequence, -1);
    assert.equal(stream.disk.fitted.size, 0);
    assert.deepEqual(stream.reserve(10, 0, rollAt(100)), { position: 60, segmentStart: 0 });
  });
});

test("streams that wait for their first append are of the class of those that had it", () => {
  const stream = new FileStream(IDENTITY, "/d", null);
  const waiting = stream.reservedSegment;
  stream.reserve(10, Date.UTC(2026), rollAt(100));
  assert.equal(haveSameClass(waiting, stream.reservedSegment), true, "each of them is converted by V8 when its turn comes");
});

describe("segments", () => {
  const stream = streamWith([60, 40, 30, 250, 5]);

  test("the one that holds a byte is found, and the last one holds the tail", () => {
    const table: [position: number, start: number | undefined][] = [
      [0, 0],
      [99, 0],
      [100, 100],
      [129, 100],
      [130, 130],
      [379, 130],
      [380, 380],
      [384, 380],
      [385, 380],
      [999, 380],
    ];
    for (const [position, start] of table) assert.equal(stream.segmentAt(position)?.start, start, `position ${position}`);
    assert.equal(stream.segmentAt(-1), undefined);
  });

  test("a position at a boundary belongs to the segment before it", () => {
    const table: [position: number, start: number][] = [
      [0, 0],
      [1, 0],
      [100, 0],
      [101, 100],
      [130, 100],
      [380, 130],
      [385, 380],
    ];
    for (const [position, start] of table) assert.equal(stream.partStartBefore(position), start, `position ${position}`);
  });

  test("a place exists where a segment begins and reaches that far", () => {
    for (const [start, length, there] of [
      [0, 0, true],
      [0, 100, true],
      [0, 101, false],
      [100, 30, true],
      [50, 0, false],
      [380, 5, true],
      [380, 6, false],
      [385, 0, false],
    ] as const) {
      assert.equal(stream.hasPart(start, length), there, `${start}+${length}`);
    }
  });

  test("an empty stream has only its start", () => {
    const empty = streamWith([]);
    assert.equal(empty.hasPart(0, 0), true);
    assert.equal(empty.hasPart(0, 1), false);
    assert.equal(empty.hasPart(1, 0), false);
    assert.equal(empty.partStartBefore(0), 0);
    assert.equal(empty.earliest, 0);
  });
});

describe("trimming", () => {
  test("covers whole segments up to a place, and not the one that appends on their way are for", () => {
    const stream = streamWith([60, 40, 30, 250, 5]);
    const table: [before: number, place: ReturnType<FileStream["trimPlace"]>][] = [
      [0, null],
      [99, null],
      [100, { position: 100, segmentStart: 0 }],
      [384, { position: 380, segmentStart: 130 }],
      [385, { position: 385, segmentStart: 380 }],
    ];
    for (const [before, place] of table) assert.deepEqual(stream.trimPlace(before), place, `before ${before}`);
    stream.reserve(1, 0, rollAt(100));
    assert.deepEqual(stream.trimPlace(385), { position: 380, segmentStart: 130 });
    // Those that come after them begin the next one already.
    stream.reserve(100, 0, rollAt(100));
    assert.deepEqual(stream.trimPlace(385), { position: 380, segmentStart: 130 });
  });

  test("of all there is makes the next append begin a segment, also when appends failed meanwhile", () => {
    const stream = streamWith([60]);
    stream.pendingTrim = { position: 60, segmentStart: 0 };
    assert.deepEqual(stream.reserve(5, 0, rollAt(100)), { position: 60, segmentStart: 60 });
    stream.unreserve();
    assert.deepEqual(stream.reserve(5, 0, rollAt(100)), { position: 60, segmentStart: 60 });
    stream.trim({ position: 60, segmentStart: 0 }, 2);
    stream.unreserve();
    assert.deepEqual(stream.reserve(5, 0, rollAt(100)), { position: 60, segmentStart: 60 });
  });

  test("of all there is leaves no segment once the files are gone, until the next append", () => {
    const stream = streamWith([60]);
    stream.trim({ position: 60, segmentStart: 0 }, 2);
    for (const segment of [...stream.segments]) stream.forgetSegment(segment);
    assert.equal(stream.segmentAt(60), undefined);
    const { segmentStart } = stream.reserve(5, 0, rollAt(100));
    stream.advance(recordOf(bytesOf(5)), 5, segmentStart, 3);
    assert.deepEqual(
      stream.segments.map(({ start, length }) => [start, length]),
      [[60, 5]],
    );
    assert.equal(stream.segmentAt(64), stream.segments[0]);
  });

  test("leaves every token that was given out for a kept position as it was", () => {
    const stream = streamWith([60, 40, 30]);
    stream.trim({ position: 100, segmentStart: 0 }, 2);
    for (const segment of [...stream.segments].slice(0, 1)) stream.forgetSegment(segment);
    assert.deepEqual(
      [100, 101, 130].map((position) => stream.partStartBefore(position)),
      [0, 100, 100],
    );
    // One that a reader still holds sorts before them.
    assert.equal(stream.partStartBefore(70), 0);
    assert.deepEqual([stream.hasPart(0, 100), stream.hasPart(100, 30), stream.hasPart(0, 99)], [true, true, false]);
  });
});

describe("a segment's age", () => {
  test("ends it like its size does", () => {
    const stream = new FileStream(IDENTITY, "/d", null);
    const starts = [
      [10, 100],
      [10, 1099],
      [10, 1100],
      [10, 1101],
      [0, 9000],
      [10, 9000],
    ].map(([length = 0, atMs = 0]) => stream.reserve(length, atMs, rollAt(1000, { ageMs: 1000 })).segmentStart);
    assert.deepEqual(starts, [0, 0, 20, 20, 20, 40]);
  });

  test("before a restore ends it with the first append after that", () => {
    const stream = new FileStream(IDENTITY, "/d", null);
    stream.restores = [100];
    // A clock that was put back to before the restore begins no segment with each append.
    const starts = [90, 99, 100, 100, 99, 101].map((atMs) => stream.reserve(10, atMs, rollAt(1000)).segmentStart);
    assert.deepEqual(starts, [0, 0, 20, 20, 20, 20]);
  });
});

describe("the writer of a byte", () => {
  /** A stream with ten bytes appended at each of these times, in a directory that was restored at those. */
  function restored(restores: readonly number[], times: readonly number[]): FileStream {
    const stream = new FileStream(IDENTITY, "/d", null);
    for (const atMs of times) {
      stream.restores = restores.filter((restoreMs) => restoreMs <= atMs);
      const { segmentStart } = stream.reserve(10, atMs, rollAt(1000));
      stream.advance(recordOf(bytesOf(10), { atMs }), 10, segmentStart, 1);
    }
    stream.restores = restores;
    return stream;
  }
  const { id } = IDENTITY;

  test("is another after each restore", () => {
    const stream = restored([100, 200], [90, 99, 100, 200, 201]);
    assert.deepEqual(
      [0, 1, 20, 21, 30, 31, 50, 60].map((position) => stream.writerBefore(position)),
      [id, id, id, `${id}.100`, `${id}.100`, `${id}.200`, `${id}.200`, `${id}.200`],
    );
  });

  test("of what was dropped is that of what is left, and the last of an empty stream", () => {
    const stream = restored([100, 200], [90, 100, 200]);
    stream.trim({ position: 10, segmentStart: 0 }, 2);
    for (const segment of stream.segments.slice(0, 1)) stream.forgetSegment(segment);
    assert.deepEqual([stream.writerBefore(10), stream.writerBefore(20)], [`${id}.100`, `${id}.100`]);
    assert.equal(restored([100, 200], []).writerBefore(0), `${id}.200`);
  });
});

describe("a clock that was ahead by years, and was put right", () => {
  const DAY_MS = 86_400_000;
  const NOW_MS = Date.UTC(2026);
  const AHEAD_MS = NOW_MS + 3650 * DAY_MS;
  const limits = { maxBytes: Infinity, maxAgeMs: DAY_MS };

  /** A stream with ten bytes appended at each of these times. */
  function appendedAt(times: readonly number[]): FileStream {
    const stream = new FileStream(IDENTITY, "/d", null);
    for (const atMs of times) {
      const { segmentStart } = stream.reserve(10, atMs, rollAt(1000, { ageMs: limits.maxAgeMs / 8 }));
      stream.advance(recordOf(bytesOf(10), { atMs }), 10, segmentStart, 1);
    }
    return stream;
  }

  test("ends the segment: the next append begins another", () => {
    assert.deepEqual(
      appendedAt([AHEAD_MS, NOW_MS]).segments.map(({ start }) => start),
      [0, 10],
    );
    assert.equal(appendedAt([NOW_MS, NOW_MS - 1000]).segments.length, 1, "a small step back ends none");
  });

  test("keeps nothing for years: what is before an append is no newer than that", () => {
    const stream = appendedAt([NOW_MS - 1000, AHEAD_MS, AHEAD_MS + DAY_MS, NOW_MS, NOW_MS + DAY_MS]);
    const table: [nowMs: number, position: number | undefined][] = [
      [NOW_MS - 1000 + DAY_MS, undefined],
      [NOW_MS + DAY_MS, 10],
      [NOW_MS + DAY_MS + 1, 40],
      [NOW_MS + 2 * DAY_MS, 40],
      [NOW_MS + 2 * DAY_MS + 1, 50],
    ];
    for (const [nowMs, position] of table)
      assert.equal(stream.excessPlace(limits, nowMs)?.position, position, `after ${nowMs - NOW_MS} ms`);
  });

  test("keeps what was appended before the jump no longer than what follows it", () => {
    const stream = appendedAt([NOW_MS, NOW_MS + 1, AHEAD_MS, NOW_MS + DAY_MS]);
    assert.equal(stream.excessPlace(limits, NOW_MS + DAY_MS), null);
    assert.equal(stream.excessPlace(limits, NOW_MS + DAY_MS + 2)?.position, 20);
    assert.equal(stream.excessPlace(limits, NOW_MS + 2 * DAY_MS + 1)?.position, 40);
  });

  test("keeps the last bytes until then, or until the next append is old", () => {
    const stream = appendedAt([AHEAD_MS]);
    assert.equal(stream.excessPlace(limits, NOW_MS + 100 * DAY_MS), null);
  });
});

test("a stream from a sidecar is as the sidecar says, and its bytes have yet to be checked", () => {
  const state = new MutableState();
  state.tail = 150;
  const stream = new FileStream(IDENTITY, "/d", {
    ...IDENTITY,
    state,
    earliest: { position: 0, segmentStart: 0 },
    forks: null,
    softDeleted: false,
    segments: [
      { start: 0, length: 100, crc: 1, firstAtMs: 0, newestAtMs: 0, index: "one" },
      { start: 100, length: 50, crc: 2, firstAtMs: 0, newestAtMs: 0, index: "one" },
    ],
    batch: 8,
    claimed: false,
  });
  assert.equal(stream.isPersisted, true);
  assert.equal(stream.written, 150);
  assert.deepEqual(
    stream.segments.map(({ unchecked }) => unchecked?.crc),
    [1, 2],
  );
  assert.deepEqual(stream.reserve(50, 0, rollAt(100)), { position: 150, segmentStart: 100 });
  stream.advance(recordOf("x"), 1, 100, 9);
  assert.equal(stream.isPersisted, false);
  assert.equal(stream.segments[1]?.length, 51);
});

test("a noted read is a change to make permanent, and its time never goes back", () => {
  const stream = streamWith([1]);
  stream.disk.persistedBatch = stream.lastBatch;
  stream.touch(50, 7);
  stream.touch(40, 8);
  assert.equal(stream.state.touchedAtMs, 50);
  assert.equal(stream.lastBatch, 8);
  assert.equal(stream.isPersisted, false);
});
