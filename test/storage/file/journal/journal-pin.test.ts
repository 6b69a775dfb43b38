import assert from "node:assert/strict";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { JournalPin, type PinLoss } from "../../../../src/storage/file/journal/journal-pin.js";
import { fileRooms, type FileRooms } from "../../../helpers/file-rooms.js";
import { diskError } from "../../../helpers/watched-files.js";

function journalFile({ layout }: FileRooms, sequence: number): string {
  writeFileSync(layout.journalFile(sequence), "");
  return layout.journalFile(sequence);
}

function pinnedIn({ layout }: FileRooms): string[] {
  return readdirSync(layout.journal).filter((name) => name.endsWith(".pinned"));
}

test("files are kept while the pin is taken, and go when it is given back", async () => {
  const rooms = fileRooms();
  const pin = new JournalPin(rooms.parts);
  const path = journalFile(rooms, 1);
  assert.equal(await pin.keep(path), false);
  const release = pin.take(() => assert.fail("nobody took it away"));
  assert.ok(release !== null);
  assert.equal(await pin.keep(path), true);
  assert.equal(existsSync(path), false);
  assert.deepEqual(pinnedIn(rooms), ["0000000000000001.journal.pinned"]);
  release();
  release();
  await pin.close();
  assert.deepEqual(pinnedIn(rooms), []);
});

test("one has it at a time, and who had it can't give back another's", async () => {
  const pin = new JournalPin(fileRooms().parts);
  const release = pin.take(() => undefined);
  assert.equal(
    pin.take(() => undefined),
    null,
  );
  release?.();
  const lost: PinLoss[] = [];
  assert.ok(pin.take((why) => void lost.push(why)) !== null);
  release?.();
  await pin.close();
  assert.deepEqual(lost, ["stopping"]);
});

test("it is lost, once, where the files become too many; the next one is the journal's again", async () => {
  const rooms = fileRooms();
  const pin = new JournalPin(rooms.parts, 2);
  const lost: PinLoss[] = [];
  pin.take((why) => void lost.push(why));
  const kept: boolean[] = [];
  for (const sequence of [1, 2, 3, 4]) kept.push(await pin.keep(journalFile(rooms, sequence)));
  assert.deepEqual(kept, [true, true, false, false]);
  await pin.close();
  assert.deepEqual(lost, ["journal-room"]);
  assert.deepEqual(pinnedIn(rooms), []);
});

test("it is lost on a full disk, so that a backup takes no room that appends need", async () => {
  const { parts, state, diskSpace } = fileRooms();
  const pin = new JournalPin(parts);
  const lost: PinLoss[] = [];
  pin.take((why) => void lost.push(why));
  state.emit("blocked", diskError("EMFILE"));
  assert.equal(lost.length, 0);
  state.emit("blocked", diskError("ENOSPC"));
  assert.deepEqual(lost, ["disk-full"]);
  pin.take((why) => void lost.push(why));
  diskSpace.lacked({ offset: 0, length: 1 });
  assert.deepEqual(lost, ["disk-full", "disk-full"]);
});

test("a file that is put aside while the pin ends goes, too; what can't be removed is left to the next start", async () => {
  const rooms = fileRooms();
  const pin = new JournalPin(rooms.parts);
  const release = pin.take(() => undefined);
  rooms.files.gate = ({ kind, path }) => {
    if (kind === "rename") release?.();
    return kind === "unlink" && join(path).endsWith(".pinned") ? diskError("EACCES") : undefined;
  };
  assert.equal(await pin.keep(journalFile(rooms, 1)), true);
  await pin.close();
  assert.equal(pinnedIn(rooms).length, 1);
  assert.deepEqual(
    rooms.log.map(({ message }) => message),
    ["a journal file could not be removed yet"],
  );
});
