import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { openSource, PinLostError, type SourceOptions } from "../../../../src/storage/file/backup/source.js";
import { systemFiles } from "../../../../src/storage/file/disk/files.js";
import { readMarker } from "../../../../src/storage/file/directory/marker.js";
import { encodeHolder } from "../../../../src/storage/file/directory/lock-holder.js";
import { thisProcess } from "../../../../src/ops/lock/process-identity.js";
import { procOf } from "../../../../src/storage/file/directory/journal-users.js";
import { claimSocket, Layout } from "../../../../src/storage/file/format/layout.js";
import { created, keptLog, openEngine, openFor } from "../../../helpers/engine.js";
import { filesWith } from "../../../helpers/backup.js";
import { ManualClock } from "../../../helpers/manual-clock.js";
import { tempDir } from "../../../helpers/temp-dir.js";
import { diskError } from "../../../helpers/watched-files.js";

const ID = Buffer.from("0123456789abcdef", "hex");
const GREETING = '{"streamdir":"0.1.0","protocol":1,"pid":1}\n';

function optionsFor(root: string, more: Partial<SourceOptions> = {}): SourceOptions {
  const { signal: stop } = new AbortController();
  const files = systemFiles(false);
  const layout = new Layout(root);
  return { files, layout, directoryId: ID, force: false, clock: new ManualClock(), log: keptLog().log, stop, ...more };
}

/** Files of which those in `root` take no socket. */
function withoutSockets(root: string, code: string): SourceOptions["files"] {
  return filesWith((call, path) => {
    if (call === "listen" && path.startsWith(root)) throw diskError(code);
  });
}

/** A directory whose lock is held by something that says `greeting`, and to each line it hears the next of `answers`. */
async function heldBy(t: TestContext, greeting: string, ...answers: string[]): Promise<{ options: SourceOptions; connections: Socket[] }> {
  const options = optionsFor(tempDir());
  const name = claimSocket(options.layout.lock, randomBytes(8).toString("hex"));
  const connections: Socket[] = [];
  const server = createServer((connection) => {
    connections.push(connection);
    connection.write(greeting);
    connection.on("data", () => void connection.write(answers.shift() ?? ""));
  });
  await new Promise<void>((resolve) => void server.listen(join(options.layout.root, name), resolve));
  t.after(() => {
    for (const connection of connections) connection.destroy();
    server.close();
  });
  writeFileSync(options.layout.lock, encodeHolder({ ...(await thisProcess(procOf(options.files))), socket: name }));
  return { options, connections };
}

describe("a source", () => {
  test("without a server is locked until it is closed", async () => {
    const options = optionsFor(tempDir());
    const source = await openSource(options);
    assert.equal(await source.batch(), null);
    source.assertPinned();
    await assert.rejects(openSource(options), /another backup of it is under way$/);
    await source.close();
    await (await openSource(options)).close();
  });

  test("is pinned by the server that has it open, which says which batch is durable", async (t) => {
    const engine = await openFor(t);
    await created(engine.storage, "s", "x");
    const options = optionsFor(engine.dir);
    const directoryId = await readMarker(options.files, options.layout);
    assert.ok(directoryId !== null);
    const source = await openSource({ ...options, directoryId });
    const before = await source.batch();
    await created(engine.storage, "t", "x");
    assert.equal(await source.batch(), (before ?? 0) + 1);
    source.assertPinned();
    await source.close();
  });

  for (const [what, greeting, answer, message] of [
    ["still starts", GREETING, '{"error":"starting"}\n', /its server is still starting: try again in a moment$/],
    ["has another backup", GREETING, '{"error":"backup-running"}\n', /another backup of it is under way$/],
    [
      "is too old",
      GREETING,
      '{"error":"unknown-command"}\n',
      /what has it open knows no backups: a repair, or a server of an earlier version$/,
    ],
    ["speaks otherwise", '{"streamdir":"9.0.0","protocol":2}\n', "", /its server speaks another protocol than this version$/],
    ["has another directory", GREETING, '{"pinned":"0000000000000000"}\n', /its server has another directory open$/],
    ["says what nobody knows", GREETING, '{"error":"tired"}\n', /its server says tired$/],
    ["is none of ours", "220 smtp ready\n", "", /its server says something else$/],
  ] as const) {
    test(`is refused where the server ${what}`, async (t) => {
      const { options } = await heldBy(t, greeting, answer);
      await assert.rejects(openSource(options), message);
    });
  }

  for (const why of ["journal-room", "disk-full"]) {
    test(`is lost where the server says ${why}`, async (t) => {
      const { options } = await heldBy(t, GREETING, `{"pinned":"${ID.toString("hex")}"}\n`, `{"error":"${why}"}\n`);
      const source = await openSource(options);
      await assert.rejects(source.batch(), PinLostError);
      assert.throws(() => source.assertPinned(), PinLostError);
      await source.close();
    });
  }

  test("is refused where the server ends, or gives no batch", async (t) => {
    const pinned = `{"pinned":"${ID.toString("hex")}"}\n`;
    const { options, connections } = await heldBy(t, GREETING, pinned, '{"batch":"many"}\n');
    const source = await openSource(options);
    await assert.rejects(source.batch(), /gave an answer that this version does not know$/);
    for (const connection of connections) connection.destroy();
    await assert.rejects(source.batch(), /its server ended meanwhile: run the backup again$/);
    await source.close();
  });

  test("is refused where the server does not answer, which is no end of it", async (t) => {
    const clock = new ManualClock();
    const { options } = await heldBy(t, GREETING, `{"pinned":"${ID.toString("hex")}"}\n`, "");
    const source = await openSource({ ...options, clock });
    const asked = source.batch();
    clock.advance(30_000);
    const message = `${options.layout.root}: its server (process ${process.pid}) has not answered for 30 s`;
    await assert.rejects(asked, { message });
    assert.throws(() => source.assertPinned(), { message });
    await source.close();
    assert.equal(clock.pendingCount, 0);
  });

  test("on a read-only file system goes without a lock, and is refused once somebody has opened it", async () => {
    const { dir, storage } = await openEngine();
    await storage.close();
    const source = await openSource(optionsFor(dir, { files: withoutSockets(dir, "EROFS") }));
    await source.confirm();
    source.assertPinned();
    assert.deepEqual([source.isServed, await source.batch()], [false, null]);
    const server = await openEngine({ dir });
    const message = `${dir} was opened meanwhile: run it again`;
    await assert.rejects(source.confirm(), { message });
    await server.storage.close();
    await assert.rejects(source.confirm(), { message }, "also when it was closed since");
    await source.close();
  });

  test("on a read-only file system is refused where somebody has it open", async () => {
    const dir = tempDir();
    writeFileSync(join(dir, "lock"), JSON.stringify({ pid: 7, host: "elsewhere", boot: "other" }));
    const options = optionsFor(dir, { files: withoutSockets(dir, "EROFS") });
    await assert.rejects(openSource(options), /is in use by process 7 on elsewhere/);
    await (await openSource({ ...options, force: true })).close();
  });

  test("that can't be locked is named", async () => {
    const dir = tempDir();
    await assert.rejects(openSource(optionsFor(dir, { files: withoutSockets(dir, "EIO") })), {
      message: `the directory ${dir} can't be used: EIO`,
    });
  });
});
