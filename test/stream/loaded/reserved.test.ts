import assert from "node:assert/strict";
import { test } from "node:test";
import { MAX_PRODUCERS, MutableState } from "../../../src/storage/state.js";
import { ReservedState } from "../../../src/stream/loaded/reserved.js";
import { judgeProducer, PRODUCER_IDLE_MS } from "../../../src/stream/rules/producers.js";
import { recordOf } from "../../helpers/engine.js";

test("with nothing pending it is the durable state", () => {
  const durable = new MutableState();
  durable.apply(recordOf("", { seq: "4", producer: { id: "p", epoch: 1, seq: 2 }, atMs: 9, closes: true }), 10);
  const reserved = new ReservedState(durable, null);
  assert.deepEqual(
    [reserved.tail, reserved.closed, reserved.closedAtMs, reserved.closedBy, reserved.lastSeq],
    [10, true, 9, { id: "p", epoch: 1, seq: 2 }, "4"],
  );
  assert.deepEqual(reserved.markOf("p"), { epoch: 1, seq: 2, atMs: 9 });
  assert.equal(reserved.markOf("q"), undefined);
  assert.deepEqual([reserved.pending, reserved.producerCount, reserved.oldestProducerAtMs], [0, 1, 9]);
});

test("what is handed in counts at once, and is the durable state when it settles", () => {
  const durable = new MutableState();
  const reserved = new ReservedState(durable, null);
  const records = [recordOf("abc", { seq: "1", producer: { id: "p", epoch: 0, seq: 0 }, atMs: 5 }), recordOf("de", { closes: true })];
  const generations = records.map((record) => reserved.reserve(record));
  assert.deepEqual([reserved.tail, reserved.closed, reserved.lastSeq, reserved.pending], [5, true, "1", 2]);
  assert.deepEqual(reserved.markOf("p"), { epoch: 0, seq: 0, atMs: 5 });
  for (const [index, record] of records.entries()) {
    durable.apply(record, record.payload.length);
    reserved.settle(generations[index] ?? 0, true);
    assert.deepEqual([reserved.tail, reserved.closed], [5, true]);
  }
  assert.deepEqual([reserved.pending, reserved.tail, reserved.markOf("p")?.seq], [0, durable.tail, 0]);
});

test("a creation that is handed in is the first of them", () => {
  const durable = new MutableState();
  const reserved = new ReservedState(durable, recordOf("hello", { closes: true, atMs: 9 }));
  assert.deepEqual([reserved.tail, reserved.closed, reserved.closedAtMs, reserved.pending], [5, true, 9, 1]);
  reserved.settle(0, false);
  assert.deepEqual([reserved.tail, reserved.closed, reserved.closedAtMs, reserved.pending], [0, false, null, 0]);
});

test("a failure takes all that was decided on it along, and what comes after counts on what is durable", () => {
  const durable = new MutableState();
  const reserved = new ReservedState(durable, null);
  const [first, second] = [
    reserved.reserve(recordOf("abc", { seq: "5" })),
    reserved.reserve(recordOf("de", { producer: { id: "p", epoch: 0, seq: 0 } })),
  ];
  reserved.settle(first, false);
  assert.deepEqual([reserved.tail, reserved.lastSeq, reserved.markOf("p"), reserved.pending], [0, null, undefined, 1]);
  const third = reserved.reserve(recordOf("new", { seq: "1" }));
  reserved.settle(second, false);
  assert.deepEqual([reserved.tail, reserved.lastSeq, reserved.pending], [3, "1", 1]);
  durable.apply(recordOf("", { seq: "1" }), 3);
  reserved.settle(third, true);
  assert.deepEqual([reserved.tail, reserved.lastSeq, reserved.pending], [3, "1", 0]);
});

test("a producer counts once, while its appends are pending, settled, and both", () => {
  const durable = new MutableState();
  const reserved = new ReservedState(durable, null);
  const recordBy = (id: string, seq: number) => recordOf("x", { producer: { id, epoch: 0, seq } });
  let underWay = reserved.reserve(recordBy("p0", 0));
  for (let index = 1; index < 10; index += 1) {
    const next = reserved.reserve(recordBy(`p${index}`, 0));
    assert.equal(reserved.producerCount, index + 1);
    durable.apply(recordBy(`p${index - 1}`, 0), 1);
    reserved.settle(underWay, true);
    assert.equal(reserved.producerCount, index + 1);
    underWay = next;
  }
  reserved.reserve(recordBy("p3", 1));
  assert.equal(reserved.producerCount, 10);
});

test("the newest mark of each producer counts, whatever their order", () => {
  const durable = new MutableState();
  const reserved = new ReservedState(durable, null);
  const seqs = (): (number | undefined)[] => ["", "a", "b"].map((id) => reserved.markOf(id)?.seq);
  const records = [
    ["a", 0],
    ["a", 1],
    ["b", 0],
    ["a", 2],
    ["b", 1],
    ["", 0],
  ] as const;
  const seen = records.map(([id, seq]) => {
    reserved.reserve(recordOf("", { producer: { id, epoch: 0, seq } }));
    return [...seqs(), reserved.producerCount];
  });
  assert.deepEqual(seen, [
    [undefined, 0, undefined, 1],
    [undefined, 1, undefined, 1],
    [undefined, 1, 0, 2],
    [undefined, 2, 0, 2],
    [undefined, 2, 1, 2],
    [0, 2, 1, 3],
  ]);
  for (const [id, seq] of records) {
    durable.apply(recordOf("", { producer: { id, epoch: 0, seq } }), 0);
    reserved.settle(0, true);
    assert.deepEqual(seqs(), reserved.pending === 0 ? ["", "a", "b"].map((each) => durable.producers?.get(each)?.seq) : [0, 2, 1]);
  }
  assert.deepEqual([...seqs(), reserved.producerCount], [0, 2, 1, 3]);
});

