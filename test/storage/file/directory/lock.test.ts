import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { systemFiles, type Files } from "../../../../src/storage/file/disk/files.js";
import {
  assertUnlocked,
  DirectoryError,
  lockDirectory,
  takeLock,
  type HeldLock,
  type LockOptions,
} from "../../../../src/storage/file/directory/lock.js";
import type { LockHolder } from "../../../../src/storage/file/directory/lock-holder.js";
import type { ProcessIdentity } from "../../../../src/ops/lock/process-identity.js";
import { listenOn, type Listener } from "../../../../src/storage/file/disk/sockets.js";
import { keptLog } from "../../../helpers/engine.js";
import { lacksProc } from "../../../helpers/platform.js";
import { tempDir } from "../../../helpers/temp-dir.js";
import { diskError, WatchedFiles } from "../../../helpers/watched-files.js";

const SELF: ProcessIdentity = { pid: 100, host: "here", startedAt: "boot 5", boot: "boot", pidNamespace: "pid:[1]" };
/** Somebody on another machine, whose processes nobody here can see. */
const AWAY = { pid: 7, host: "elsewhere", startedAt: "other 1", boot: "other", pidNamespace: "pid:[1]", socket: null };
const HERE = { ...AWAY, host: "here", startedAt: "boot 1", boot: "boot" };
const CLAIM = "0000000000000001";

/** A lock in a new directory; `running` says when each living process started. */
function lockIn(running: Readonly<Record<number, string | null>> = {}, more: Partial<LockOptions> = {}): LockOptions {
  return {
    files: systemFiles(false),
    path: join(tempDir(), "lock"),
    self: SELF,
    startedAtOf: async (pid) => running[pid],
    force: false,
    accept: (connection) => void connection.destroy(),
    pause: () => new Promise((resolve) => setImmediate(resolve)),
    ...more,
  };
}

/** A process that can be killed; `order` puts what it lists into order. */
class Mortal extends WatchedFiles {
  removed = 0;
  readonly #listeners: Listener[];

  constructor(order: (names: string[]) => string[]) {
    const files = systemFiles(false);
    const listeners: Listener[] = [];
    const listen: Files["listen"] = async (path, accept) => {
      const listener = await files.listen(path, accept);
      listeners.push(listener);
      return listener;
    };
    super({ ...files, listen, list: async (path) => order(await files.list(path)) });
    this.#listeners = listeners;
  }

