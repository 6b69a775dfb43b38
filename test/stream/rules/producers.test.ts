import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { MAX_PRODUCERS } from "../../../src/storage/state.js";
import type { ProducerMark } from "../../../src/storage/storage.js";
import { judgeProducer, PRODUCER_IDLE_MS, type ProducerMemory, type ProducerVerdict } from "../../../src/stream/rules/producers.js";

const NOW_MS = 10 * PRODUCER_IDLE_MS;
const MAX = 2 ** 53 - 1;

function memoryOf(marks: Readonly<Record<string, ProducerMark>>, more: Partial<ProducerMemory> = {}): ProducerMemory {
  return { markOf: (id) => marks[id], producerCount: Object.keys(marks).length, oldestProducerAtMs: NOW_MS, ...more };
}

describe("a producer whose last append was epoch 3, seq 7", () => {
  const mark = { epoch: 3, seq: 7, atMs: 0 };
  const table: [epoch: number, seq: number, verdict: ProducerVerdict][] = [
    [3, 8, { kind: "accept" }],
    [3, 7, { kind: "duplicate", mark }],
    [3, 0, { kind: "duplicate", mark }],
    [3, 9, { kind: "refused", code: "producer-gap", detail: "Producer-Seq 8 comes first.", expectedSeq: 8, receivedSeq: 9 }],
    [3, MAX, { kind: "refused", code: "producer-gap", detail: "Producer-Seq 8 comes first.", expectedSeq: 8, receivedSeq: MAX }],
    [4, 0, { kind: "accept" }],
    [MAX, 0, { kind: "accept" }],
    [4, 1, { kind: "refused", code: "epoch-must-start-at-zero", producerEpoch: 3 }],
    [4, 8, { kind: "refused", code: "epoch-must-start-at-zero", producerEpoch: 3 }],
    [2, 0, { kind: "refused", code: "stale-epoch", detail: "The epoch is 3 by now.", producerEpoch: 3 }],
    [2, 8, { kind: "refused", code: "stale-epoch", detail: "The epoch is 3 by now.", producerEpoch: 3 }],
    [0, 7, { kind: "refused", code: "stale-epoch", detail: "The epoch is 3 by now.", producerEpoch: 3 }],
  ];
  for (const [epoch, seq, verdict] of table) {
    const says = verdict.kind === "refused" ? verdict.code : verdict.kind;
    test(`sends epoch ${epoch}, seq ${seq}: ${says}`, () =>
      assert.deepEqual(judgeProducer(memoryOf({ p: mark }), { id: "p", epoch, seq }, NOW_MS), verdict));
  }
});

describe("a producer that the stream does not know", () => {
  for (const epoch of [0, 5, MAX]) {
    test(`may begin with epoch ${epoch} at seq 0`, () =>
      assert.deepEqual(judgeProducer(memoryOf({}), { id: "p", epoch, seq: 0 }, NOW_MS), { kind: "accept" }));
  }

  test("may not begin later than at seq 0", () => {
    assert.deepEqual(judgeProducer(memoryOf({ other: { epoch: 0, seq: 4, atMs: 0 } }), { id: "p", epoch: 0, seq: 5 }, NOW_MS), {
      kind: "refused",
      code: "producer-gap",
      detail: "The stream knows no such producer: it begins with Producer-Seq 0.",
      expectedSeq: 0,
      receivedSeq: 5,
    });
  });

  for (const [what, producerCount, silentMs, kind] of [
    ["there is room", MAX_PRODUCERS - 1, 0, "accept"],
    ["all are active", MAX_PRODUCERS, 0, "refused"],
    ["the oldest was active a moment less than a day ago", MAX_PRODUCERS, PRODUCER_IDLE_MS - 1, "refused"],
    ["the oldest has been silent for a day", MAX_PRODUCERS, PRODUCER_IDLE_MS, "accept"],
  ] as const) {
    test(`is ${kind === "accept" ? "taken" : "refused"} when ${what}`, () => {
      const verdict = judgeProducer(
        memoryOf({}, { producerCount, oldestProducerAtMs: NOW_MS - silentMs }),
        { id: "new", epoch: 0, seq: 0 },
        NOW_MS,
      );
      assert.equal(verdict.kind, kind);
      if (verdict.kind === "refused") assert.equal(verdict.code, "too-many-producers");
    });
  }
});
