import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import type { Socket } from "node:net";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { systemFiles } from "../../../../src/storage/file/disk/files.js";
import { DirectoryError, takeLock, type HeldLock } from "../../../../src/storage/file/directory/lock.js";
import type { Listener } from "../../../../src/storage/file/disk/sockets.js";
import { Random } from "../../../helpers/random.js";
import { tempDir } from "../../../helpers/temp-dir.js";
import { diskError, WatchedFiles } from "../../../helpers/watched-files.js";

const SEED = Number(process.env["LOCK_SEED"] ?? Date.now() % 2 ** 31);
const HISTORIES = Number(process.env["LOCK_HISTORIES"] ?? 40);

/** Rounds of the event loop. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** What all processes of a machine share: a directory, and who of them lives. */
class Machine {
  readonly path = join(tempDir(), "lock");
  readonly random: Random;
  readonly takesSockets: boolean;
  readonly living = new Set<number>();
  #lastPid = 0;

  constructor(random: Random, takesSockets: boolean) {
    this.random = random;
    this.takesSockets = takesSockets;
  }

  start(): Starter {
    this.#lastPid += 1;
    this.living.add(this.#lastPid);
    return new Starter(this, this.#lastPid);
  }
}

/** A process that wants the lock, and whose calls take as long as they like. */
class Starter extends WatchedFiles {
  readonly pid: number;
  readonly #machine: Machine;
  readonly #listeners: Listener[];
  /** Why it was refused the last time. */
  refusal = "";

  constructor(machine: Machine, pid: number) {
    const system = systemFiles(false);
    const listeners: Listener[] = [];
    const listen = async (path: string, accept: (connection: Socket) => void): Promise<Listener> => {
      const listener = await system.listen(path, accept);
      listeners.push(listener);
      return listener;
    };
    super({ ...system, listen });
    this.#listeners = listeners;
    this.#machine = machine;
    this.pid = pid;
    // Some are slow all the way, and some only now and then.
    const slowness = machine.random.pick([0, 0, 3, 20]);
    this.gate = ({ kind }) =>
      kind === "listen" && !machine.takesSockets
        ? diskError("EPERM")
        : turns(machine.random.chance(0.1) ? 40 : machine.random.integer(0, slowness));
  }

  /** Takes the lock; `null` when it is refused. */
  async take(): Promise<HeldLock | null> {
    const { path, living, random, takesSockets } = this.#machine;
    // Without sockets, nobody can be seen in another container.
    const container = takesSockets ? this.pid % 3 : 0;
    const self = {
      pid: this.pid,
      host: `box-${container}`,
      startedAt: `boot ${this.pid}`,
      boot: "boot",
      pidNamespace: `pid:[${container}]`,
    };
    const startedAtOf = async (pid: number): Promise<string | undefined> => (living.has(pid) ? `boot ${pid}` : undefined);
    const pause = (): Promise<void> => turns(random.integer(1, 30));
    try {
      return await takeLock({
        files: this,
        path,
        self,
        startedAtOf,
        force: random.chance(0.2),
        pause,
        accept: (connection) => void connection.destroy(),
      });
    } catch (error) {
      assert.ok(error instanceof DirectoryError, String(error));
      this.refusal = error.message;
      return null;
    }
  }

  /** Ends as kill -9 does, wherever it is: what it has made stays, and nobody listens any more. */
  async kill(): Promise<void> {
    await this.freeze();
    await Promise.all(this.#listeners.map((listener) => listener.close()));
    this.#machine.living.delete(this.pid);
  }
}

/** What a killed holder leaves, or one that was killed while it asked. */
async function leaveSomething(machine: Machine): Promise<void> {
  for (let count = machine.random.integer(0, 2); count > 0; count -= 1) {
    const starter = machine.start();
    const taking = starter.take();
    if (machine.random.chance(0.5)) await taking;
    else await turns(machine.random.integer(0, 30));
    await starter.kill();
  }
}

for (const takesSockets of [true, false]) {
  describe(`those who start at once, ${takesSockets ? "on a file system that takes sockets" : "without sockets"}`, () => {
    test("and keep what they have: exactly one of them has the lock", async (t) => {
      t.diagnostic(`LOCK_SEED=${SEED}`);
      for (let history = 0; history < HISTORIES; history += 1) {
        const machine = new Machine(new Random(SEED + history), takesSockets);
        await leaveSomething(machine);
        const starters = Array.from({ length: machine.random.integer(2, 8) }, () => machine.start());
        const held = (await Promise.all(starters.map((starter) => starter.take()))).filter((lock) => lock !== null);
        assert.equal(held.length, 1, `LOCK_SEED=${SEED + history}`);
        await held[0]?.claim.end();
        assert.deepEqual(readdirSync(dirname(machine.path)), [], `LOCK_SEED=${SEED + history}`);
      }
    });

    test("and end, give it back or are killed at any moment: never do two have it", async (t) => {
      t.diagnostic(`LOCK_SEED=${SEED}`);
      for (let history = 0; history < HISTORIES; history += 1) {
        const machine = new Machine(new Random(SEED + history), takesSockets);
        const { random, living } = machine;
        const holders = new Set<number>();
        const live = async (starter: Starter): Promise<void> => {
          await turns(random.integer(0, 100));
          const lock = await starter.take();
          // Killed in the middle: whatever it would have got, nobody has.
          if (lock === null || !living.has(starter.pid)) return;
          holders.add(starter.pid);
          assert.deepEqual([...holders], [starter.pid], `LOCK_SEED=${SEED + history}`);
          await turns(random.integer(0, 60));
          holders.delete(starter.pid);
          if (!living.has(starter.pid)) return;
          if (random.chance(0.5)) await lock.claim.end();
          else await starter.kill();
        };
        const die = async (starter: Starter): Promise<void> => {
          await turns(random.integer(0, 300));
          holders.delete(starter.pid);
          await starter.kill();
        };
        const starters = Array.from({ length: random.integer(2, 8) }, () => machine.start());
        await Promise.all(starters.map((starter) => (random.chance(0.4) ? Promise.race([live(starter), die(starter)]) : live(starter))));
        await Promise.all(starters.map((starter) => starter.kill()));
        const last = machine.start();
        const lock = await last.take();
        const found = `${last.refusal}; there is ${readdirSync(dirname(machine.path)).join()}`;
        assert.ok(lock !== null, `LOCK_SEED=${SEED + history}: the next start gets it by itself: ${found}`);
        await lock.claim.end();
        assert.deepEqual(readdirSync(dirname(machine.path)), [], `LOCK_SEED=${SEED + history}`);
      }
    });
  });
}