  /** Takes a lock and gives it back, but ends as kill -9 does once so many files are removed: nobody listens any more. */
  async dieAfter(removals: number, taking: Promise<HeldLock>): Promise<void> {
    const dead = new Promise<null>((resolve) => {
      this.gate = ({ kind }) => {
        if (kind !== "unlink") return undefined;
        if (this.removed < removals) return void (this.removed += 1);
        resolve(null);
        return new Promise(() => {});
      };
    });
    const hasEnded = await Promise.race([taking.then(({ claim }) => claim.end()), dead]);
    if (hasEnded !== null) return;
    await this.freeze();
    await Promise.all(this.#listeners.map((listener) => listener.close()));
  }
}

function leave(path: string, holder: unknown): void {
  writeFileSync(path, typeof holder === "string" ? holder : JSON.stringify(holder));
}

function holderAt(path: string): LockHolder {
  return JSON.parse(readFileSync(path, "utf8")) as LockHolder; // what a lock holds
}

function isInUse(by: string): (error: unknown) => boolean {
  return (error) => error instanceof DirectoryError && error.message.startsWith(`the directory is in use by ${by} (`);
}

describe("the lock", () => {
  test("names its holder and its socket, which answers, and all is gone when it is given back", async () => {
    const options = lockIn();
    const { claim, overridden } = await takeLock(options);
    const { socket, ...holder } = holderAt(options.path);
    assert.deepEqual(holder, SELF);
    assert.deepEqual(readdirSync(dirname(options.path)).sort(), ["lock", socket]);
    assert.equal(await options.files.reach(join(dirname(options.path), socket ?? "")), "answers");
    assert.deepEqual([claim.socketFault, overridden], [null, null]);
    await claim.end();
    assert.deepEqual(readdirSync(dirname(options.path)), []);
  });

  test("that this process has itself is said to be its own", async () => {
    const options = lockIn();
    const { claim } = await takeLock(options);
    await assert.rejects(takeLock(options), /in use by process \d+ on here \(.*\): that is this process; close the server there first$/);
    await claim.end();
  });

  for (const [what, holder, running, by] of [
    ["a living process without a socket", HERE, { 7: "boot 1" }, "process 7 on here"],
    ["a process of another machine", AWAY, {}, "process 7 on elsewhere"],
    [
      "a process of another container, which has no socket",
      { ...HERE, host: "box", pidNamespace: "pid:[2]" },
      {},
      "process 7 on box in another container",
    ],
  ] as const) {
    test(`is refused while it is that of ${what}`, async () => {
      const options = lockIn(running);
      leave(options.path, holder);
      await assert.rejects(takeLock(options), isInUse(by));
      assert.deepEqual(holderAt(options.path), holder);
      assert.deepEqual(readdirSync(dirname(options.path)), ["lock"]);
    });
  }

  for (const [what, holder] of [
    ["a process that is gone", HERE],
    ["a start that was cut short", '{"pid":7,"ho'],
    ["nobody", ""],
    ["a process of this machine, before it was started again", { ...HERE, boot: "old" }],
    [
      "a process of another container, whose socket was left behind",
      { ...HERE, host: "box", pidNamespace: "pid:[2]", socket: `lock.${CLAIM}.sock` },
    ],
  ] as const) {
    test(`is taken over from ${what}`, async () => {
      const options = lockIn();
      leave(options.path, holder);
      // As nobody listens on it, any file will do.
      writeFileSync(`${options.path}.${CLAIM}.sock`, "");
      const { claim } = await takeLock(options);
      assert.equal(holderAt(options.path).pid, SELF.pid);
      assert.equal(readdirSync(dirname(options.path)).length, 2, "the socket that was left is gone");
      await claim.end();
      assert.deepEqual(readdirSync(dirname(options.path)), []);
    });
  }

  test("is not taken from who answers, though its file is gone or damaged", async () => {
    for (const text of [null, "", "{}"]) {
      const options = lockIn();
      const { claim } = await takeLock(options);
      if (text === null) await options.files.unlink(options.path);
      else writeFileSync(options.path, text);
      for (const force of [false, true]) {
        await assert.rejects(takeLock({ ...options, force }), isInUse("a process that has not said which it is"));
      }
      await claim.end();
    }
  });

  test(
    "of a process that runs without its socket is not taken, and only in a copy the line says to remove it",
    { skip: lacksProc },
    async (t) => {
      const options = lockIn({ [process.pid]: "boot 1" });
      leave(options.path, { ...HERE, pid: process.pid, socket: `lock.${CLAIM}.sock` });
      const journal = join(dirname(options.path), "journal");
      const taken = takeLock({ ...options, force: true });
      await assert.rejects(
        taken,
        /it runs, but its socket is not here; in a copy of its directory, remove this file, and otherwise stop it first$/,
      );
      mkdirSync(journal);
      const file = await options.files.createNew(join(journal, `${"1".padStart(16, "0")}.journal`));
      t.after(() => file.close());
      for (const force of [false, true])
        await assert.rejects(
          takeLock({ ...options, force }),
          /it runs and has this directory open, though its socket was removed; stop it first$/,
        );
      // Where the system does not say what a process has open.
      await assert.rejects(
        takeLock({ ...options, files: new WatchedFiles() }),
        new RegExp(
          `; look whether it has this journal open \\(ls -l /proc/${process.pid}/fd \\| grep journal\\), and stop it if so; only in a copy `,
        ),
      );
      assert.deepEqual(readdirSync(dirname(options.path)).sort(), ["journal", "lock"]);
    },
  );

  test("that this user may not ask after is only taken by force", async () => {
    const options = lockIn({ 7: "boot 1" }, { files: { ...systemFiles(false), reach: async () => "unknown" } });
    leave(options.path, { ...HERE, socket: `lock.${CLAIM}.sock` });
    await assert.rejects(takeLock(options), /this user may not connect to its socket.*--force-unlock/);
    await assertUnlocked(options.files, options.path, true);
    const { claim, overridden } = await takeLock({ ...options, force: true });
    assert.equal(overridden?.pid, 7);
    await options.files.unlink(options.path);
    await assert.rejects(takeLock(options), isInUse("a process that has not said which it is"));
    await claim.end();
  });

  test("of another user's process that has ended is taken over, and its socket leaves with it", async () => {
    const isForeign = (path: string): boolean => path.endsWith(`${CLAIM}.sock`) && existsSync(path);
    const real = systemFiles(false);
    const options = lockIn({}, { files: { ...real, reach: async (path) => (isForeign(path) ? "unknown" : real.reach(path)) } });
    leave(options.path, { ...HERE, socket: `lock.${CLAIM}.sock` });
    writeFileSync(`${options.path}.${CLAIM}.sock`, "");
    const { claim } = await takeLock(options);
    assert.equal(readdirSync(dirname(options.path)).length, 2);
    await claim.end();
    assert.deepEqual(readdirSync(dirname(options.path)), []);
  });

  test("can be read by every user, whatever the umask withholds", async () => {
    const options = lockIn();
    const umask = process.umask(0o077);
    try {
      const { claim } = await takeLock(options);
      assert.equal(statSync(options.path).mode & 0o777, 0o644);
      await claim.end();
    } finally {
      process.umask(umask);
    }
  });

  test("that is given back while it is looked at is free", async () => {
    const files = new WatchedFiles();
    const options = lockIn({}, { files });
    const { claim } = await takeLock(options);
    files.gate = ({ kind }) => (kind === "reach" ? claim.end() : undefined);
    const next = await takeLock({ ...lockIn(), path: options.path, files });
    files.gate = null;
    await next.claim.end();
  });

  test("passes other errors on, and leaves nothing behind that counts", async () => {
    for (const [kind, path] of [
      ["listen", /sock/],
      ["open", /\.new$/],
      ["write", /\.new$/],
      ["rename", /lock\.\w+\.new$/],
      ["rename", /lock\.\w+$/],
      ["list", /./],
      ["reach", /./],
    ] as const) {
      const files = new WatchedFiles();
      const options = lockIn({}, { files });
      files.gate = (operation) => (operation.kind === kind && path.test(operation.path) ? diskError("EIO") : undefined);
      await assert.rejects(takeLock(options), { code: "EIO" }, kind);
      files.gate = null;
      await (await takeLock(options)).claim.end();
      assert.deepEqual(readdirSync(dirname(options.path)), []);
    }
  });
});

describe("who else asks for the lock", () => {
  test("is waited for, and named when nothing comes of it", async () => {
    const options = lockIn({ 7: "boot 1" });
    leave(`${options.path}.${CLAIM}`, HERE);
    await assert.rejects(takeLock(options), isInUse("process 7 on here"));
    assert.deepEqual(readdirSync(dirname(options.path)), [`lock.${CLAIM}`]);
  });

  test("and has died leaves nothing that is waited for", async () => {
    const options = lockIn();
    leave(`${options.path}.${CLAIM}`, HERE);
    for (const end of [".new", ".sock.new", ".sock"]) writeFileSync(`${options.path}.${CLAIM}${end}`, "");
    const { claim } = await takeLock(options);
    assert.equal(readdirSync(dirname(options.path)).length, 2);
    await claim.end();
  });

  for (const isReversed of [false, true]) {
    test(`and has died in another container is gone for everybody, whoever dies removing it (listed ${isReversed ? "backwards" : "in order"})`, async () => {
      const claims = [CLAIM, CLAIM.replace("1", "2")];
      for (let deaths = 0; ; deaths += 1) {
        const files = new Mortal((names) => (isReversed ? names.sort().reverse() : names.sort()));
        const options = lockIn({}, { files });
        for (const id of claims) {
          leave(`${options.path}.${id}`, { ...HERE, host: "box", pidNamespace: "pid:[2]", socket: `lock.${id}.sock` });
          writeFileSync(`${options.path}.${id}.sock`, "");
        }
        await files.dieAfter(deaths, takeLock(options));
        const { claim } = await takeLock({ ...options, files: systemFiles(false), self: { ...SELF, pid: 101 } });
        await claim.end();
        assert.deepEqual(readdirSync(dirname(options.path)), []);
        if (files.removed < deaths) return assert.ok(deaths > 4);
      }
    });
  }

  test("and is on another machine is waited for, and overridden by force", async () => {
    const options = lockIn();
    leave(`${options.path}.${CLAIM}`, AWAY);
    await assert.rejects(takeLock(options), /in use by process 7 on elsewhere .*--force-unlock takes its lock away/);
    const { claim } = await takeLock({ ...options, force: true });
    await claim.end();
    assert.deepEqual(readdirSync(dirname(options.path)), []);
  });

  test("makes one give up that takes this for a leftover again and again", async () => {
    const files = new WatchedFiles();
    const options = lockIn({}, { files });
    files.gate = ({ kind, path }) => (kind === "rename" && path.endsWith(".new") ? diskError("ENOENT") : undefined);
    await assert.rejects(
      takeLock(options),
      (error: unknown) => error instanceof DirectoryError && /changes hands too fast/.test(error.message),
    );
  });
});

describe("a file system that takes no sockets", () => {
  const files: Files = { ...systemFiles(false), listen: () => Promise.reject(diskError("EPERM")) };

  test("has the lock's file alone, and the log says what that can't tell", async () => {
    const { log, lines } = keptLog();
    const path = join(tempDir(), "lock");
    const unlock = await lockDirectory(files, path, { force: false, log });
    assert.deepEqual([holderAt(path).pid, holderAt(path).socket], [process.pid, null]);
    assert.deepEqual(
      lines.map(({ level, fields }) => [level, fields["fault"]]),
      [["warn", "EPERM"]],
    );
    assert.match(lines[0]?.message ?? "", /takes no sockets: a server in another container can't be told from one that has ended/);
    await assert.rejects(
      lockDirectory(files, path, { force: true, log }),
      /it runs on this machine, where --force-unlock overrides nobody/,
    );
    await unlock();
    assert.deepEqual(readdirSync(dirname(path)), []);
  });

  test("is also one that loses them", async () => {
    const options = lockIn({}, { files: { ...systemFiles(false), reach: async () => "refuses" } });
    const { claim } = await takeLock(options);
    assert.equal(claim.socketFault, "ECONNREFUSED");
    assert.deepEqual(readdirSync(dirname(options.path)), ["lock"]);
    await claim.end();
  });
});

describe("--force-unlock", () => {
  const files = systemFiles(false);
  const away = { ...AWAY, host: `not-${hostname()}` };

  function left(holder: object): string {
    const path = join(tempDir(), "lock");
    leave(path, holder);
    return path;
  }

  test("is named where another machine has the lock, with when to use it", async () => {
    const { log } = keptLog();
    await assert.rejects(
      lockDirectory(files, left(away), { force: false, log }),
      /process 7 on not-.* can't be seen from here; once it certainly does not, --force-unlock/,
    );
    await assert.rejects(assertUnlocked(files, left(away), false), /--force-unlock takes its lock away/);
  });

  test("takes that lock away, which the log tells; looking leaves it", async () => {
    const { log, lines } = keptLog();
    const path = left(away);
    await assertUnlocked(files, path, true);
    assert.deepEqual(holderAt(path), away);
    const unlock = await lockDirectory(files, path, { force: true, log });
    assert.equal(holderAt(path).pid, process.pid);
    assert.deepEqual(
      lines.map(({ level, fields }) => [level, fields["pid"], fields["host"]]),
      [["warn", 7, away.host]],
    );
    await unlock();
    assert.ok(!existsSync(path));
  });

  test("takes nothing from who answers, or runs here", async () => {
    const { log, lines } = keptLog();
    const path = left({ pid: process.ppid, host: hostname() });
    await assert.rejects(
      lockDirectory(files, path, { force: true, log }),
      /it runs on this machine, where --force-unlock overrides nobody/,
    );
    await assert.rejects(assertUnlocked(files, path, true), /--force-unlock overrides nobody/);
    const held = join(tempDir(), "lock");
    const unlock = await lockDirectory(files, held, { force: false, log });
    // Whatever the file says: it answers.
    leave(held, { ...away, socket: holderAt(held).socket });
    await assert.rejects(lockDirectory(files, held, { force: true, log }), /in use by process 7 on not-.*overrides nobody/);
    await unlock();
    assert.deepEqual(lines, []);
  });

  test("without a lock, and with one that a crash left here, is silent", async () => {
    const { log, lines } = keptLog();
    const path = join(tempDir(), "lock");
    await (
      await lockDirectory(files, path, { force: true, log })
    )();
    writeFileSync(path, '{"pid":7,"ho');
    await (
      await lockDirectory(files, path, { force: true, log })
    )();
    assert.deepEqual(lines, []);
  });

  test("used elsewhere against this process: its lock is not given back by it", async () => {
    const { log } = keptLog();
    const path = join(tempDir(), "lock");
    const unlock = await lockDirectory(files, path, { force: false, log });
    leave(path, away);
    await unlock();
    assert.deepEqual(holderAt(path), away);
    assert.deepEqual(readdirSync(dirname(path)), ["lock"]);
  });
});

describe("looking whether a directory is in use", () => {
  test("takes no lock, and leaves what a crash left", async () => {
    const files = systemFiles(false);
    const path = join(tempDir(), "lock");
    await assertUnlocked(files, path, false);
    assert.ok(!existsSync(path));
    for (const name of [path, `${path}.${CLAIM}.sock`]) writeFileSync(name, "");
    await assertUnlocked(files, path, false);
    assert.deepEqual(readdirSync(dirname(path)).sort(), ["lock", `lock.${CLAIM}.sock`]);
  });

  test("names who has it, and finds who is just about to", async () => {
    const files = systemFiles(false);
    const { log } = keptLog();
    const path = join(tempDir(), "lock");
    const unlock = await lockDirectory(files, path, { force: false, log });
    for (const force of [false, true])
      await assert.rejects(assertUnlocked(files, path, force), isInUse(`process ${process.pid} on ${hostname()}`));
    await unlock();
    const starting = await listenOn(`${path}.${CLAIM}.sock`, () => undefined);
    for (const force of [false, true]) await assert.rejects(assertUnlocked(files, path, force), /a process that has not said/);
    await starting.close();
  });
});

describe("the socket of a lock", () => {
  test("greets, and tells what the lock's file tells of its process", async () => {
    const { log } = keptLog();
    const path = join(tempDir(), "lock");
    const unlock = await lockDirectory(systemFiles(false), path, { force: false, log });
    const client = connect(join(dirname(path), holderAt(path).socket ?? ""));
    let text = "";
    for await (const chunk of client.setEncoding("utf8").on("data", () => client.end())) text += String(chunk);
    assert.equal((JSON.parse(text) as { pid: number }).pid, process.pid); // the greeting
    await unlock();
  });
});
