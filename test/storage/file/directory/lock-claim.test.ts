import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { systemFiles, type Files } from "../../../../src/storage/file/disk/files.js";
import { Claim, type ClaimOptions } from "../../../../src/storage/file/directory/lock-claim.js";
import { decodeHolder } from "../../../../src/storage/file/directory/lock-holder.js";
import { tempDir } from "../../../helpers/temp-dir.js";
import { diskError, WatchedFiles } from "../../../helpers/watched-files.js";

const SELF = { pid: 100, host: "here", startedAt: "boot 5", boot: "boot", pidNamespace: "pid:[1]" };

function optionsIn(files: Files): ClaimOptions {
  return { files, path: join(tempDir(), "lock"), self: SELF, accept: (connection) => void connection.destroy() };
}

function namesIn({ path }: ClaimOptions): string[] {
  return readdirSync(dirname(path)).sort();
}

async function published(options: ClaimOptions): Promise<Claim> {
  const claim = await Claim.publish(options);
  assert.ok(claim !== null);
  return claim;
}

describe("a claim", () => {
  test("is seen by name, names its process and a socket that answers", async () => {
    const options = optionsIn(systemFiles(false));
    const claim = await published(options);
    assert.deepEqual(namesIn(options), [`lock.${claim.id}`, `lock.${claim.id}.sock`]);
    const holder = decodeHolder(readFileSync(`${options.path}.${claim.id}`));
    assert.deepEqual(holder, { ...SELF, socket: `lock.${claim.id}.sock` });
    assert.equal(await options.files.reach(`${options.path}.${claim.id}.sock`), "answers");
    await claim.end();
    assert.deepEqual(namesIn(options), []);
  });

  test("becomes the lock, in the place of whatever was there, and keeps its socket", async () => {
    const options = optionsIn(systemFiles(false));
    writeFileSync(options.path, "stale");
    const claim = await published(options);
    assert.equal(await claim.promote(), true);
    assert.deepEqual(namesIn(options), ["lock", `lock.${claim.id}.sock`]);
    assert.equal(await options.files.reach(`${options.path}.${claim.id}.sock`), "answers");
    await claim.end();
    assert.deepEqual(namesIn(options), []);
  });

  test("listens before it is seen, and listens until it is seen no more", async () => {
    const files = new WatchedFiles();
    const options = optionsIn(files);
    await (await published(options)).end();
    const claim = await published(options);
    await claim.promote();
    await claim.end();
    const changes = files.operations
      .filter(({ kind }) => ["listen", "rename", "unlink"].includes(kind))
      .map(({ kind, path }) => [kind, path.replace(/[0-9a-f]{16}/, "ID").slice(dirname(path).length + 1)]);
    assert.deepEqual(changes, [
      ["listen", "lock.ID.sock"],
      ["rename", "lock.ID.new"],
      ["unlink", "lock.ID"],
      ["unlink", "lock.ID.sock"],
      ["listen", "lock.ID.sock"],
      ["rename", "lock.ID.new"],
      ["rename", "lock.ID"],
      ["unlink", "lock"],
      ["unlink", "lock.ID.sock"],
    ]);
  });

  test("whose files another took for leftovers is none, and leaves nothing", async () => {
    const files = new WatchedFiles();
    const options = optionsIn(files);
    files.gate = ({ kind, path }) => (kind === "rename" && path.endsWith(".new") ? diskError("ENOENT") : undefined);
    assert.equal(await Claim.publish(options), null);
    files.gate = ({ kind }) => (kind === "listen" ? diskError("ENOENT") : undefined);
    assert.equal(await Claim.publish(options), null);
    files.gate = null;
    const claim = await published(options);
    await files.unlink(`${options.path}.${claim.id}`);
    assert.equal(await claim.promote(), false);
    await claim.end();
    assert.deepEqual(
      namesIn(options).filter((name) => !name.endsWith(".new")),
      [],
    );
  });

  test("that can't tell at its end whose the lock is leaves it, with a socket that refuses: the next start knows what that is", async () => {
    const files = new WatchedFiles();
    const options = optionsIn(files);
    const claim = await published(options);
    await claim.promote();
    files.gate = ({ kind }) => (kind === "open" ? diskError("EMFILE") : undefined);
    await claim.end();
    assert.deepEqual(namesIn(options), ["lock", `lock.${claim.id}.sock`]);
    assert.equal(await files.reach(`${options.path}.${claim.id}.sock`), "refuses");
  });

  for (const [kind, path] of [
    ["unlink", /lock$/],
    ["open", /lock$/],
  ] as const) {
    test(`whose end fails (${kind}) listens no more all the same`, async () => {
      const files = new WatchedFiles();
      const options = optionsIn(files);
      const claim = await published(options);
      await claim.promote();
      files.gate = (operation) => (operation.kind === kind && path.test(operation.path) ? diskError("EIO") : undefined);
      await assert.rejects(claim.end(), { code: "EIO" });
      assert.equal(await files.reach(`${options.path}.${claim.id}.sock`), "refuses");
    });
  }
});

describe("a claim without a socket", () => {
  for (const code of ["EPERM", "EACCES", "ENOTSUP", "EINVAL", "ENOSYS", "ENAMETOOLONG"]) {
    test(`is made where the file system says ${code}`, async () => {
      const options = optionsIn({ ...systemFiles(false), listen: () => Promise.reject(diskError(code)) });
      const claim = await published(options);
      assert.equal(claim.socketFault, code);
      assert.equal(decodeHolder(readFileSync(`${options.path}.${claim.id}`))?.socket, null);
      assert.equal(await claim.promote(), true);
      await claim.end();
      assert.deepEqual(namesIn(options), []);
    });
  }

  test("is not made where the disk is full or fails, or there are too many files", async () => {
    for (const code of ["ENOSPC", "EIO", "EMFILE", "EROFS"]) {
      const options = optionsIn({ ...systemFiles(false), listen: () => Promise.reject(diskError(code)) });
      await assert.rejects(Claim.publish(options), { code });
    }
  });

  test("is made where a socket is taken and not found again; nothing is left of that one", async () => {
    const options = optionsIn({ ...systemFiles(false), reach: async () => "refuses" });
    const claim = await published(options);
    assert.equal(claim.socketFault, "ECONNREFUSED");
    assert.deepEqual(namesIn(options), [`lock.${claim.id}`]);
    await claim.end();
  });

  test("leaves no socket that listens when that can't be found out", async () => {
    const files = new WatchedFiles();
    const options = optionsIn(files);
    files.gate = ({ kind }) => (kind === "reach" ? diskError("EMFILE") : undefined);
    await assert.rejects(Claim.publish(options), { code: "EMFILE" });
    files.gate = null;
    const [left = ""] = namesIn(options);
    assert.equal(await files.reach(join(dirname(options.path), left)), "refuses");
  });
});
