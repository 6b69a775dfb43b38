import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { open } from "node:fs/promises";
import { Readable } from "node:stream";
import test, { after, describe } from "node:test";
import { tempDir } from "../../../helpers/temp-dir.js";
import { runClient, VerbServer, type ClientRun } from "../../../helpers/client-verb.js";
import { ARCHIVE_END } from "../../../../src/cli/client/archive/tar.js";

const source = new VerbServer({ after }, { chunkBytes: 4096 });
const target = new VerbServer({ after });

async function archiveOf(name: string): Promise<Buffer> {
  const { status, bytes, stderr } = await source.run(["export", name]);
  assert.deepEqual([status, stderr], [0, ""]);
  return bytes;
}

/** Archives one after the other, as one. */
function joined(...archives: readonly Buffer[]): Buffer {
  return Buffer.concat([...archives.map((archive) => archive.subarray(0, -ARCHIVE_END.length)), ARCHIVE_END]);
}

function importing(archive: Buffer, ...args: readonly string[]): Promise<ClientRun> {
  return target.run(["import", ...args], { stdin: archive });
}

const numbers = (count: number): string => Array.from({ length: count }, (_, at) => `{"n":${at},"text":"ü"}\n`).join("");

describe("an archive that is imported", () => {
  test("has all of a JSON stream: messages, lifetime, closure", async () => {
    await source.done(["create", "chat/ü", "--type", "application/json; v=1", "--ttl", "1h"]);
    await source.done(["append", "chat/ü", "--close", "--piece", "1KiB"], numbers(2000));
    const { status, stdout, stderr } = await importing(await archiveOf("chat/ü"));
    assert.deepEqual([status, stdout, stderr], [0, "imported  chat/ü\n", ""]);
    assert.equal(await target.done(["cat", "chat/ü"]), numbers(2000));
    const { nextOffset, createdAt, lastAppendAt, expiresAt, ...facts } = JSON.parse(await target.done(["info", "chat/ü", "--json"]));
    assert.deepEqual([facts.contentType, facts.closed, facts.ttlSeconds], ["application/json; v=1", true, 3600]);
  });

  test("has bytes as they are, cut where appends ended", async () => {
    const bytes = Buffer.from(Array.from({ length: 50_000 }, (_, at) => (at * 7919) % 256));
    await source.run(["append", "raw", "--create", "--piece", "3000"], { stdin: bytes });
    const archive = await archiveOf("raw");
    assert.equal((await importing(archive)).status, 0);
    assert.deepEqual((await target.run(["cat", "raw"])).bytes, bytes);
    const head = JSON.parse(archive.toString("latin1", 512, archive.indexOf(0x0a)));
    assert.ok(
      head.pieces.every(([length]: [number]) => length % 3000 === 0 || length === 50_000 % 3000 || length === 3000 + (50_000 % 3000)),
    );
  });

  test("has an empty stream, and one that is closed without data", async () => {
    await source.done(["create", "empty"]);
    await source.done(["create", "over", "--closed"]);
    const archive = joined(await archiveOf("empty"), await archiveOf("over"));
    for (let round = 0; round < 2; round += 1) assert.equal((await importing(archive)).status, 0);
    assert.match(await target.done(["info", "over"]), /closed/);
    assert.match(await target.done(["info", "empty"]), /open/);
  });

  test("is there after it was imported again: nothing is stored twice", async () => {
    await source.done(["append", "twice", "--json", "--create"], numbers(500));
    await source.done(["append", "twice-closed", "--json", "--create", "--close"], numbers(500));
    const archive = joined(await archiveOf("twice"), await archiveOf("twice-closed"));
    assert.equal((await importing(archive)).status, 0);
    const again = await importing(archive, "--json");
    assert.deepEqual(
      again.stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line).what),
      ["there", "there"],
    );
    assert.equal(await target.done(["cat", "twice"]), numbers(500));
  });

  test("is no directory", async () => {
    const folder = await open(tempDir());
    const stdin = Object.assign(Readable.from([]), { fd: folder.fd });
    const { status, stderr } = await target.run(["import"], { stdin });
    await folder.close();
    assert.deepEqual([status, stderr], [74, "streamdir: the input can't be read: it is a directory\n"]);
  });

  test("goes on where an import was cut off", async () => {
    await source.done(["append", "cut", "--json", "--create", "--close", "--piece", "1KiB"], numbers(1000));
    const archive = await archiveOf("cut");
    const half = await importing(archive.subarray(0, archive.length / 2));
    assert.deepEqual([half.status, half.stderr], [65, "streamdir: the archive is cut off\n"]);
    const part = await target.done(["cat", "cut"]);
    assert.ok(part.length > 0 && part.length < numbers(1000).length);
    const dry = await importing(archive, "--dry-run");
    assert.deepEqual([dry.status, dry.stdout], [0, "continued cut\n"]);
    assert.equal(await target.done(["cat", "cut"]), part);
    const { status, stdout } = await importing(archive);
    assert.deepEqual([status, stdout], [0, "continued cut\n"]);
    assert.equal(await target.done(["cat", "cut"]), numbers(1000));
    assert.match(await target.done(["info", "cut"]), /closed/);
  });

  test("leaves another stream of the name as it is, and imports the rest", async () => {
    for (const name of ["mine", "yours"]) await source.done(["append", name, "--json", "--create"], "1\n");
    await target.done(["append", "mine", "--json", "--create"], "2\n");
    const { status, stdout, stderr } = await importing(joined(await archiveOf("mine"), await archiveOf("yours")));
    assert.equal(status, 65);
    assert.match(stdout, /^refused {3}mine: a stream of this name is there, .*\nimported {2}yours\n$/);
    assert.equal(stderr, "streamdir: not imported: 1 of 2 streams\n");
    assert.equal(await target.done(["cat", "mine"]), "2\n");
  });

  test("stays as it was in a dry run, which says what would be", async () => {
    await source.done(["append", "dry", "--json", "--create"], "1\n");
    const archive = joined(await archiveOf("dry"), await archiveOf("twice"));
    const { status, stdout, stderr } = await importing(archive, "--dry-run");
    assert.deepEqual([status, stdout, stderr], [0, "imported  dry\nthere     twice\n", "streamdir: a dry run: nothing is changed\n"]);
    assert.equal((await target.run(["info", "dry"])).status, 66);
  });

  test("may be damaged: what is wrong is not taken", async () => {
    await source.done(["append", "hurt", "--json", "--create"], numbers(100));
    const archive = await archiveOf("hurt");
    const damaged = Buffer.from(archive);
    damaged[damaged.lastIndexOf("99")] = 0x38;
    for (const args of [["--dry-run"], []]) {
      const { status, stderr } = await importing(damaged, ...args);
      assert.equal(status, 65);
      assert.match(stderr, /the archive is damaged in the data of "hurt"(; 0 of its \d+ bytes are stored)?\n$/);
    }
    assert.equal(await target.done(["cat", "hurt"]), "");
    assert.equal((await importing(archive)).status, 0);
    assert.equal(await target.done(["cat", "hurt"]), numbers(100));
  });

  test("may be none", async () => {
    for (const [bytes, words] of [
      ["hello", /the input is no archive of streams: it is too short/],
      ["x".repeat(2000), /the input is no archive of streams, or damaged/],
    ] as const) {
      const { status, stderr } = await importing(Buffer.from(bytes));
      assert.equal(status, 65);
      assert.match(stderr, words);
    }
  });

  test("can be taken apart with tar", { skip: spawnSync("tar", ["--version"]).status !== 0 && "tar is missing" }, async () => {
    const listed = spawnSync("tar", ["-tvf", "-"], { input: await archiveOf("twice"), encoding: "utf8" });
    assert.deepEqual([listed.status, listed.stderr], [0, ""]);
    assert.match(listed.stdout, /^-rw-r--r-- .* 00000001\.json\n-rw-r--r-- .* 00000001\.data\n$/);
    const data = spawnSync("tar", ["-xOf", "-", "00000001.data"], { input: await archiveOf("twice"), encoding: "utf8" });
    assert.equal(data.stdout, numbers(500));
  });
});

test("SIGINT ends an import with 130", async () => {
  await source.done(["append", "slow", "--json", "--create"], "1\n");
  const archive = await archiveOf("slow");
  let interrupt = (): void => {};
  const { status } = await runClient(["import"], {
    url: await target.url(),
    stdin: {
      async *[Symbol.asyncIterator]() {
        yield archive.subarray(0, 700);
        interrupt();
        await Promise.resolve();
        throw new Error("it was destroyed");
      },
    },
    onStart: (signal) => (interrupt = () => signal("SIGINT")),
  });
  assert.equal(status, 130);
});
