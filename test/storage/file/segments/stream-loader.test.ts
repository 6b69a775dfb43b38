import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { describe, test, type TestContext } from "node:test";
import { DamageLog } from "../../../../src/storage/file/segments/damage-log.js";
import type { FileStream } from "../../../../src/storage/file/memory/file-stream.js";
import { encodeSidecar } from "../../../../src/storage/file/format/sidecar.js";
import { sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { StreamLoader } from "../../../../src/storage/file/segments/stream-loader.js";
import { MutableState } from "../../../../src/storage/state.js";
import { DamagedStreamError } from "../../../../src/storage/storage.js";
import { bytesOf, keptLog, type LogLine } from "../../../helpers/engine.js";
import { ended, fileRooms, type FileRooms } from "../../../helpers/file-rooms.js";

interface Loading {
  readonly loader: StreamLoader;
  readonly rooms: FileRooms;
  readonly streams: Map<string, FileStream>;
  readonly lines: readonly LogLine[];
}

/** The journal goes on with nothing. */
const NOTHING_UNOPENED = { has: () => false, open: () => Promise.resolve(null) };

async function loading(t: TestContext, lastBatch = 100): Promise<Loading> {
  const rooms = fileRooms();
  t.after(() => ended(rooms));
  const { layout } = rooms;
  const { log, lines } = keptLog();
  const streams = new Map<string, FileStream>();
  const damageLog = new DamageLog({ log, layout });
  const stream = rooms.stream("s");
  rooms.advance(stream, bytesOf(10));
  await rooms.writer.persist(stream);
  return {
    rooms,
    streams,
    lines,
    loader: new StreamLoader(rooms.parts, { streams, unopened: NOTHING_UNOPENED, damageLog, journal: { lastBatch }, restores: [] }),
  };
}

describe("a stream that is asked for", () => {
  test("comes from its files once, and from memory after that", async (t) => {
    const { loader, streams, rooms } = await loading(t);
    const [first, second] = await Promise.all([loader.find("s"), loader.find("s")]);
    assert.ok(first !== null && first === second && streams.get("s") === first);
    assert.deepEqual([first.state.tail, first.created], [10, true]);
    const opened = rooms.files.count("open", /meta/);
    assert.equal(await loader.find("s"), first);
    assert.equal(rooms.files.count("open", /meta/), opened);
  });

  test("is read again when one of its name left memory meanwhile", async (t) => {
    const { loader, streams, rooms } = await loading(t);
    const { files, writer } = rooms;
    let goOn: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (goOn = resolve));
    const reading = new Promise<void>((resolve) => {
      files.gate = ({ kind, path }) => {
        if (kind !== "close" || !path.endsWith("meta.json")) return undefined;
        files.gate = null;
        resolve();
        return held;
      };
    });
    const asked = loader.find("s");
    await reading;
    const stream = rooms.stream("s");
    streams.set("s", stream);
    rooms.advance(stream, bytesOf(10));
    stream.softDelete(2);
    await writer.persist(stream);
    loader.leave(stream);
    assert.equal(streams.size, 0);
    const asToo = loader.find("s");
    goOn();
    const found = await asked;
    assert.ok(found !== null && found !== stream && found === (await asToo));
    assert.equal(found.standing, "kept");
  });

  test("stays in memory when only another of its name leaves", async (t) => {
    const { loader, streams, rooms } = await loading(t);
    const found = await loader.find("s");
    loader.leave(rooms.stream("s"));
    assert.equal(streams.get("s"), found);
  });

  test("is not there where there are no files", async (t) => {
    const { loader } = await loading(t);
    assert.equal(await loader.find("nobody"), null);
  });

  test("is not there when its directory was only taken for it, which then goes", async (t) => {
    const { loader, rooms } = await loading(t);
    const stream = rooms.stream("unborn");
    await rooms.writer.bypass(stream, 0, 0, bytesOf(5000));
    assert.ok(existsSync(stream.directory));
    assert.equal(await loader.find("unborn"), null);
    assert.equal(existsSync(stream.directory), false);
  });

  test("is damaged when its sidecar is, or is ahead of the journal, and the log says so", async (t) => {
    const { loader, rooms, lines } = await loading(t, 0);
    await assert.rejects(loader.find("s"), /is of batch 1, but the journal ends with batch 0/);
    const { directory, id, config } = rooms.stream("t");
    rooms.advance(rooms.stream("t"), bytesOf(1));
    await rooms.writer.persist(rooms.stream("t"));
    const other = {
      id,
      name: "other",
      config,
      state: new MutableState(),
      earliest: { position: 0, segmentStart: 0 },
      forks: null,
      softDeleted: false,
      segments: [],
      batch: 0,
      claimed: false,
    };
    writeFileSync(sidecarPath(directory), encodeSidecar(other));
    await assert.rejects(loader.find("t"), (error) => error instanceof DamagedStreamError && /that of "other"/.test(error.message));
    assert.equal(lines.length, 2);
  });
});
