import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, constants, existsSync, readdirSync, readFileSync, renameSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { after, describe, test, type TestContext } from "node:test";
import { isReadFailure, replaceFile, WatchedFile } from "../../src/ops/watched-file.js";
import { tempDir } from "../helpers/temp-dir.js";

const INTERVAL_MS = 5;

// A watch never keeps the process alive.
const alive = setInterval(() => {}, 60_000);
after(() => clearInterval(alive));

/** Runs `change`, and waits until a watch of `path` tells of it. */
async function changeSeen(context: TestContext, path: string, change: () => void): Promise<void> {
  await new Promise<void>((resolve) => {
    const watched = new WatchedFile([path], resolve, INTERVAL_MS);
    context.after(() => watched.close());
    change();
  });
}

describe("a watched file", () => {
  test("tells of a write, also of the same length", async (context) => {
    const path = join(tempDir(), "a.json");
    writeFileSync(path, "1");
    await changeSeen(context, path, () => writeFileSync(path, "2"));
  });

  test("tells of a file that takes its place", async (context) => {
    const path = join(tempDir(), "a.json");
    writeFileSync(path, "1");
    writeFileSync(`${path}.new`, "2");
    await changeSeen(context, path, () => renameSync(`${path}.new`, path));
  });

  test("tells of a directory on its way that becomes another, as a mounted secret does", async (context) => {
    const dir = tempDir();
    const version = (name: string): void => {
      replaceDirectory(join(dir, name));
      symlinkSync(name, join(dir, `${name}.link`));
    };
    version("one");
    version("two");
    renameSync(join(dir, "one.link"), join(dir, "data"));
    await changeSeen(context, join(dir, "data", "a.json"), () => renameSync(join(dir, "two.link"), join(dir, "data")));
  });

  test("tells of a file that appears, and of one that goes", async (context) => {
    const path = join(tempDir(), "a.json");
    await changeSeen(context, path, () => writeFileSync(path, "1"));
    await changeSeen(context, path, () => renameSync(path, `${path}.gone`));
  });

  test("tells once more where it was not to be read, though it does not change", async (context) => {
    const path = join(tempDir(), "a.json");
    writeFileSync(path, "1");
    let told = 0;
    await new Promise<void>((resolve) => {
      const watched = new WatchedFile([path], () => (++told === 3 ? resolve() : watched.lookAgain()), INTERVAL_MS);
      context.after(() => watched.close());
      watched.lookAgain();
    });
  });

  test("has the faults of files that can't be read told once, until they are others or somebody asks, and tries again", async (context) => {
    const path = join(tempDir(), "a.json");
    writeFileSync(path, "1");
    await new Promise<void>((resolve) => {
      const watched = new WatchedFile([path], resolve, INTERVAL_MS);
      context.after(() => watched.close());
      const [unread, broken] = [
        { fault: "EIO", isUnread: true },
        { fault: "no JSON", isUnread: false },
      ];
      const tellings = [[unread], [unread], [unread, broken], [broken], [broken], [], [unread]];
      assert.deepEqual(
        tellings.map((faults) => watched.noteFaults(faults)),
        [true, false, true, true, true, true, true],
      );
      watched.tellAnew();
      assert.equal(watched.noteFaults([unread]), true);
    });
  });

  test("says nothing once it is closed", async () => {
    const path = join(tempDir(), "a.json");
    const closed = new WatchedFile([path], () => assert.fail("it is closed"), INTERVAL_MS);
    closed.close();
    await new Promise<void>((resolve) => {
      const other = new WatchedFile([path], () => (other.close(), resolve()), INTERVAL_MS);
      writeFileSync(path, "1");
    });
  });
});

function replaceDirectory(path: string): void {
  const file = join(path, "a.json");
  symlinkSync(tempDir(), path);
  writeFileSync(file, "1");
}

