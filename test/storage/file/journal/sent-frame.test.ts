import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test, type TestContext } from "node:test";
import { JournalFile } from "../../../../src/storage/file/journal/journal-file.js";
import { NO_FRAME } from "../../../../src/storage/file/format/record.js";
import { takeBack, type SentFrame } from "../../../../src/storage/file/journal/sent-frame.js";
import { bytesOf } from "../../../helpers/engine.js";
import { fileRooms, type FileRooms } from "../../../helpers/file-rooms.js";
import { diskError } from "../../../helpers/watched-files.js";

const AT = 1024;

/** A frame that was sent to its place, of which so much has arrived there. */
async function sentFrame(t: TestContext, rooms: FileRooms, arrivedBytes: number): Promise<SentFrame> {
  const file = await JournalFile.open(rooms.files, rooms.layout.journalFile(1), { sequence: 1, limitBytes: 64 * 1024, readyBytes: 0 });
  t.after(() => file.close());
  const frame = bytesOf(512);
  if (arrivedBytes > 0) await file.file.write(frame.subarray(0, arrivedBytes), AT);
  return { file, offset: AT, frame, entries: [], batch: 1, isInReserve: false, isThere: false };
}

test("a frame that is there is taken back", async (t) => {
  const rooms = fileRooms();
  const sent = await sentFrame(t, rooms, 512);
  await takeBack(sent);
  const bytes = readFileSync(rooms.layout.journalFile(1));
  assert.deepEqual(bytes.subarray(AT, AT + NO_FRAME.length), NO_FRAME);
});

test("a frame of which only a part is there is left: it counts for nothing", async (t) => {
  const rooms = fileRooms();
  const sent = await sentFrame(t, rooms, 100);
  const writes = rooms.files.count("write", /journal$/);
  await takeBack(sent);
  assert.equal(rooms.files.count("write", /journal$/), writes);
});

test("what was found to be there is taken back by the next try, though it can't be read as a whole any more", async (t) => {
  const rooms = fileRooms();
  const sent = await sentFrame(t, rooms, 512);
  rooms.files.gate = ({ kind }) => (kind === "write" ? diskError("ENOSPC") : undefined);
  await assert.rejects(takeBack(sent), { code: "ENOSPC" });
  assert.equal(sent.isThere, true);
  rooms.files.gate = null;
  await sent.file.file.write(Buffer.alloc(10, 0xff), AT + 100);
  const writes = rooms.files.count("write", /journal$/);
  await takeBack(sent);
  assert.equal(rooms.files.count("write", /journal$/), writes + 1);
});
