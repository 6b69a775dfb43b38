import { readMarker } from "../../src/storage/file/directory/marker.js";
import type { FileStorage } from "../../src/storage/file/file-storage.js";
import { Layout, sidecarPath } from "../../src/storage/file/format/layout.js";
import { repairDirectory, type RepairLine, type RepairSummary } from "../../src/storage/file/offline/repair.js";
import { decodeSidecar } from "../../src/storage/file/format/sidecar.js";
import { DamagedStreamError, DeletedStreamError, type StoredStream } from "../../src/storage/storage.js";
import { append, keptLog, readAll } from "../helpers/engine.js";
import { Random } from "../helpers/random.js";
import { SimulatedDisk } from "../helpers/simulated-disk.js";
import { DamagedWorld, DIR, engineOn, mountSparsely, type Truth } from "./damaged-world.js";
import { findingsOf, listed } from "./disk-check.js";
import { must } from "./model.js";
import { doHarm, type Harm } from "./random-harm.js";
import { withFastTurns } from "./turns.js";

/** What a repair did. */
interface Repaired extends RepairSummary {
  readonly lines: readonly RepairLine[];
}

/** What a server makes of a stream. */
type Served = "whole" | "told" | "lost";

/**
 * Serves a directory for a while, does some random harm to it, and repairs it. Throws a Violation unless: what one repair
 * did the next does not do again; `verify` and `repair` agree on what is left; what was acknowledged is served as it was,
 * or is refused, and somebody is told; and streams that the harm did not touch are served as before.
 */
export function runDamage(seed: number, trace: (line: string) => void = () => undefined): Promise<void> {
  return withFastTurns(() => new Damage(seed, trace).run());
}

class Damage {
  readonly #random: Random;
  readonly #disk: SimulatedDisk;
  readonly #world: DamagedWorld;
  readonly #trace: (line: string) => void;
  readonly #lines: RepairLine[] = [];
  /** Streams that have no sidecar, or had none, by id: with their creation all of them may be lost, and even their name. */
  #journaled: ReadonlySet<string> = new Set();

  constructor(seed: number, trace: (line: string) => void) {
    this.#random = new Random(seed);
    this.#disk = new SimulatedDisk(seed);
    this.#disk.scheduler.maxDelayTurns = 0;
    this.#world = new DamagedWorld(this.#disk, this.#random);
    this.#trace = trace;
  }

