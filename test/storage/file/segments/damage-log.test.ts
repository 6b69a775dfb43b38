import assert from "node:assert/strict";
import { test } from "node:test";
import { DamageLog, noticeOf } from "../../../../src/storage/file/segments/damage-log.js";
import type { FileStream } from "../../../../src/storage/file/memory/file-stream.js";
import { Layout } from "../../../../src/storage/file/format/layout.js";
import { DamagedStreamError, type Rejection, type Settlement } from "../../../../src/storage/storage.js";
import { keptLog, type LogLine } from "../../../helpers/engine.js";

interface Removal {
  readonly stream: FileStream;
  readonly settle: (how: Settlement) => void;
}

function damageOf(rejection: Rejection | null = null): {
  damageLog: DamageLog;
  remove: (stream: FileStream, settle: (how: Settlement) => void) => Rejection | null;
  removals: Removal[];
  lines: LogLine[];
} {
  const { log, lines } = keptLog();
  const removals: Removal[] = [];
  const remove = (stream: FileStream, settle: (how: Settlement) => void): Rejection | null => {
    removals.push({ stream, settle });
    return rejection;
  };
  return { damageLog: new DamageLog({ log, layout: new Layout("/data") }), remove, removals, lines };
}

test("a finding is logged once with stream, file and byte, and again when it is another one", () => {
  const { damageLog, lines } = damageOf();
  const find = (file: string, problem: string, offset: number | null = null): unknown =>
    damageLog.told(new DamagedStreamError("s", file, problem, offset));
  for (let time = 0; time < 3; time += 1) {
    assert.ok(find("0.seg", "too short", 7) instanceof DamagedStreamError);
    find("1.seg", "too short");
  }
  find("0.seg", "missing");
  assert.deepEqual(lines, [
    { level: "error", message: "a stream is damaged", fields: { stream: "s", file: "0.seg", offset: 7, problem: "too short" } },
    { level: "error", message: "a stream is damaged", fields: { stream: "s", file: "1.seg", problem: "too short" } },
    { level: "error", message: "a stream is damaged", fields: { stream: "s", file: "0.seg", problem: "missing" } },
  ]);
});

test("a stream's directory that says what was found just now is not logged again", () => {
  const { damageLog, lines } = damageOf();
  const found = new DamagedStreamError("s", "/data/0.seg", "it can't be written (EACCES)");
  damageLog.told(found);
  for (let time = 0; time < 2; time += 1) damageLog.told(new DamagedStreamError("s", "/data/meta.json", noticeOf(found)));
  assert.deepEqual(
    lines.map(({ fields }) => fields["file"]),
    ["/data/0.seg"],
  );
  damageLog.told(new DamagedStreamError("t", "/data/t/meta.json", noticeOf(found)));
  assert.equal(lines.length, 2, "of another stream it is news");
});

test("what is no finding is not logged", () => {
  const { damageLog, lines } = damageOf();
  const fault = new Error("other");
  assert.equal(damageLog.told(fault), fault);
  assert.deepEqual(lines, []);
});

test("of the findings only the last thousand files are remembered", () => {
  const { damageLog, lines } = damageOf();
  for (let index = 0; index <= 1000; index += 1) damageLog.told(new DamagedStreamError("s", `${index}.seg`, "missing"));
  damageLog.told(new DamagedStreamError("s", "1000.seg", "missing"));
  assert.equal(lines.length, 1001);
  damageLog.told(new DamagedStreamError("s", "0.seg", "missing"));
  assert.equal(lines.length, 1002);
});

test("a damaged stream that nobody knows is deleted with its directory, once, and whoever asks for the name waits", async () => {
  const { damageLog, remove, removals } = damageOf();
  const deletions = [damageLog.delete("s", null, remove), damageLog.delete("s", null, remove)];
  let isSettled = false;
  const settled = damageLog.deleted("s").then(() => (isSettled = true));
  assert.equal(removals.length, 1);
  const { stream, settle } = removals[0] ?? assert.fail();
  assert.deepEqual([stream.name, stream.directory], ["s", new Layout("/data").streamDirectory("s")]);
  assert.equal(isSettled, false);
  settle("durable");
  assert.deepEqual(await Promise.all(deletions), ["durable", "durable"]);
  await settled;
  await damageLog.deleted("s");
});

test("a deletion that is not taken may be tried again", async () => {
  const { damageLog, remove, removals } = damageOf("overloaded");
  assert.equal(await damageLog.delete("s", null, remove), "overloaded");
  assert.equal(await damageLog.delete("s", null, remove), "overloaded");
  assert.equal(removals.length, 2);
});

test("a stream made anew after a deletion is told of anew", async () => {
  const { damageLog, remove, removals, lines } = damageOf();
  damageLog.told(new DamagedStreamError("s", "0.seg", "missing"));
  const deleted = damageLog.delete("s", null, remove);
  removals[0]?.settle("durable");
  await deleted;
  damageLog.told(new DamagedStreamError("s", "0.seg", "missing"));
  assert.equal(lines.length, 2);
});

test("streams are counted once, until they are deleted", () => {
  const { damageLog } = damageOf();
  for (const [stream, file] of [
    ["a", "a/0.seg"],
    ["a", "a/1.seg"],
    ["b", "b/0.seg"],
  ] as const)
    damageLog.told(new DamagedStreamError(stream, file, "missing"));
  assert.equal(damageLog.streamCount, 2);
  const told: Settlement[] = [];
  const settle = damageLog.forgetting("a", (how) => told.push(how));
  settle("overloaded");
  assert.equal(damageLog.streamCount, 2);
  settle("durable");
  assert.deepEqual([damageLog.streamCount, told], [1, ["overloaded", "durable"]]);
});
