import { ManualClock } from "../helpers/manual-clock.js";
import { SkewedClock } from "../helpers/skewed-clock.js";
import { Random } from "../helpers/random.js";
import { SimulatedDisk, type CrashKind } from "../helpers/simulated-disk.js";
import type { TtlMode } from "../../src/stream/rules/expiry.js";
import { KEEP_ALL, type RetentionLimits } from "../../src/stream/loaded/retention.js";
import { DamagedStreamError } from "../../src/storage/storage.js";
import type { Files } from "../../src/storage/file/disk/files.js";
import { pickFlip, type BitFlip } from "./bit-flips.js";
import { Client } from "./client.js";
import { checkFiles, findingsOf, listed, nameAt } from "./disk-check.js";
import { crashAmidCrucial, delayCrucial, failLater, lackFrames } from "./disk-faults.js";
import { Ledger } from "./ledger.js";
import { must, Violation } from "./model.js";
import { someNames } from "./names.js";
import { RunningProcess, type ProcessSettings } from "./running-process.js";
import { withFastTurns } from "./turns.js";

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
/** The most appends and other calls in a crowd of streams before the event loop has its turn. */
const MAX_CROWD_ACTS = 6;
/** After a sweep, for what it found to be gone. */
const TURNS_OF_SWEEP = 200;
/** How often a server ends at the moment of an answer, and of one that only tells of what was there. */
const CUT_AT_ANSWER = 0.01;
const CUT_AT_CITATION = 0.1;
const DIR = "/data";
const SETTLED = Symbol("settled");

/** Runs the history of `seed` to its end. Throws a {@link Violation} when it breaks a promise. */
export function runHistory(seed: number, options: HistoryOptions = {}): Promise<HistoryCounts> {
  return withFastTurns(() => new History(seed, options).run());
}

/** How much later than they should, by the time of day, the timers of one life fire. */
const TIMER_SKEWS_MS = [0, -1, 30];

class History {
  readonly #random: Random;
  readonly #disk: SimulatedDisk;
  readonly #options: HistoryOptions;
  readonly #settings: ProcessSettings;
  readonly #ledger: Ledger;
  readonly #client: Client;
  readonly #trace: ((line: string) => void) | null;
  /** The part of the disk's calls that take seconds, in lives in which it is slow. */
  readonly #slowPart: number;
  readonly #maxActs: number;
  readonly #forks: boolean;
  readonly #whims: Random;
  /** Whether the power may go at the very moment of an answer. */
  readonly #cutsAtAnswers: boolean;
  #isCalm = false;
  #clock = new ManualClock();
  #process: RunningProcess | null = null;
  #crashes = 0;
  #startFailure: unknown = null;