  async run(): Promise<void> {
    await this.#world.live();
    this.#journaled = new Set([...this.#world.streams.values()].map(({ id }) => id).filter((id) => !idsOnDisk(this.#disk).has(id)));
    for (const [name, { id, bytes, closed }] of this.#world.streams)
      this.#trace(`stream ${name} ${id}: ${bytes.length} bytes${closed ? ", closed" : ""}`);
    const isOne = this.#random.chance(0.75);
    const harms = [doHarm(this.#disk, this.#random, null)];
    if (!isOne) harms.push(doHarm(this.#disk, this.#random, harms[0]?.directory ?? null));
    const bare = [...this.#world.streams].filter(
      ([name]) => this.#disk.contentOf(sidecarPath(new Layout(DIR).streamDirectory(name))) === null,
    );
    this.#journaled = new Set([...this.#journaled, ...bare.map(([, { id }]) => id)]);
    for (const { what, mayGoUnnoticed, concerns } of harms)
      this.#trace(
        `harm: ${what}${mayGoUnnoticed ? " (may go unnoticed)" : ""}${concerns === null ? "" : `, concerns ${[...concerns].join()}`}`,
      );
    await this.#repair(false);
    await this.#repair(true);
    if (!(await this.#assertSettled())) return;
    await this.#serve(harms);
    await this.#assertSettled();
    await this.#repair(true, ["**"]);
    await this.#assertSettled();
    await this.#serveAccepted(harms);
    await this.#assertSettled();
  }

  async #repair(apply: boolean, acceptLoss: readonly string[] = []): Promise<Repaired> {
    const files = mountSparsely(this.#disk);
    const layout = new Layout(DIR);
    const directoryId = await readMarker(files, layout);
    must(directoryId !== null, () => "the marker is gone");
    const lines: RepairLine[] = [];
    const summary = await repairDirectory({
      files,
      layout,
      directoryId,
      apply,
      acceptLoss,
      nowMs: 1_700_000_001_000,
      log: keptLog().log,
      say: (line) => void lines.push(line),
    });
    for (const { kind, stream, file, what } of lines)
      this.#trace(`repair${apply ? "" : " (plan)"}: ${kind}: ${stream ?? ""}: ${file}: ${what}`);
    this.#lines.push(...lines);
    this.#disk.settle();
    return { ...summary, lines };
  }

  /** A repair has nothing to do any more, and says of what is left what `verify` says. Resolves to whether a server can start. */
  async #assertSettled(): Promise<boolean> {
    const { done, toDo, left, lines } = await this.#repair(true);
    must(
      done + toDo === 0,
      () =>
        `a repair does again: ${lines
          .filter(({ kind }) => kind !== "left")
          .map(({ stream, file, what }) => `${stream}: ${file}: ${what}`)
          .join("; ")}`,
    );
    const findings = await findingsOf(this.#disk, DIR);
    for (const { stream, file, problem } of findings) this.#trace(`verify: ${stream ?? ""}: ${file}: ${problem}`);
    must(left > 0 === findings.length > 0, () => `${left} are left, verify says: ${listed(findings)}`);
    return lines.every(({ stream, file }) => stream !== null || !file.startsWith(`${DIR}/journal`));
  }

  async #serve(harms: readonly Harm[]): Promise<void> {
    const storage = await engineOn(this.#disk);
    for (const [name, truth] of this.#world.streams) {
      const served = await this.#look(storage, name, truth);
      this.#trace(`${name}: ${served}`);
      must(served !== "lost" || harms.some(({ mayGoUnnoticed }) => mayGoUnnoticed), () => `${name} has lost something, and nobody is told`);
      must(served === "whole" || this.#isConcerned(name, truth, harms), () => `${name} was not harmed, and is not served as it was`);
    }
    await storage.close();
    this.#disk.crash("kill");
    this.#disk.settle();
  }

  #isConcerned(name: string, { id }: Truth, harms: readonly Harm[]): boolean {
    // Where two places of the journal are harmed, together they may leave nobody who can tell whose records were there.
    if (harms.filter(({ what }) => what.includes(".journal")).length > 1) return true;
    return this.#world.related.has(name) || harms.some(({ concerns }) => concerns === null || concerns.has(id));
  }

  /** Once its loss is accepted each stream is there again with the beginning of what it had, and takes appends. */
  async #serveAccepted(harms: readonly Harm[]): Promise<void> {
    const storage = await engineOn(this.#disk);
    for (const [name, truth] of this.#world.streams) {
      const served = await this.#look(storage, name, truth);
      must(served !== "lost" || harms.some(({ mayGoUnnoticed }) => mayGoUnnoticed), () => `${name} has lost something, and nobody is told`);
      const stream = await storage.load(name).catch((error: unknown) => {
        if (error instanceof DamagedStreamError) return null;
        throw error;
      });
      if (stream === null || stream.state.closed || stream.standing !== "live") continue;
      must((await append(storage, stream, "more")) === "durable", () => `${name} takes no append`);
    }
    await storage.close();
    this.#disk.crash("kill");
    this.#disk.settle();
  }

  async #look(storage: FileStorage, name: string, truth: Truth): Promise<Served> {
    const { id, bytes, closed, isKept } = truth;
    const told: Served = this.#lines.some(
      ({ stream, what, kind }) => kind !== "to do" && (stream === name || what.includes(JSON.stringify(name))),
    )
      ? "told"
      : "lost";
    try {
      const stream = await storage.load(name);
      // With its creation the deletion of the one before it is lost, which comes back where it was closed.
      if (stream?.id !== id)
        return this.#journaled.has(id) && this.#lines.some(({ what }) => what.includes("with streams that were created in it"))
          ? "told"
          : told;
      const tail = stream.state.tail;
      const content = await readAll(storage, stream);
      must(
        content.equals(bytes.subarray(stream.earliest, Math.min(tail, bytes.length))),
        () => `${name} has other bytes than were written`,
      );
      await this.#assertEnds(storage, name, stream, truth);
      // Nobody reads it but its forks.
      if (isKept) return "whole";
      const isSame = tail === bytes.length && stream.earliest === 0 && stream.state.closed === closed && stream.standing === "live";
      this.#trace(`${name}: ${stream.standing} ${stream.earliest} to ${tail}${stream.state.closed ? ", closed" : ""}`);
      return isSame ? "whole" : told;
    } catch (error) {
      if (error instanceof DamagedStreamError) return told;
      // Its last fork is gone with what was harmed: so is it.
      if (error instanceof DeletedStreamError && isKept) return "whole";
      throw error;
    }
  }

  /** A read ends where an append ended; anywhere else only where an index is lost, and then somebody is told. */
  async #assertEnds(storage: FileStorage, name: string, stream: StoredStream, { bytes, ends }: Truth): Promise<void> {
    const { tail } = stream.state;
    const isTold = this.#lines.some(({ what }) => /may end within an append|make it anew/.test(what));
    for (let from = stream.earliest; from < Math.min(tail, bytes.length); from += 97) {
      const maxBytes = this.#random.pick([1, 10, 200, 1000]);
      if (from + maxBytes >= tail) continue;
      const end = await storage.endOfRead(stream, from, maxBytes);
      must(
        end === null ? isTold : ends.has(end),
        () => `a read of ${name} from ${from} on ends at ${end}, within an append, and nobody is told`,
      );
    }
  }
}

function idsOnDisk(disk: SimulatedDisk): ReadonlySet<string> {
  const { streams } = new Layout(DIR);
  const directories = disk
    .namesIn(streams)
    .flatMap((shard) => disk.namesIn(`${streams}/${shard}`).map((name) => `${streams}/${shard}/${name}`));
  const sidecars = directories.map((directory) => decodeSidecar(disk.contentOf(sidecarPath(directory)) ?? Buffer.alloc(0)));
  return new Set(sidecars.flatMap((read) => (read.kind === "sound" && !read.sidecar.claimed ? [read.sidecar.id] : [])));
}
