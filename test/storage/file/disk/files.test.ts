import assert from "node:assert/strict";
import fs, { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { constants as system } from "node:os";
import { basename, dirname, join } from "node:path";
import { describe, test } from "node:test";
import {
  errorCode,
  isPassing,
  isDiskFull,
  readFully,
  readWhole,
  systemFiles,
  type OpenFile,
} from "../../../../src/storage/file/disk/files.js";
import { Layout } from "../../../../src/storage/file/format/layout.js";
import { haveSameClass } from "../../../helpers/hidden-class.js";
import { lacksNamespaces } from "../../../helpers/machine.js";
import { pretendPlatform } from "../../../helpers/platform.js";
import { startNode } from "../../../helpers/process.js";
import { tempDir } from "../../../helpers/temp-dir.js";
import { diskError, WatchedFiles } from "../../../helpers/watched-files.js";

for (const durable of [true, false]) {
  describe(`the system's files, ${durable ? "durable" : "without waiting for the disk"}`, () => {
    const files = systemFiles(durable);

    for (const mode of ["write", "log"] as const) {
      test(`a file opened to ${mode} is made, written at a place, and read back`, async () => {
        const path = join(tempDir(), "file");
        const file = await files.open(path, mode);
        await file.write(Buffer.from("world"), 5);
        await file.write(Buffer.from("hello"), 0);
        await file.sync();
        assert.equal(await file.size(), 10);
        assert.equal((await readFully(file, 0, 100)).toString(), "helloworld");
        await file.truncate(3);
        assert.equal(await file.size(), 3);
        await file.close();
        assert.equal(readFileSync(path, "utf8"), "hel");
      });

      test(`opening to ${mode} keeps what is there`, async () => {
        const path = join(tempDir(), "file");
        writeFileSync(path, "kept");
        const file = await files.open(path, mode);
        assert.equal(await file.size(), 4);
        await file.close();
      });
    }

    test("a size is an integer to V8, too: a float would make floats of all positions in objects like it", async () => {
      const integer = { position: 1 };
      const file = await files.open(join(tempDir(), "file"), "write");
      assert.equal(haveSameClass(integer, { position: await file.size() }), true);
      await file.close();
    });

    test("opening a replacement empties what an earlier one left, and makes what is missing", async () => {
      const path = join(tempDir(), "file");
      for (const content of ["longer", "new"]) {
        const file = await files.open(path, "replacement");
        assert.equal(await file.size(), 0);
        await file.write(Buffer.from(content), 0);
        await file.close();
        assert.equal(readFileSync(path, "utf8"), content);
      }
    });

    test("a write with a callback reports success and failure", async () => {
      const path = join(tempDir(), "file");
      const file = await files.open(path, "log");
      const written = await new Promise<Error | null>((resolve) => file.writeThen(Buffer.from("x"), 0, resolve));
      assert.equal(written, null);
      await file.close();
      const failed = await new Promise<Error | null>((resolve) => file.writeThen(Buffer.from("y"), 0, resolve));
      assert.equal(errorCode(failed), "EBADF");
      await assert.rejects(file.write(Buffer.from("y"), 0), { code: "EBADF" });
    });

    test("reading needs the file to exist, and making it anew needs it not to", async () => {
      const path = join(tempDir(), "file");
      await assert.rejects(files.open(path, "read"), { code: "ENOENT" });
      await (await files.createNew(path)).close();
      await assert.rejects(files.createNew(path), { code: "EEXIST" });
    });

    test("directories are made, listed, synced, renamed and removed", async () => {
      const root = join(tempDir(), "a", "b");
      assert.deepEqual(await files.list(root), []);
      await files.makeDirectory(root);
      await files.makeDirectory(root);
      writeFileSync(join(root, "file"), "");
      assert.deepEqual(await files.list(root), ["file"]);
      await files.syncDirectory(root);
      await files.rename(join(root, "file"), join(root, "other"));
      await files.unlink(join(root, "other"));
      assert.deepEqual(await files.list(root), []);
      await files.removeTree(root);
      await files.removeTree(root);
      assert.ok(!existsSync(root));
    });

    test("listing what is no directory is an error", async () => {
      const path = join(tempDir(), "file");
      writeFileSync(path, "");
      await assert.rejects(files.list(path), { code: "ENOTDIR" });
    });
  });
}

for (const [platform, syncs] of [
  ["linux", 0],
  ["darwin", 1],
] as const)
  test(`a durable write of the log is followed by ${syncs} syncs on ${platform}, where O_DSYNC ${syncs === 0 ? "is" : "is not"} enough`, async (context) => {
    pretendPlatform(context, platform);
    const file = await systemFiles(true).open(join(tempDir(), "file"), "log");
    const synced = context.mock.method(fs, "fdatasync");
    syncBuiltinESMExports();
    context.after(() => {
      synced.mock.restore();
      syncBuiltinESMExports();
    });
    await file.write(Buffer.from("hello"), 0);
    assert.equal(synced.mock.callCount(), syncs);
    await file.close();
  });

test("what a desktop leaves in a folder that somebody has looked into is not listed", async () => {
  const dir = tempDir();
  const left = [".DS_Store", "._meta.json", "Thumbs.db"];
  for (const name of [...left, ".hidden", "meta.json"]) writeFileSync(join(dir, name), "");
  assert.deepEqual((await systemFiles(false).list(dir)).sort(), [".hidden", "meta.json"]);
  // A stream of such a name has another directory.
  for (const name of [...left, "desktop.ini"])
    mkdirSync(join(dir, "streams", basename(new Layout(dir).streamDirectory(name))), { recursive: true });
  assert.equal((await systemFiles(false).list(join(dir, "streams"))).length, 4);
});

test("a durable directory that is gone can't be synced", async () => {
  await assert.rejects(systemFiles(true).syncDirectory(join(tempDir(), "gone")), { code: "ENOENT" });
});

describe("a socket among the files", () => {
  const files = systemFiles(false);
  const deep = (): string => {
    const dir = join(tempDir(), "a".repeat(100), "b".repeat(100));
    mkdirSync(dir, { recursive: true });
    return dir;
  };

  for (const [where, place] of [
    ["near", tempDir],
    ["at a path longer than a socket's address", deep],
  ] as const) {
    test(`${where} is this user's alone, answers from the moment that it has its name, and is left there by its listener`, async () => {
      const path = join(place(), "socket");
      assert.equal(await files.reach(path), "missing");
      const listener = await files.listen(path, (connection) => void connection.destroy());
      assert.deepEqual(readdirSync(dirname(path)), ["socket"]);
      assert.equal(statSync(path).mode & 0o777, 0o600);
      assert.equal(await files.reach(path), "answers");
      await listener.close();
      assert.equal(await files.reach(path), "refuses");
      await assert.rejects(files.listen(join(path, "below"), () => undefined));
    });
  }

  test("that can't get its name is none", async () => {
    const dir = tempDir();
    mkdirSync(join(dir, "socket"));
    await assert.rejects(
      files.listen(join(dir, "socket"), () => undefined),
      { code: "EISDIR" },
    );
    assert.deepEqual(readdirSync(dir), ["socket"]);
  });

  test("at a long path is reached without /proc, too, and nothing is left of how", { skip: lacksNamespaces }, async (t) => {
    const path = join(deep(), "socket");
    const links = tempDir();
    const program = `
      const { systemFiles } = await import(${JSON.stringify(new URL("../../../../src/storage/file/disk/files.ts", import.meta.url).href)});
      const files = systemFiles(false);
      const listener = await files.listen(${JSON.stringify(path)}, () => undefined);
      console.log(await files.linkTarget("/proc/self"), await files.reach(${JSON.stringify(path)}));
      await listener.close();
      console.log(await files.reach(${JSON.stringify(path)}));`;
    const under = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc; exec "$@"', "sh"];
    const { stdout, stderr } = await startNode(t, ["--import", import.meta.resolve("tsx"), "--input-type=module", "-e", program], {
      under,
      env: { TMPDIR: links },
    }).ended;
    assert.equal(stdout, "null answers\nrefuses\n", stderr);
    assert.deepEqual(
      readdirSync(links).filter((name) => name.startsWith("sd-")),
      [],
    );
  });

  test("a link tells where it points to; what is none, or is not there, tells nothing", async () => {
    const dir = tempDir();
    symlinkSync("elsewhere", join(dir, "link"));
    writeFileSync(join(dir, "file"), "");
    for (const [name, target] of [
      ["link", "elsewhere"],
      ["file", null],
      ["gone", null],
      ["file/below", null],
    ] as const)
      assert.equal(await files.linkTarget(join(dir, name)), target);
    await assert.rejects(files.linkTarget(join(dir, "x".repeat(5000))), { code: "ENAMETOOLONG" });
  });
});

test("a sync that failed passes for nobody, whatever its reason: it has no code", async () => {
  const file = await systemFiles(true).createNew(join(tempDir(), "a"));
  await file.close();
  await assert.rejects(file.sync(), (error: unknown) => {
    assert.match(String(error), /a sync failed: EBADF/);
    return errorCode(error) === "" && !isPassing(error);
  });
});

test("errors have the system's code, other things have none", () => {
  assert.equal(errorCode(diskError("EIO")), "EIO");
  for (const other of [new Error("x"), Object.assign(new Error("x"), { code: 5 }), "EIO", null, undefined, { code: "EIO" }])
    assert.equal(errorCode(other), "");
});

test("an error that libuv has no name for has the system's, by its number", () => {
  const unnamed = (number: number): Error =>
    Object.assign(new Error("refused"), { errno: -number, code: `Unknown system error -${number}` });
  assert.equal(errorCode(unnamed(system.errno.EDQUOT)), "EDQUOT");
  assert.ok(isDiskFull(unnamed(system.errno.EDQUOT)));
  assert.equal(errorCode(unnamed(117)), "errno 117", "where the system's table has none either, the number");
  assert.equal(
    errorCode(Object.assign(new Error("again"), { errno: -system.errno.EAGAIN, code: "EAGAIN" })),
    "EAGAIN",
    "whatever else has its number",
  );
});

test("a disk without room is told from one that fails", () => {
  for (const code of ["ENOSPC", "EDQUOT", "EFBIG"]) assert.equal(isDiskFull(diskError(code)), true);
  for (const code of ["EIO", "EROFS", "ENOENT", ""]) assert.equal(isDiskFull(diskError(code)), false);
});

test("a whole file is read, and what is not there is null", async () => {
  const files = systemFiles(false);
  const path = join(tempDir(), "file");
  assert.equal(await readWhole(files, path), null);
  writeFileSync(path, "all of it");
  assert.equal((await readWhole(files, path))?.toString(), "all of it");
  assert.equal(await readWhole(files, join(path, "below")), null);
  const watched = new WatchedFiles();
  watched.gate = ({ kind }) => (kind === "open" ? diskError("EACCES") : undefined);
  await assert.rejects(readWhole(watched, path), { code: "EACCES" });
});

test("a failed read closes the file", async () => {
  const path = join(tempDir(), "file");
  writeFileSync(path, "x");
  const watched = new WatchedFiles();
  watched.gate = ({ kind }) => (kind === "read" ? diskError("EIO") : undefined);
  await assert.rejects(readWhole(watched, path), { code: "EIO" });
  assert.equal(watched.count("close", /file/), 1);
});

test("what is longer than Node reads at a time is read in parts", async () => {
  const asked: number[] = [];
  const file = { read: async (_target: Buffer, _offset: number, length: number) => (asked.push(length), length) };
  // Nobody has room for it: all that counts is what is asked for.
  await readFully(file as unknown as OpenFile, 0, 2 ** 32, () => Buffer.alloc(0));
  assert.deepEqual([asked.every((length) => length < 2 ** 31), asked.reduce((sum, length) => sum + length, 0)], [true, 2 ** 32]);
});
