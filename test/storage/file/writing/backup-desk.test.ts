import assert from "node:assert/strict";
import { test } from "node:test";
import type { Hearer } from "../../../../src/ops/control.js";
import { BackupDesk } from "../../../../src/storage/file/writing/backup-desk.js";
import { fileRooms } from "../../../helpers/file-rooms.js";

interface Talk {
  readonly hearer: Hearer | null;
  readonly said: object[];
}

function talkTo(desk: BackupDesk): Talk {
  const said: object[] = [];
  const begin = desk.conversations.get("backup");
  assert.ok(begin !== undefined);
  const say = (line: object): void => void said.push(line);
  return { hearer: begin({ say, end: say }), said };
}

function openDesk(): { desk: BackupDesk; batches: number[] } {
  const desk = new BackupDesk(fileRooms().parts);
  const batches = [7, 9];
  desk.open({ directoryId: Buffer.from("00ff", "hex"), lastBatch: () => batches.shift() ?? 0 });
  return { desk, batches };
}

test("before the engine is open there is nothing to copy", () => {
  const talk = talkTo(new BackupDesk(fileRooms().parts));
  assert.equal(talk.hearer, null);
  assert.deepEqual(talk.said, [{ error: "starting" }]);
});

test("a backup is told which directory is pinned, and each time it asks which batch is durable", () => {
  const { desk } = openDesk();
  const { hearer, said } = talkTo(desk);
  hearer?.heard('{"command":"batch"}');
  hearer?.heard('{"command":"batch"}');
  hearer?.heard('{"command":"sing"}');
  assert.deepEqual(said, [{ pinned: "00ff" }, { batch: 7 }, { batch: 9 }, { error: "unknown-command" }]);
});

test("the journal is pinned for one backup at a time, and until that leaves", () => {
  const { desk } = openDesk();
  const first = talkTo(desk);
  assert.deepEqual(talkTo(desk), { hearer: null, said: [{ error: "backup-running" }] });
  first.hearer?.left();
  assert.notEqual(talkTo(desk).hearer, null);
});

test("a backup is told why its pin is lost", () => {
  const { desk } = openDesk();
  const { said } = talkTo(desk);
  desk.pin.lose("journal-room");
  assert.deepEqual(said.at(-1), { error: "journal-room" });
});
