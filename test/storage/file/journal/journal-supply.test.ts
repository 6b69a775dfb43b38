import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { JournalPin } from "../../../../src/storage/file/journal/journal-pin.js";
import { JournalSupply } from "../../../../src/storage/file/journal/journal-supply.js";
import { keptLog, type LogLine } from "../../../helpers/engine.js";
import { fileRooms, type FileRooms } from "../../../helpers/file-rooms.js";
import { SkewedClock, SKEWS } from "../../../helpers/skewed-clock.js";
import { diskError } from "../../../helpers/watched-files.js";

interface Supplied {
  readonly rooms: FileRooms;
  readonly supply: JournalSupply;
  /** What the supply told the journal. */
  readonly told: string[];
  readonly log: readonly LogLine[];
}

async function openSupply(context: TestContext, { olderFiles = 0, rooms = fileRooms() } = {}): Promise<Supplied> {
  const { parts } = rooms;
  const told: string[] = [];
  const { log, lines } = keptLog();
  const ready = (): void => void told.push("ready");
  const fault = (error: Error): void => void told.push(`fault ${error.message}`);
  const supply = new JournalSupply(
    { ...parts, log },
    { fileBytes: 64 * 1024, smallBytes: 64 * 1024, firstSequence: 7, olderFiles, ready, fault },
  );
  const first = await supply.open();
  context.after(async () => {
    await supply.close();
    await first.close();
  });
  assert.equal(first.sequence, 7);
  return { rooms, supply, told, log: lines };
}

test("the next file is made once, however often it is asked for", async (context) => {
  const { rooms, supply, told } = await openSupply(context);
  assert.equal(supply.take(), null);
  supply.prepare();
  supply.prepare();
  await rooms.files.idle();
  assert.deepEqual(told, ["ready"]);
  const next = supply.take();
  assert.equal(next?.sequence, 8);
  assert.equal(supply.take(), null);
  await next?.close();
});

test("no file is made while three wait for their checkpoint", async (context) => {
  const { rooms, supply, told } = await openSupply(context, { olderFiles: 3 });
  supply.prepare();
  await rooms.files.idle();
  assert.deepEqual(told, []);
  await (await rooms.files.open(rooms.layout.journalFile(6), "write")).close();
  await supply.retire(rooms.layout.journalFile(6));
  supply.prepare();
  await rooms.files.idle();
  assert.deepEqual(told, ["ready"]);
});

test("a retired file is kept for the next one, a second one is removed", async (context) => {
  const { rooms, supply } = await openSupply(context, { olderFiles: 2 });
  for (const sequence of [5, 6]) await (await rooms.files.open(rooms.layout.journalFile(sequence), "write")).close();
  await supply.retire(rooms.layout.journalFile(5));
  await supply.retire(rooms.layout.journalFile(6));
  assert.deepEqual(readdirSync(rooms.layout.journal).sort(), ["0000000000000005.journal.spare", "0000000000000007.journal"]);
  supply.prepare();
  await rooms.files.idle();
  assert.deepEqual(readdirSync(rooms.layout.journal).sort(), ["0000000000000007.journal", "0000000000000008.journal"]);
});

for (const [code, waitMs, toldAtOnce] of [
  ["ENOSPC", 1000, ["ready"]],
  ["EMFILE", 100, []],
] as const) {
  test(`after ${code} it is tried again in ${waitMs} ms, not sooner`, async (context) => {
    const { rooms, supply, told, log } = await openSupply(context);
    rooms.files.gate = ({ kind }) => (kind === "open" ? diskError(code) : undefined);
    for (let tries = 0; tries < 3; tries += 1) {
      rooms.clock.advance(waitMs);
      supply.prepare();
      await rooms.files.idle();
    }
    assert.equal(log.length, 1, "said once");
    told.splice(0, told.length - toldAtOnce.length);
    assert.match(String(supply.trouble), new RegExp(code));
    assert.deepEqual(told, toldAtOnce);
    rooms.files.gate = null;
    supply.prepare();
    await rooms.files.idle();
    assert.equal(supply.take(), null);
    rooms.clock.advance(waitMs);
    supply.prepare();
    await rooms.files.idle();
    assert.equal(supply.trouble, null);
    const next = supply.take();
    assert.notEqual(next, null);
    await next?.close();
  });
}

