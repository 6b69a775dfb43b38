import assert from "node:assert/strict";
import { readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { copyOf } from "../helpers/engine.js";
import { startStreamdir, type Ended } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";
import { framesOf, journalFilesOf } from "./journal-damages.js";
import { ServedDirectory } from "./served-directory.js";

const PARTS = ["one;", "two;", "three;", "four;"];

function flip(path: string, byte: number, bit = 0): void {
  const bytes = readFileSync(path);
  bytes.writeUInt8(bytes.readUInt8(byte) ^ (1 << bit), byte);
  writeFileSync(path, bytes);
}

function newestJournal(dir: string): string {
  return journalFilesOf(dir).at(-1) ?? "";
}

/** A server that was killed: `s` has `old;` in its own files and four appends in the journal, `other` only files of its own. */
async function killed(context: TestContext): Promise<ServedDirectory> {
  const server = new ServedDirectory(context, join(tempDir(), "data"));
  await server.start();
  for (const name of ["s", "other"]) await server.must(201, "PUT", name, "old;");
  await server.end("SIGTERM");
  await server.start();
  for (const part of PARTS) await server.must(204, "POST", "s", part);
  await server.end("SIGKILL");
  return server;
}

function repair(context: TestContext, dir: string, ...args: string[]): Promise<Ended> {
  return startStreamdir(context, ["repair", dir, ...args]).ended;
}

async function refusesToStart(server: ServedDirectory, why: RegExp): Promise<void> {
  await assert.rejects(server.start(), (error: Error) => why.test(error.message));
}

describe("a stream that may have lost its end", () => {
  test("is named and refused when the damaged record is the one that named it, until its loss is accepted", async (context) => {
    const server = await killed(context);
    flip(newestJournal(server.dir), 520);
    await refusesToStart(server, /journal file .* is damaged at byte 512: sound records follow at byte 1024/);
    const planned = await repair(context, server.dir);
    const done = await repair(context, server.dir, "--yes");
    assert.equal(done.status, 1);
    assert.match(done.stdout, /it seems to hold records of "s"; records behind it are of "s"/);
    assert.match(
      done.stdout,
      /done: stream "s": .*: refuse the stream, and keep its sidecar\nleft: stream "s": .*: records of it from position 4 on are lost, and its readers may have seen them/,
    );
    assert.equal(
      planned.stdout.replaceAll("to do:", "done:").replace(/.*\n$/, ""),
      done.stdout.replace(/.*\n$/, ""),
      "the plan says what is done",
    );

    const again = await repair(context, server.dir, "--yes");
    assert.deepEqual([again.status, again.stdout.split("\n").length], [1, 3]);
    assert.match(again.stdout, /^left: stream "s": .*from position 4 on are lost.*\n0 done, 1 left for you/);
    assert.match((await server.verify()).stdout, /^stream "s": .*meta\.json: records of it from position 4 on are lost/);
    await server.start();
    await server.mustBeDamaged("GET", "s");
    await server.mustBeDamaged("POST", "s", "more");
    assert.equal(String((await server.must(200, "GET", "other")).body), "old;");
    await server.end("SIGTERM");

    const accepted = await repair(context, server.dir, "--yes", "--accept-loss", "s");
    assert.deepEqual(
      [accepted.status, accepted.stdout],
      [
        0,
        `done: stream "s": ${join(server.layout.streamDirectory("s"), "meta.json")}: serve "s" again with 4 bytes, as its loss is accepted: positions from 4 on are given out again\n1 done, nothing is left\n`,
      ],
    );
    assert.equal((await repair(context, server.dir, "--yes")).stdout, "nothing to repair\n");
    const verified = await server.verify();
    assert.equal(verified.status, 0);
    assert.match(
      verified.stdout,
      /note: stream "s": what it had from position 4 on was given up at \d{4}-\d\d-\d\dT.*Z: records of it from position 4 on are lost/,
    );
    await server.start();
    assert.equal(String((await server.must(200, "GET", "s")).body), "old;");
    await server.must(204, "POST", "s", "new;");
    await server.end("SIGTERM");
    const later = await server.verify();
    assert.match(
      later.stdout,
      /^nothing wrong[^]*note: stream "s": what it had from position 4 on was given up/,
      "also when the server has written to it",
    );
  });

  test("is refused until it is deleted, and then the name is free", async (context) => {
    const server = await killed(context);
    flip(newestJournal(server.dir), 520);
    await repair(context, server.dir, "--yes");
    await server.start();
    await server.must(204, "DELETE", "s");
    await server.must(201, "PUT", "s", "another;");
    await server.end("SIGTERM");
    assert.equal((await repair(context, server.dir, "--yes")).stdout, "nothing to repair\n");
    const { status, stdout } = await server.verify();
    assert.deepEqual([status, /given up/.test(stdout)], [0, false]);
    await server.start();
    assert.equal(String((await server.must(200, "GET", "s")).body), "another;");
    await server.end("SIGTERM");
  });

  test("is refused where nobody can tell whose records were damaged, and records that belong to nobody are counted", async (context) => {
    const server = await killed(context);
    const path = newestJournal(server.dir);
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.fill(0, 512, 1024));
    const done = await repair(context, server.dir, "--yes");
    assert.match(done.stdout, /it may hold records of any stream; 3 sound records behind it can't be given to a stream/);
    for (const name of ["s", "other"])
      assert.match(done.stdout, new RegExp(`left: stream "${name}": .*: records of it from position 4 on may be lost`));
    await server.start();
    for (const name of ["s", "other"]) await server.mustBeDamaged("GET", name);
    await server.end("SIGTERM");
    const accepted = await repair(context, server.dir, "--yes", "--accept-loss", "oth*", "--accept-loss=nobody");
    assert.match(accepted.stdout, /done: stream "other": .*: serve "other" again with 4 bytes/);
    assert.match(accepted.stdout, /left: stream "nobody": .*: it is not refused, or not there: there is no loss to accept/);
    await server.start();
    assert.equal(String((await server.must(200, "GET", "other")).body), "old;");
    await server.mustBeDamaged("GET", "s");
    await server.end("SIGTERM");
  });
});

describe("one flipped bit after a clean stop", () => {
  for (const [what, byte] of [
    ["checksum", 9],
    ["directory", 35],
  ] as const) {
    test(`in the only frame of the journal (${what}): the start names the file, and a repair goes on from the sidecars`, async (context) => {
      const server = new ServedDirectory(context, join(tempDir(), "data"));
      await server.start();
      await server.must(201, "PUT", "s", "old;");
      await server.must(204, "POST", "s", "more;");
      await server.end("SIGTERM");
      const path = newestJournal(server.dir);
      flip(path, byte);
      await refusesToStart(server, new RegExp(`journal file ${path} is damaged at byte 0: it has no sound record`));
      assert.match((await server.verify()).stdout, /at byte 0: it has no sound record; nothing can have been lost in it/);
      const done = await repair(context, server.dir, "--yes");
      assert.equal(done.status, 0, done.stdout);
      assert.match(
        done.stdout,
        /it has no sound record; nothing can have been lost in it.*the streams' own files hold all up to batch \d+, and go on from there/,
      );
      assert.equal((await repair(context, server.dir, "--yes")).stdout, "nothing to repair\n");
      assert.equal((await server.verify()).status, 0);
      await server.start();
      assert.equal(String((await server.must(200, "GET", "s")).body), "old;more;");
      await server.must(204, "POST", "s", "new;");
      await server.end("SIGKILL");
      await server.start();
      assert.equal(String((await server.must(200, "GET", "s")).body), "old;more;new;");
      assert.deepEqual(await server.end("SIGTERM"), []);
    });
  }
});

describe("the newest journal file cut short", () => {
  test("among its records is found by the start, by verify, and by repair, which refuses who may have lost something", async (context) => {
    const server = await killed(context);
    const path = newestJournal(server.dir);
    const { offset } = framesOf(path).at(-2) ?? assert.fail();
    truncateSync(path, offset);
    await refusesToStart(server, new RegExp(`journal file ${path} is damaged at byte ${offset}: it ends here, but had 65536 bytes`));
    assert.match(
      (await server.verify()).stdout,
      new RegExp(`${path} at byte ${offset}: it ends here, but had 65536 bytes; it may hold records of any stream`),
    );
    const done = await repair(context, server.dir, "--yes");
    for (const [name, end] of [
      ["s", 12],
      ["other", 4],
    ] as const)
      assert.match(done.stdout, new RegExp(`left: stream "${name}": .*: records of it from position ${end} on may be lost`));
    const accepted = await repair(context, server.dir, "--yes", "--accept-loss", "**");
    assert.equal(accepted.status, 0, accepted.stdout);
    await server.start();
    assert.equal(String((await server.must(200, "GET", "s")).body), "old;one;two;");
    await server.end("SIGTERM");
    assert.equal((await server.verify()).status, 0);
  });

  test("behind its records has lost nothing: the server starts, verify says so, and a repair refuses nobody", async (context) => {
    const server = await killed(context);
    const path = newestJournal(server.dir);
    truncateSync(path, statSync(path).size - 100);
    assert.match(
      (await server.verify()).stdout,
      /it ends here, but had 65536 bytes; its records end before, at byte \d+; nothing can have been lost in it/,
    );
    const copy = await repair(context, server.dir);
    assert.doesNotMatch(copy.stdout, /refuse|left: /);
    await server.start();
    assert.equal(String((await server.must(200, "GET", "s")).body), `old;${PARTS.join("")}`);
    await server.end("SIGTERM");
    assert.equal((await server.verify()).status, 0);
  });

  test("to nothing is found, where it is the only one", async (context) => {
    const server = new ServedDirectory(context, join(tempDir(), "data"));
    await server.start();
    await server.must(201, "PUT", "s", "old;");
    await server.end("SIGTERM");
    truncateSync(newestJournal(server.dir), 0);
    await refusesToStart(server, /journal file .* is damaged at byte 0: it has no sound record/);
    const done = await repair(context, server.dir, "--yes", "--accept-loss", "s");
    assert.equal(done.status, 1, "what the journal had is lost");
    await server.start();
    assert.equal(String((await server.must(200, "GET", "s")).body), "old;");
    await server.end("SIGTERM");
  });
});

describe("a directory with forks that was killed", () => {
  /**
   * A source, a fork, and a fork of that with files of their own, which the journal goes on with; a third fork that only the journal has.
   */
  async function killedForks(context: TestContext): Promise<ServedDirectory> {
    const server = new ServedDirectory(context, join(tempDir(), "data"));
    const fork = async (name: string, source: string): Promise<void> => {
      const { status, body } = await server.ask("PUT", name, "own;", { "Stream-Forked-From": `/v1/stream/${source}` });
      assert.equal(status, 201, String(body));
    };
    await server.start();
    await server.must(201, "PUT", "base", "old;");
    await fork("fk1", "base");
    await fork("fk2", "fk1");
    await server.end("SIGTERM");
    await server.start();
    for (const name of ["base", "fk1", "fk2"]) await server.must(204, "POST", name, "one;");
    await fork("fk3", "base");
    for (const name of ["fk1", "fk1", "fk3"]) await server.must(204, "POST", name, "two;");
    await server.end("SIGKILL");
    return server;
  }

  test("is repaired once, wherever its journal is damaged: the next run has nothing to do, and verify agrees", async (context) => {
    const server = await killedForks(context);
    const frames = framesOf(newestJournal(server.dir)).slice(1);
    assert.equal(frames.length, 7);
    // The creation of a fork, and an append between two to one that is a source itself.
    for (const { offset, length } of [frames[3], frames[4]].filter((frame) => frame !== undefined)) {
      const dir = copyOf(server.dir);
      flip(newestJournal(dir), offset + length - 2, 2);
      const first = await repair(context, dir, "--yes");
      assert.match(first.stdout, /^done: .*set it aside, damaged at byte/m);
      const second = await repair(context, dir, "--yes");
      assert.doesNotMatch(second.stdout, /^(done|to do): /m, first.stdout);
      const { status, stdout } = await startStreamdir(context, ["verify", dir]).ended;
      assert.equal(status, second.status, stdout);
    }
  });
});
