import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { test } from "node:test";
import { reportBatch, reportCheckpoint, reportEviction, reportRecovery } from "../../src/ops/diagnostics.js";
import { createLog } from "../../src/ops/log.js";

const SILENT = createLog({ level: "silent", format: "text", write: () => assert.fail() });

const REPORTS: readonly (readonly [channel: string, report: () => void, message: object])[] = [
  ["streamdir:batch", () => reportBatch(SILENT, 2, 300, 4), { entries: 2, bytes: 300, ms: 4 }],
  ["streamdir:checkpoint", () => reportCheckpoint(SILENT, 7, 2, 4), { file: 7, streams: 2, ms: 4 }],
  ["streamdir:recovery", () => reportRecovery(SILENT, 1, 2, 300, 4), { streams: 1, records: 2, bytes: 300, ms: 4 }],
  ["streamdir:eviction", () => reportEviction(3, 10), { streams: 3, loaded: 10 }],
];

for (const [channel, report, message] of REPORTS) {
  test(`${channel} has a message while somebody subscribes, and none after`, () => {
    const heard: unknown[] = [];
    const listen = (published: unknown): void => void heard.push(published);
    report();
    subscribe(channel, listen);
    report();
    unsubscribe(channel, listen);
    report();
    assert.deepEqual(heard, [message]);
  });
}

test("an eviction of no stream is not published", () => {
  const listen = (): void => assert.fail();
  subscribe("streamdir:eviction", listen);
  reportEviction(0, 10);
  unsubscribe("streamdir:eviction", listen);
});

test("batches and checkpoints are debug lines, a recovery of some records is for information", () => {
  const lines: string[] = [];
  const log = createLog({ level: "debug", format: "text", clock: { nowMs: () => 0 }, write: (line) => lines.push(line.slice(25)) });
  reportBatch(log, 2, 300, 4);
  reportCheckpoint(log, 7, 2, 4);
  reportRecovery(log, 1, 2, 300, 4);
  reportRecovery(log, 0, 0, 0, 4);
  assert.deepEqual(lines, [
    "debug batch written entries=2 bytes=300 ms=4",
    "debug checkpoint file=7 streams=2 ms=4",
    "info  recovered from the journal streams=1 records=2 bytes=300 ms=4",
  ]);
});