test("producers of both are counted, and the oldest is that of the durable state", () => {
  const durable = new MutableState();
  const reserved = new ReservedState(durable, null);
  assert.equal(reserved.oldestProducerAtMs, Infinity);
  durable.apply(recordOf("", { producer: { id: "a", epoch: 0, seq: 0 }, atMs: 3 }), 0);
  durable.apply(recordOf("", { producer: { id: "b", epoch: 0, seq: 0 }, atMs: 4 }), 0);
  reserved.reserve(recordOf("", { producer: { id: "c", epoch: 0, seq: 0 }, atMs: 5 }));
  assert.deepEqual([reserved.producerCount, reserved.oldestProducerAtMs], [3, 3]);
  const empty = new MutableState();
  empty.producers = new Map();
  assert.equal(new ReservedState(empty, null).oldestProducerAtMs, Infinity);
});

test("the oldest is the producer that one more would push out, after the newcomers that are on their way", () => {
  const durable = new MutableState();
  const apply = (id: string, atMs: number, seq = 0): void => durable.apply(recordOf("", { producer: { id, epoch: 0, seq }, atMs }), 0);
  for (let at = 0; at < MAX_PRODUCERS; at += 1) apply(`p${at}`, at);
  const reserved = new ReservedState(durable, null);
  const reserve = (id: string): number => reserved.reserve(recordOf("", { producer: { id, epoch: 0, seq: 1 }, atMs: 9999 }));
  assert.equal(reserved.oldestProducerAtMs, 0);
  reserve("p1");
  assert.equal(reserved.oldestProducerAtMs, 0);
  reserve("p0");
  assert.equal(reserved.oldestProducerAtMs, 2);
  reserve("new");
  assert.equal(reserved.oldestProducerAtMs, 3);
  reserve("newer");
  assert.equal(reserved.oldestProducerAtMs, 4);
  for (const id of ["p1", "p0", "new", "newer"]) {
    apply(id, 9999, 1);
    reserved.settle(0, true);
  }
  assert.deepEqual([reserved.oldestProducerAtMs, durable.producers?.has("p3"), durable.producers?.has("p4")], [4, false, true]);
  for (let at = 0; at < MAX_PRODUCERS; at += 1) reserve(`q${at}`);
  assert.equal(reserved.oldestProducerAtMs, Infinity);
});

test("a producer that newcomers on their way push out is unknown: back after them, it would push out an active one", () => {
  const durable = new MutableState();
  const nowMs = PRODUCER_IDLE_MS;
  const recordBy = (id: string, seq: number, atMs = nowMs) => recordOf("", { producer: { id, epoch: 0, seq }, atMs });
  for (let at = 0; at < MAX_PRODUCERS; at += 1) durable.apply(recordBy(`p${at}`, 0, at === 0 ? 0 : nowMs - 1), 0);
  const reserved = new ReservedState(durable, null);
  const judged = (id: string, seq: number): string => {
    const verdict = judgeProducer(reserved, { id, epoch: 0, seq }, nowMs);
    return verdict.kind === "refused" ? verdict.code : verdict.kind;
  };
  assert.deepEqual([judged("p0", 1), judged("p1", 1), judged("new", 0)], ["accept", "accept", "accept"]);
  reserved.reserve(recordBy("new", 0));
  assert.deepEqual([judged("p0", 1), judged("p0", 0), judged("p1", 1)], ["producer-gap", "too-many-producers", "accept"]);
  durable.apply(recordBy("new", 0), 0);
  assert.deepEqual([durable.producers?.has("p0"), durable.producers?.has("p1")], [false, true]);
});

test("a producer that is back before newcomers is known, and they push out the next", () => {
  const durable = new MutableState();
  const recordBy = (id: string, seq: number) => recordOf("", { producer: { id, epoch: 0, seq } });
  for (let at = 0; at < MAX_PRODUCERS; at += 1) durable.apply(recordBy(`p${at}`, 0), 0);
  const reserved = new ReservedState(durable, null);
  for (const record of [recordBy("p0", 1), recordBy("new", 0)]) reserved.reserve(record);
  assert.deepEqual(
    ["p0", "p1", "p2"].map((id) => reserved.markOf(id)?.seq),
    [1, undefined, 0],
  );
});

test("a mark that is durable counts no longer as pending while others are", () => {
  const durable = new MutableState();
  const reserved = new ReservedState(durable, null);
  const recordBy = (id: string, seq = 0) => recordOf("", { producer: { id, epoch: 0, seq } });
  const settle = (id: string, seq = 0): void => {
    durable.apply(recordBy(id, seq), 0);
    reserved.settle(0, true, { id, epoch: 0, seq });
  };
  for (const record of [recordBy("p0"), recordBy("p0", 1), recordBy("last")]) reserved.reserve(record);
  settle("p0");
  assert.deepEqual([reserved.markOf("p0")?.seq, reserved.producerCount], [1, 2]);
  settle("p0", 1);
  assert.deepEqual([reserved.markOf("p0")?.seq, reserved.producerCount], [1, 2]);
  for (let at = 1; at <= MAX_PRODUCERS; at += 1) durable.apply(recordBy(`p${at}`), 0);
  assert.deepEqual([durable.producers?.has("p0"), reserved.markOf("p0"), reserved.pending], [false, undefined, 1]);
  assert.equal(reserved.producerCount, MAX_PRODUCERS + 1);
});