describe("the read of a small file", () => {
  test("gives its text", async () => {
    const path = join(tempDir(), "a.json");
    writeFileSync(path, "grün");
    assert.equal(await WatchedFile.read(path, 5), "grün");
  });

  test("refuses one that is longer than its bound, is not UTF-8, or is not there", async () => {
    const path = join(tempDir(), "a.json");
    writeFileSync(path, "12345");
    await assert.rejects(WatchedFile.read(path, 4), /a\.json has more than 4 bytes/);
    writeFileSync(path, Buffer.from([0xff]));
    await assert.rejects(WatchedFile.read(path, 4), /a\.json is not UTF-8/);
    await assert.rejects(WatchedFile.read(`${path}.none`, 4), /ENOENT/);
    await assert.rejects(WatchedFile.read("/dev/zero", 4), /more than 4 bytes/);
  });

  test("may be a pipe, whose writer comes later and takes its time", async () => {
    const path = join(tempDir(), "a.pipe");
    execFileSync("mkfifo", [path]);
    const read = WatchedFile.read(path, 5);
    const writer = await open(path, "w");
    await writer.write("gr");
    await new Promise((resolve) => setImmediate(resolve));
    await writer.write("ün");
    await writer.close();
    assert.equal(await read, "grün");
  });

  test("is empty where nobody opens a pipe to write, which takes no thread, and where a writer writes nothing", async () => {
    const path = join(tempDir(), "a.pipe");
    execFileSync("mkfifo", [path]);
    const patience = { writerMs: 50, silenceMs: 3_600_000 };
    // As many as the pool has threads.
    const empty = Array.from({ length: 4 }, () => WatchedFile.read(path, 5, patience));
    assert.deepEqual(await Promise.all(empty), ["", "", "", ""]);
    const read = WatchedFile.read(path, 5, patience);
    await (await open(path, constants.O_RDWR)).close(); // without a wait for its reader
    assert.equal(await read, "");
  });

  test("is refused where the writer of a pipe stays silent", async () => {
    const path = join(tempDir(), "a.pipe");
    execFileSync("mkfifo", [path]);
    const writer = await open(path, constants.O_RDWR);
    await writer.write("1");
    const refused = { message: `${path} gave nothing for 0.05 s` };
    await assert.rejects(WatchedFile.read(path, 5, { writerMs: 50, silenceMs: 50 }), refused);
    await writer.close();
  });

  test("may be typed", { skip: existsSync("/usr/bin/script") ? false : "script is missing" }, () => {
    const url = pathToFileURL(join(import.meta.dirname, "../../src/ops/watched-file.ts")).href;
    const program = `import("${url}").then(({ WatchedFile }) => WatchedFile.read("/dev/tty", 9)).then((text) => console.log("typed", text.trim()))`;
    const command = `${process.execPath} --import tsx -e '${program}'`;
    const typed = execFileSync("script", ["-qec", command, "/dev/null"], { input: "abc\n\u0004", encoding: "utf8" });
    assert.match(typed, /typed abc/);
  });

  test("tells what the system could not read from what is wrong in it", async () => {
    const path = join(tempDir(), "a.json");
    const failure = (maxBytes: number) => WatchedFile.read(path, maxBytes).then(() => false, isReadFailure);
    assert.equal(await failure(4), true, "it is not there");
    writeFileSync(path, "12345");
    assert.equal(await failure(4), false, "it is too long");
    writeFileSync(path, Buffer.from([0xff]));
    assert.equal(await failure(4), false, "it is no text");
  });

  test("knows whether everybody may read it", async () => {
    const path = join(tempDir(), "a.json");
    writeFileSync(path, "1", { mode: 0o600 });
    assert.equal(await WatchedFile.isReadableByAll(path), false);
    chmodSync(path, 0o644);
    assert.equal(await WatchedFile.isReadableByAll(path), true);
    assert.equal(await WatchedFile.isReadableByAll(`${path}.none`), false);
  });

  test("knows whether everybody may write it", async () => {
    const path = join(tempDir(), "a.json");
    writeFileSync(path, "1");
    for (const [mode, isWritable] of [
      [0o644, false],
      [0o664, false],
      [0o646, true],
    ] as const) {
      chmodSync(path, mode);
      assert.equal(await WatchedFile.isWritableByAll(path), isWritable);
    }
    assert.equal(await WatchedFile.isWritableByAll(`${path}.none`), false);
  });
});

describe("the replacement of a file", () => {
  test("makes one that only its owner reads, and leaves nothing beside it", async () => {
    const dir = tempDir();
    await replaceFile(join(dir, "a.json"), "1");
    assert.equal(readFileSync(join(dir, "a.json"), "utf8"), "1");
    assert.equal(statSync(join(dir, "a.json")).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(dir), ["a.json"]);
  });

  test("keeps the permissions, and a symbolic link", async () => {
    const dir = tempDir();
    writeFileSync(join(dir, "real.json"), "1");
    chmodSync(join(dir, "real.json"), 0o640);
    symlinkSync("real.json", join(dir, "a.json"));
    await replaceFile(join(dir, "a.json"), "2");
    assert.equal(readFileSync(join(dir, "real.json"), "utf8"), "2");
    assert.equal(statSync(join(dir, "real.json")).mode & 0o777, 0o640);
  });

  test("follows a link to a file that is not there yet, and no circle", async () => {
    const dir = tempDir();
    symlinkSync("real.json", join(dir, "a.json"));
    await replaceFile(join(dir, "a.json"), "1");
    assert.equal(readFileSync(join(dir, "real.json"), "utf8"), "1");
    symlinkSync("b.json", join(dir, "b.json"));
    await assert.rejects(replaceFile(join(dir, "b.json"), "1"), /circle/);
  });

  test("leaves no temporary file when it fails", async () => {
    const dir = tempDir();
    symlinkSync(tempDir(), join(dir, "a.json"));
    await assert.rejects(replaceFile(join(dir, "a.json"), "1"), /EISDIR|ENOTEMPTY|EEXIST/);
    assert.deepEqual(readdirSync(dir), ["a.json"]);
  });
});
