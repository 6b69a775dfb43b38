import { ManualClock } from "../helpers/manual-clock.js";
import { Random } from "../helpers/random.js";
import { SimulatedDisk, type CrashKind, type FaultCode } from "../helpers/simulated-disk.js";
import type { Files } from "../../src/storage/file/files.js";
import { Client } from "./client.js";
import { checkFiles } from "./disk-check.js";
import { must, Violation } from "./model.js";
import { RunningProcess, type Sizes } from "./running-process.js";

/** How a history is run. */
export interface HistoryOptions {
  /** Stands between the server and the disk: a mutation of what it does. */
  readonly wrap?: (files: Files) => Files;
  /** Told of everything that happens. */
  readonly trace?: (line: string) => void;
}

/** What a history had in it. */
export interface HistoryCounts {
  readonly acknowledged: number;
  readonly crashes: number;
}

/** Turns of the event loop after which something that should have ended has not. */
const MAX_TURNS = 60_000;
const SETTLED = Symbol("settled");

/** Runs the history of `seed` to its end. Throws a {@link Violation} when it breaks a promise. */
export async function runHistory(seed: number, options: HistoryOptions = {}): Promise<HistoryCounts> {
  return new History(seed, options).run();
}

class History {
  readonly #random: Random;
  readonly #disk: SimulatedDisk;
  readonly #options: HistoryOptions;
  readonly #sizes: Sizes;
  readonly #client: Client;
  readonly #trace: ((line: string) => void) | null;
  #clock = new ManualClock();
  #process: RunningProcess | null = null;
  #crashes = 0;
  #startFailure: unknown = null;

  constructor(seed: number, options: HistoryOptions) {
    this.#random = new Random(seed);
    this.#disk = new SimulatedDisk(seed + 0.5 * 2 ** 32);
    this.#options = options;
    this.#trace = options.trace ?? null;
    this.#disk.trace = this.#trace;
    this.#disk.scheduler.maxDelayTurns = this.#random.pick([1, 3, 8]);
    this.#client = new Client(this.#random, this.#trace);
    this.#sizes = sizesOf(this.#random);
    this.#trace?.(`history ${seed}: ${JSON.stringify(this.#sizes)}`);
  }

  async run(): Promise<HistoryCounts> {
    const lives = this.#random.integer(2, 5);
    for (let life = 0; life < lives; life += 1) await this.#live();
    await this.#checkEnd();
    return { acknowledged: this.#client.acknowledged, crashes: this.#crashes };
  }

  /** One life of the server: start, some work, and an end of some kind. */
  async #live(): Promise<void> {
    const random = this.#random;
    if (random.chance(0.3)) this.#crashAfter(random.integer(1, 500));
    if (random.chance(0.1)) this.#failLater();
    const process = await this.#start();
    if (process === null) return;
    if (random.chance(0.6)) await this.#settle(process, this.#client.checkAll(process));
    if (!process.isAlive) return;
    if (random.chance(0.5)) process.registry.start();
    if (random.chance(0.4)) this.#crashAfter(random.integer(1, random.pick([60, 300, 1500])));
    if (random.chance(0.15)) this.#failLater();
    await this.#work(process);
    if (process.isAlive) await this.#end(process);
  }