for (const { name, skewMs } of SKEWS) {
  for (const code of ["ENOSPC", "EMFILE"] as const) {
    test(`after ${code} it is tried again whenever the timer fires, ${name}`, async (context) => {
      const rooms = fileRooms(new SkewedClock(skewMs));
      const { supply } = await openSupply(context, { rooms });
      rooms.files.gate = ({ kind }) => (kind === "open" ? diskError(code) : undefined);
      supply.prepare();
      await rooms.files.idle();
      rooms.files.gate = null;
      rooms.clock.advance(Math.max(0, (code === "EMFILE" ? 100 : 1000) + skewMs));
      supply.prepare();
      await rooms.files.idle();
      const next = supply.take();
      assert.equal(next?.sequence, 8);
      await next?.close();
    });
  }
}

test("where no file can be opened it goes on trying by itself, and says when there is one", async (context) => {
  const { rooms, supply, told } = await openSupply(context);
  rooms.files.gate = ({ kind }) => (kind === "open" ? diskError("EMFILE") : undefined);
  supply.prepare();
  for (let tries = 1; tries <= 5; tries += 1) {
    await rooms.files.idle();
    assert.deepEqual([rooms.files.count("open", /8\.journal$/), supply.isBusy, supply.lack], [tries, true, null]);
    rooms.clock.advance(100);
  }
  await rooms.files.idle();
  rooms.files.gate = null;
  rooms.clock.advance(100);
  await rooms.files.idle();
  assert.deepEqual([told, supply.isBusy], [["ready"], false]);
  await supply.take()?.close();
});

test("a try that is to come does not meet the one of who can't wait", async (context) => {
  const { rooms, supply } = await openSupply(context);
  rooms.files.gate = ({ kind }) => (kind === "open" ? diskError("EMFILE") : undefined);
  supply.prepare();
  await rooms.files.idle();
  rooms.files.gate = null;
  const forcing = supply.makeLast();
  rooms.clock.advance(100);
  const forced = await forcing;
  rooms.clock.advance(10_000);
  await rooms.files.idle();
  assert.deepEqual([forced.sequence, supply.take(), readdirSync(rooms.layout.journal).length], [8, null, 2]);
  await forced.close();
});

test("a checkpoint that can't open files keeps it busy only where no file comes before that one", async (context) => {
  const { rooms, supply } = await openSupply(context, { olderFiles: 2 });
  supply.checkpointFailed(diskError("EMFILE"));
  assert.equal(supply.isBusy, false);
  await (await supply.makeLast()).close();
  assert.deepEqual([supply.isBusy, supply.isStuck], [true, false]);
  supply.checkpointFailed(diskError("ENOSPC"));
  assert.deepEqual([supply.isBusy, supply.isStuck], [false, true]);
  const sealed = rooms.layout.journalFile(1);
  writeFileSync(sealed, "");
  await supply.retire(sealed);
  assert.deepEqual([supply.isBusy, supply.isStuck], [false, false]);
});

test("a file that finds no room is not kept: neither what was written of it, nor its descriptors", async (context) => {
  const { rooms, supply } = await openSupply(context);
  const before = rooms.files.count("open", /./) - rooms.files.count("close", /./);
  for (const failing of ["write", "syncDirectory"]) {
    rooms.files.gate = ({ kind }) => (kind === failing ? diskError("ENOSPC") : undefined);
    supply.prepare();
    await rooms.files.idle();
    assert.deepEqual(supply.lack, { offset: 0, length: 64 * 1024 });
    assert.deepEqual(readdirSync(rooms.layout.journal), ["0000000000000007.journal"]);
    assert.equal(rooms.files.count("open", /./) - rooms.files.count("close", /./), before);
    supply.roomFound();
  }
  rooms.files.gate = null;
  supply.prepare();
  await rooms.files.idle();
  assert.equal(supply.lack, null);
  await supply.take()?.close();
});