  constructor(seed: number, options: HistoryOptions) {
    const random = (this.#random = new Random(seed));
    this.#disk = new SimulatedDisk(seed + 0.5 * 2 ** 32);
    this.#options = options;
    this.#trace = options.trace ?? null;
    this.#disk.trace = this.#trace;
    this.#settings = settingsOf(random);
    this.#forks = random.chance(0.3);
    const names = someNames(random, this.#forks);
    this.#maxActs = names.length > 4 ? MAX_CROWD_ACTS : 1;
    this.#slowPart = random.pick([0, 0, 0, 0.002, 0.02]);
    this.#ledger = new Ledger(names, this.#settings.ttlMode);
    this.#disk.onFault = (path) => (this.#ledger.hasFailedIndex ||= path.endsWith(".idx"));
    const isLimited = this.#settings.retention !== KEEP_ALL;
    const whims = (this.#whims = new Random(seed + 0.25 * 2 ** 32));
    this.#cutsAtAnswers = whims.chance(0.3);
    this.#disk.isCopyOnWrite = whims.chance(0.4);
    const mayTrim = isLimited ? random.chance(0.3) : random.chance(0.1);
    const traits = {
      trims: mayTrim || (this.#forks && whims.chance(0.5)),
      forks: this.#forks,
      isImpatient: whims.chance(0.5),
      isRestless: whims.chance(0.15),
    };
    const onAnswer = (cites: boolean): void => this.#answered(cites);
    this.#client = new Client({ random, whims, ledger: this.#ledger, traits, trace: this.#trace, onAnswer });
    this.#trace?.(`history ${seed}: ${JSON.stringify(this.#settings)}`);
  }

  async run(): Promise<HistoryCounts> {
    const random = this.#random;
    const maxDelayTurns = random.pick([1, 3, 8]);
    // Few histories look at how a directory is made: it takes as long as all the rest.
    if (random.chance(0.85)) await this.#makeDirectory();
    this.#disk.scheduler.maxDelayTurns = maxDelayTurns;
    const lives = random.integer(2, 5);
    for (let life = 0; life < lives; life += 1) {
      await this.#live();
      // What a spoilt source does to its forks is a test of its own.
      if (random.chance(0.07) && !this.#forks) await this.#flipBit();
    }
    await this.#checkEnd();
    return { acknowledged: this.#ledger.acknowledged, crashes: this.#crashes };
  }

  async #makeDirectory(): Promise<void> {
    this.#disk.scheduler.maxDelayTurns = 0;
    const process = await this.#start();
    must(process !== null, () => `the first start failed: ${String(this.#startFailure)}`);
    if (this.#random.chance(0.5)) await this.#close(process);
    this.#crash("power");
  }

  /** One life of the server: start, some work, and an end of some kind. */
  async #live(): Promise<void> {
    const random = this.#random;
    const { scheduler } = this.#disk;
    scheduler.slowPart = random.chance(0.5) ? this.#slowPart : 0;
    if (random.chance(0.08)) await this.#dieAtStarts();
    if (random.chance(0.3)) this.#crashAfter(random.integer(1, 500));
    this.#ledger.started();
    if (random.chance(0.1)) this.#failLater();
    if (this.#whims.chance(0.2)) delayCrucial(this.#disk, this.#whims);
    if (this.#whims.chance(0.1)) crashAmidCrucial(this.#disk, this.#whims, () => this.#crashed());
    const process = await this.#start();
    if (process === null) return;
    if (random.chance(0.6)) await this.#settle(process, this.#client.checkAll(process));
    if (!process.isAlive) return;
    if (random.chance(0.5)) process.registry.start();
    if (random.chance(0.4)) this.#crashAfter(random.integer(1, random.pick([60, 300, 1500])));
    if (random.chance(0.15)) this.#failLater();
    if (this.#whims.chance(0.15)) crashAmidCrucial(this.#disk, this.#whims, () => this.#crashed());
    if (this.#whims.chance(0.15)) this.#lackFrames();
    await this.#work(process);
    if (process.isAlive) await this.#end(process);
  }

  /** The server dies several times in a row before it is ready, by kill and by power as it comes. */
  async #dieAtStarts(): Promise<void> {
    for (let deaths = this.#random.integer(2, 5); deaths > 0; deaths -= 1) {
      this.#ledger.started();
      this.#crashAfter(this.#random.integer(1, 120));
      const process = await this.#start();
      if (process === null) continue;
      const turns = this.#random.integer(0, 60);
      for (let count = 0; count < turns && process.isAlive; count += 1) await turn();
      if (process.isAlive) this.#crash(this.#random.pick(["kill", "power"]));
    }
  }

  async #work(process: RunningProcess): Promise<void> {
    const random = this.#random;
    const steps = random.integer(5, 60);
    // A disk may be full for a moment, or for the rest of the server's life.
    const staysFull = random.chance(0.1);
    for (let step = 0; step < steps && process.isAlive; step += 1) {
      if (process.fault !== null && random.chance(0.2)) return this.#crash(random.pick(["kill", "power"]));
      if (random.chance(0.02)) this.#disk.isFull = staysFull || !this.#disk.isFull;
      // Clients hear of it most while they are at work.
      if (this.#disk.isCopyOnWrite && this.#whims.chance(0.03)) this.#disk.isFull = !this.#disk.isFull;
      this.#ledger.sawFull ||= this.#disk.isFull;
      if (random.chance(0.15)) this.#clock.advance(random.pick([1, 100, 300, 1100, 4000, 31_000]));
      else for (let acts = random.integer(1, this.#maxActs); acts > 0; acts -= 1) this.#client.act(process);
      const turns = random.weighted([
        [4, 0],
        [4, 1],
        [2, random.integer(2, 30)],
        [1, 100],
      ]);
      for (let count = 0; count < turns && process.isAlive; count += 1) await turn();
      this.#client.rethrow();
    }
  }

  async #end(process: RunningProcess): Promise<void> {
    const random = this.#random;
    if (random.chance(0.7)) this.#disk.isFull = false;
    if (process.fault !== null) return this.#crash(random.pick(["kill", "power"]));
    if (random.chance(0.4)) {
      await this.#settle(process, this.#client.quiesce());
      if (process.isAlive && process.fault === null && random.chance(0.5)) await this.#settle(process, this.#client.checkAll(process));
    } else if (random.chance(0.5)) return this.#crash(random.pick(["kill", "power", "power"]));
    if (!process.isAlive) return;
    if (random.chance(0.08)) this.#failLater();
    if (random.chance(0.1)) this.#crashAfter(random.integer(1, 100));
    await this.#close(process);
    if (process.isAlive) this.#crash(random.pick(["kill", "power"]));
  }

  async #close(process: RunningProcess): Promise<void> {
    process.registry.stop();
    await this.#settle(process, this.#client.quiesce());
    this.#trace?.("closing");
    const hadFault = process.fault !== null;
    const closed = await this.#settle(process, process.storage.close());
    if (closed === SETTLED && !hadFault && process.fault === null) this.#ledger.closedCleanly();
  }

  /** A bit of a file turns around while no server runs. Whoever looks at it must notice, and nobody else suffers. */
  async #flipBit(): Promise<void> {
    // Else a power cut may yet take back what the bit does not matter for, as a trim that a kill left unsynced.
    this.#disk.settle();
    const flip = pickFlip(this.#disk, DIR, this.#random);
    const name = flip === null ? undefined : nameAt(this.#ledger.names, DIR, flip.path);
    if (flip === null || name?.isDamaged === true) return;
    this.#disk.calm();
    this.#disk.scheduler.slowPart = 0;
    const hadDamage = this.#ledger.names.some(({ isDamaged, hasLostIndex }) => isDamaged || hasLostIndex);
    const before = await findingsOf(this.#disk, DIR);
    // What a start could not read for a moment has a notice until the next one.
    if (before.some(({ problem }) => problem.startsWith("meta.json: it can't be read (EIO)"))) return;
    must(hadDamage || before.length === 0, () => `verify says: ${listed(before)}`);
    // A second bit of an index that is lost already adds nothing to what is said of it.
    if (flip.effect === "index" && before.some(({ file }) => file === flip.path)) return;
    this.#trace?.(`bit ${flip.bit} of ${flip.path} flips: ${flip.effect}`);
    this.#disk.flipBit(flip.path, flip.bit);
    const after = await findingsOf(this.#disk, DIR);
    const isFound = listed(after) !== listed(before);
    must(
      flip.effect === "buried" || isFound === (flip.effect !== "harmless"),
      () => `bit ${flip.bit} of ${flip.path} flipped (${flip.effect}), verify says: ${listed(after)}; before: ${listed(before)}`,
    );
    if (flip.effect === "refused") return this.#refuseStart(flip);
    if (name === undefined || flip.effect === "harmless") return;
    if (flip.effect === "index" || flip.path.endsWith(".idx")) name.hasLostIndex = true;
    else name.isDamaged = true;
  }

  /** The server does not start, and says which file is why; somebody puts the bit back. */
  async #refuseStart({ path, bit }: BitFlip): Promise<void> {
    const process = this.#mount();
    const ended = await this.#settle(process, process.open(), true);
    const says = ended instanceof Error ? ended.message : "nothing";
    must(says.includes(`${DIR}/journal`) || says.includes(path), () => `${path} was spoilt, the server says: ${says}`);
    this.#crash(this.#random.pick(["kill", "power"]));
    this.#disk.flipBit(path, bit);
  }

  /** The last life: no more faults, and everything is looked at, in memory and on disk. */
  async #checkEnd(): Promise<void> {
    this.#disk.calm();
    this.#isCalm = true;
    this.#disk.scheduler.slowPart = 0;
    this.#ledger.started();
    for (const round of [1, 2]) {
      this.#trace?.(`check ${round}`);
      const process = await this.#start();
      must(process !== null, () => `the last start failed: ${String(this.#startFailure)}`);
      await this.#settle(process, sweep(process));
      if (round === 2) this.#ledger.holders.isSwept = true;
      await this.#settle(process, this.#client.checkAll(process));
      if (round === 1) await this.#settle(process, this.#client.appendToAll(process));
      await this.#close(process);
      must(process.fault === null, () => `the disk is said to have failed: ${process.fault?.message}`);
      if (round === 2) await checkFiles(this.#disk, DIR, this.#ledger);
      this.#crash("power");
    }
  }

  #mount(): RunningProcess {
    const { wrap } = this.#options;
    const mounted = this.#disk.mount();
    this.#clock = new SkewedClock(this.#random.pick(TIMER_SKEWS_MS), this.#clock.nowMs() + this.#random.integer(0, 50));
    this.#disk.scheduler.clock = this.#clock;
    const process = new RunningProcess(wrap === undefined ? mounted : wrap(mounted), this.#settings, this.#clock, this.#trace);
    process.damagedDeleted = () => (this.#ledger.holders.deletedDamaged = true);
    this.#process = process;
    return process;
  }

  async #start(): Promise<RunningProcess | null> {
    const process = this.#mount();
    const ended = await this.#settle(process, process.open());
    if (!process.isAlive) return null;
    if (ended === SETTLED) return process;
    this.#startFailure = ended;
    must(this.#ledger.expects(ended), () => `it does not start: ${String(ended)}`);
    this.#crash(this.#random.pick(["kill", "power"]));
    return null;
  }

  /** Waits until `work` is over or the process is dead; time goes on meanwhile. Resolves to what it failed with. */
  async #settle(process: RunningProcess, work: Promise<void>, mayFail = false): Promise<unknown> {
    let ended: unknown = null;
    work.then(
      () => (ended = SETTLED),
      (error: unknown) => (ended = error ?? "nothing"),
    );
    for (let turns = 0; ended === null && process.isAlive; turns += 1) {
      must(turns < MAX_TURNS, () => "it hangs");
      if (turns % 64 === 63) this.#clock.advance(this.#random.pick([0, 10, 300, 2000]));
      if (this.#disk.isFull && turns % 500 === 499) this.#disk.isFull = false;
      if (process.fault !== null && turns % 100 === 99) this.#crash(this.#random.pick(["kill", "power"]));
      await turn();
      this.#client.rethrow();
    }
    if (ended instanceof Violation) throw ended;
    const isFine = ended === SETTLED || ended === null || mayFail || this.#ledger.expects(ended);
    must(isFine, () => `it fails: ${ended instanceof Error ? (ended.stack ?? ended.message) : String(ended)}`);
    return ended;
  }

  #lackFrames(): void {
    lackFrames(this.#disk, this.#whims);
    this.#ledger.faultInjected = true;
    this.#ledger.sawFull = true;
  }

  #failLater(): void {
    const code = failLater(this.#disk, this.#random, this.#whims);
    this.#ledger.faultInjected = true;
    this.#ledger.sawFull ||= code === "ENOSPC";
    this.#ledger.lackedFiles ||= code === "EMFILE";
  }

  /** Whoever has an answer may rely on it, whatever comes the next moment. */
  #answered(cites: boolean): void {
    if (this.#isCalm || !this.#cutsAtAnswers || !this.#whims.chance(cites ? CUT_AT_CITATION : CUT_AT_ANSWER)) return;
    this.#trace?.("the end comes with an answer");
    this.#crash(this.#whims.pick(["power", "power", "kill"]));
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
    this.#client.crashed();
    this.#ledger.crashed(this.#clock.nowMs());
  }
}

/** Looks at every stream on disk once, as the server does now and then: what nobody needs goes. */
async function sweep({ storage, registry }: RunningProcess): Promise<void> {
  for await (const { name } of storage.list()) {
    try {
      const found = await registry.find(name);
      if (!("code" in found)) found.trimExcess();
    } catch (error) {
      if (!(error instanceof DamagedStreamError)) throw error;
    }
  }
  for (let turns = 0; turns < TURNS_OF_SWEEP; turns += 1) await turn();
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function settingsOf(random: Random): ProcessSettings {
  const settings = {
    segmentBytes: random.pick([300, 1000, 4000]),
    journalBytes: random.pick([4096, 8192, 16_384, 65_536]),
    journalBypassBytes: random.pick([200, 1000, 4000, 100_000]),
    tailCacheBytes: random.pick([500, 4000, 100_000]),
    maxLoadedStreams: random.pick([1, 2, 3, 100]),
    ttlMode: random.pick<TtlMode>(["sliding", "sliding", "fixed"]),
    retention: random.chance(0.6) ? KEEP_ALL : limitsOf(random),
  };
  // Beyond it streams leave that would not for their number; at twice as many, some are refused.
  return { ...settings, maxLoadedProducers: 4 * settings.maxLoadedStreams };
}

function limitsOf(random: Random): RetentionLimits {
  return { maxBytes: random.pick([0, 500, 2000, 8000, Infinity]), maxAgeMs: random.pick([Infinity, Infinity, 0, 500, 5000, 40_000]) };
}