  async #work(process: RunningProcess): Promise<void> {
    const random = this.#random;
    const steps = random.integer(5, 60);
    for (let step = 0; step < steps && process.isAlive; step += 1) {
      if (process.fault !== null && random.chance(0.2)) return this.#crash(random.pick(["kill", "power"]));
      if (random.chance(0.02)) this.#disk.isFull = !this.#disk.isFull;
      this.#client.sawFull ||= this.#disk.isFull;
      if (random.chance(0.15)) this.#clock.advance(random.pick([1, 100, 300, 1100, 4000, 31_000]));
      else this.#client.act(process);
      const turns = random.weighted([[4, 0], [4, 1], [2, random.integer(2, 30)], [1, 100]]);
      for (let count = 0; count < turns && process.isAlive; count += 1) await turn();
      this.#client.rethrow();
    }
  }

  async #end(process: RunningProcess): Promise<void> {
    const random = this.#random;
    this.#disk.isFull = false;
    if (process.fault !== null) return this.#crash(random.pick(["kill", "power"]));
    if (random.chance(0.4)) {
      await this.#settle(process, this.#client.quiesce());
      if (process.isAlive && process.fault === null && random.chance(0.5)) await this.#settle(process, this.#client.checkAll(process));
    } else if (random.chance(0.5)) return this.#crash(random.pick(["kill", "power", "power"]));
    if (!process.isAlive) return;
    await this.#close(process);
    if (process.isAlive) this.#crash(random.pick(["kill", "power"]));
  }

  async #close(process: RunningProcess): Promise<void> {
    process.registry.stop();
    await this.#settle(process, this.#client.quiesce());
    this.#client.closing();
    const hadFault = process.fault !== null;
    const closed = await this.#settle(process, process.storage.close());
    if (closed === SETTLED && !hadFault && process.fault === null) this.#client.closedCleanly();
  }

  /** The last life: no more faults, and everything is looked at, in memory and on disk. */
  async #checkEnd(): Promise<void> {
    this.#disk.calm();
    for (const round of [1, 2]) {
      this.#trace?.(`check ${round}`);
      const process = await this.#start();
      must(process !== null, () => `the last start failed: ${String(this.#startFailure)}`);
      await this.#settle(process, this.#client.checkAll(process));
      await this.#close(process);
      must(process.fault === null, () => `the disk is said to have failed: ${process.fault?.message}`);
      if (round === 2) await checkFiles(this.#disk, "/data");
      this.#crash("power");
    }
  }

  async #start(): Promise<RunningProcess | null> {
    const { wrap } = this.#options;
    const mounted = this.#disk.mount();
    this.#clock = new ManualClock(this.#clock.nowMs() + this.#random.integer(0, 50));
    const process = new RunningProcess(wrap === undefined ? mounted : wrap(mounted), this.#sizes, this.#clock, this.#trace);
    this.#process = process;
    const ended = await this.#settle(process, process.storage.open());
    if (!process.isAlive) return null;
    if (ended !== SETTLED) {
      this.#startFailure = ended;
      must(this.#client.faultInjected, () => `it does not start: ${String(ended)}`);
      this.#disk.calm();
      this.#crash(this.#random.pick(["kill", "power"]));
      return null;
    }
    return process;
  }

  /** Waits until `work` is over or the process is dead; time goes on meanwhile. Resolves to what it failed with. */
  async #settle(process: RunningProcess, work: Promise<void>): Promise<unknown> {
    let ended: unknown = null;
    work.then(() => (ended = SETTLED), (error: unknown) => (ended = error ?? "nothing"));
    for (let turns = 0; ended === null && process.isAlive; turns += 1) {
      must(turns < MAX_TURNS, () => "it hangs");
      if (turns % 64 === 63) this.#clock.advance(this.#random.pick([0, 10, 300]));
      if (this.#disk.isFull && turns % 500 === 499) this.#disk.isFull = false;
      if (process.fault !== null && turns % 100 === 99) this.#crash(this.#random.pick(["kill", "power"]));
      await turn();
      this.#client.rethrow();
    }
    if (ended instanceof Violation) throw ended;
    if (ended !== SETTLED && ended !== null) must(this.#client.faultInjected, () => `it fails: ${ended instanceof Error ? (ended.stack ?? ended.message) : String(ended)}`);
    return ended;
  }

  #failLater(): void {
    const random = this.#random;
    const code = random.pick<FaultCode>(["EIO", "EIO", "ENOSPC", "EMFILE"]);
    const calls = { EIO: /./, ENOSPC: /write|create|mkdir|rename/, EMFILE: /^(open|create)/ }[code];
    this.#client.faultInjected = true;
    this.#client.sawFull ||= code === "ENOSPC";
    this.#disk.failAfter(random.integer(0, 60), code, (call) => calls.test(call));
  }

  #crashAfter(events: number): void {
    this.#disk.crashAfter(events, this.#random.pick(["kill", "power", "power"]), () => this.#crashed());
  }

  #crash(kind: CrashKind): void {
    this.#disk.crash(kind);
    this.#crashed();
  }

  #crashed(): void {
    this.#crashes += 1;
    if (this.#process !== null) this.#process.isAlive = false;
    this.#process = null;
    this.#disk.calm();
    this.#client.crashed(this.#clock.nowMs());
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function sizesOf(random: Random): Sizes {
  return {
    segmentBytes: random.pick([300, 1000, 4000]),
    journalBytes: random.pick([4096, 8192, 16_384, 65_536]),
    journalBypassBytes: random.pick([200, 1000, 4000, 100_000]),
    tailCacheBytes: random.pick([500, 4000, 100_000]),
    maxLoadedStreams: random.pick([1, 2, 3, 100]),
  };
}