test("a disk that fails is a fault", async (context) => {
  const { rooms, supply, told } = await openSupply(context);
  rooms.files.gate = ({ kind }) => (kind === "open" ? diskError("EIO") : undefined);
  supply.prepare();
  await rooms.files.idle();
  rooms.files.gate = null;
  assert.deepEqual(told, ["fault EIO: as the test wants it"]);
});

test("the last file is waited for, also when nobody asked for one before", async (context) => {
  const { supply } = await openSupply(context);
  const forced = await supply.makeLast();
  assert.equal(forced.sequence, 8);
  await forced.close();
  supply.prepare();
  const prepared = await supply.makeLast();
  assert.equal(prepared.sequence, 9);
  await prepared.close();
});

test("the last file has nothing of an earlier use, though others are ready", async (context) => {
  const { rooms, supply } = await openSupply(context, { olderFiles: 1 });
  const { files, layout } = rooms;
  supply.prepare();
  await files.idle();
  for (const sequence of [5, 6]) writeFileSync(layout.journalFile(sequence), "bytes of a deleted stream");
  await supply.retire(layout.journalFile(5));
  await (supply.take() ?? assert.fail()).close();
  supply.prepare();
  await files.idle();
  await supply.retire(layout.journalFile(6));
  const last = await supply.makeLast();
  await last.close();
  assert.equal(last.sequence, 9);
  const holding = readdirSync(layout.journal).filter((name) => readFileSync(join(layout.journal, name)).includes("deleted"));
  assert.deepEqual(holding, []);
});

for (const kind of ["write", "syncDirectory"] as const) {
  test(`a file that can't be made because of its ${kind} is made later under the same name, and leaves nothing open`, async (context) => {
    const { rooms, supply } = await openSupply(context);
    const { files, layout, clock } = rooms;
    const path = new RegExp(layout.journalFile(8));
    files.gate = (operation) => (operation.kind === kind ? diskError("ENOSPC") : undefined);
    for (let time = 0; time < 3; time += 1) {
      supply.prepare();
      await files.idle();
      clock.advance(1000);
    }
    assert.equal(files.count("open", path), 6);
    assert.equal(files.count("close", path), 6);
    files.gate = null;
    const made = await supply.makeLast();
    assert.equal(made.sequence, 8);
    assert.equal(readdirSync(layout.journal).length, 2);
    await made.close();
  });
}

test("what was kept for a backup that ended with its process is removed when the journal opens", async (context) => {
  const rooms = fileRooms();
  writeFileSync(`${rooms.layout.journalFile(3)}.pinned`, "");
  await openSupply(context, { rooms });
  assert.deepEqual(
    readdirSync(rooms.layout.journal).filter((name) => name.endsWith(".pinned")),
    [],
  );
});

test("files are as long as they may be while one waits for its checkpoint, and while a backup keeps them", async (context) => {
  const rooms = fileRooms();
  const pin = new JournalPin(rooms.parts);
  const options = { fileBytes: 64 * 1024, smallBytes: 16 * 1024, firstSequence: 1, olderFiles: 0, pin, ready() {}, fault() {} };
  const supply = new JournalSupply(rooms.parts, options);
  const file = await supply.open();
  context.after(async () => {
    await supply.close();
    await file.close();
  });
  assert.equal(supply.sizeOf(file), 16 * 1024);
  const giveBack = pin.take(() => undefined);
  assert.equal(supply.sizeOf(file), 64 * 1024);
  giveBack?.();
  assert.equal(supply.sizeOf(file), 16 * 1024);
  const next = await supply.makeLast();
  context.after(() => next.close());
  assert.equal(supply.sizeOf(next), 64 * 1024);
});
