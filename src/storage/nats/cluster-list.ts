import { EventEmitter } from "node:events";
import type { Clock } from "../../ops/clock.js";
import type { NameRange } from "../../protocol/names/name-range.js";
import { ListedNames } from "../listed-names.js";
import {
  NoMajorityError,
  type ListedStream,
  type MatchingNames,
  type StoredStream,
  type StreamEvents,
  type StreamList,
} from "../storage.js";
import { decodeChange, type PlacedChange } from "./log/change.js";
import { LogUnavailableError, type LogMessage, type ReplicatedLog } from "./log/replicated-log.js";
import { isExcess, type ClusterStream } from "./memory/cluster-stream.js";
import { whenLed } from "./reading/when-led.js";

/** Names are read again after this: a server may have ended before it told the others of a stream. */
const MAX_AGE_MS = 10 * 60_000;

/** What becomes of streams, as front ends tell each other. */
interface Announcement {
  readonly kind: Exclude<keyof StreamEvents, "missed">;
  readonly name: string;
  /** The last message of the stream then; a server of a version before does not tell it. */
  readonly sequence?: number;
}

/** Names of which it is remembered how far others have told: what is told late is so by seconds. */
const MAX_TOLD = 10_000;

/** Lists streams by name: the names are in memory once they are asked for; front ends tell each other of new ones. */
export class ClusterList implements StreamList {
  readonly events = new EventEmitter<StreamEvents>();
  readonly isShared = true;
  readonly #log: ReplicatedLog;
  readonly #clock: Pick<Clock, "nowMs">;
  readonly #look: (name: string) => Promise<StoredStream | null>;
  readonly #names = new ListedNames([]);
  /** Whether nothing has been missed since they were read. */
  #isKnown = false;
  /** How often something may have been missed. */
  #misses = 0;
  #readAtMs = 0;
  #loading: Promise<void> | null = null;
  /** What was announced while the names were read: it is newer. */
  readonly #since: Announcement[] = [];
  /** The newest message of which was told, by the name of its stream; the least recently told first. */
  readonly #told = new Map<string, number>();
  /** What is being told, by the name of its stream. */
  readonly #telling = new Map<string, Promise<unknown>>();

  /** `look` finds a stream without bringing it into memory. */
  constructor(log: ReplicatedLog, clock: Pick<Clock, "nowMs">, look: (name: string) => Promise<StoredStream | null>) {
    this.#log = log;
    this.#clock = clock;
    this.#look = look;
  }

  async names(range: NameRange, count: number): Promise<readonly string[]> {
    return (await this.#known()).slice(range, count);
  }

  async matching(patterns: readonly (string | null)[]): Promise<MatchingNames | null> {
    return (await this.#known()).matching(patterns);
  }

  async #known(): Promise<ListedNames> {
    try {
      const isOld = this.#clock.nowMs() - this.#readAtMs >= MAX_AGE_MS;
      // The old names serve until the new ones are read; if that fails, the next call tries again.
      if (this.#isKnown && isOld) (this.#loading ??= this.#load()).catch(() => undefined);
      // What was under way when something was missed may lack that; the second begins after it.
      for (let loads = 0; !this.#isKnown && loads < 2; loads += 1) await (this.#loading ??= this.#load());
      return this.#names;
    } catch (fault) {
      throw busyInsteadOf(fault);
    }
  }

  look(name: string): Promise<StoredStream | null> {
    return this.#look(name);
  }

  async #load(): Promise<void> {
    try {
      const startedAtMs = this.#clock.nowMs();
      const misses = this.#misses;
      const found = await whenLed(this.#log, () => this.#read());
      // Most are told of twice where they change meanwhile.
      this.#names.become([...new Set(found)].sort());
      for (const announced of this.#since.splice(0)) note(this.#names, announced);
      this.#isKnown = misses === this.#misses;
      this.#readAtMs = startedAtMs;
    } finally {
      this.#loading = null;
      this.#since.length = 0;
    }
  }

  async #read(): Promise<readonly string[]> {
    const found: string[] = [];
    for await (const message of this.#log.heads("streams")) {
      const { change } = headOf(message);
      if (change.deletedAtMs === null) found.push(change.name);
    }
    return found;
  }

  /** Tells all front ends of what happened here. */
  tell(kind: Announcement["kind"], { name, sequence }: Pick<ClusterStream, "name" | "sequence">): void {
    this.#log.announce(JSON.stringify({ kind, name, sequence } satisfies Announcement));
  }

  /** Takes in what a front end tells. */
  async heard(text: string): Promise<void> {
    const announced = JSON.parse(text) as Announcement; // only front ends announce
    if (this.#isOver(announced)) return;
    if (this.#isKnown) note(this.#names, announced);
    if (this.#loading !== null) this.#since.push(announced);
    await this.#inOrder(announced.name, () => this.#emit(announced));
  }

  /** Waits for what is still to be told of the name: to look at a stream may take longer than to hear of its end. */
  async #inOrder(name: string, emit: () => Promise<void>): Promise<void> {
    const before = this.#telling.get(name);
    const telling = before === undefined ? emit() : before.then(emit);
    const ended = Promise.allSettled([telling]);
    this.#telling.set(name, ended);
    await ended;
    if (this.#telling.get(name) === ended) this.#telling.delete(name);
    await telling;
  }

  async #emit({ kind, name }: Announcement): Promise<void> {
    if (kind === "deleted") this.events.emit("deleted", name);
    else if (this.events.listenerCount(kind) > 0) {
      const stream = await this.#look(name).catch((fault: unknown) => {
        this.events.emit("missed");
        throw fault;
      });
      if (stream !== null) this.events.emit(kind, stream);
    }
  }

  /** Whether later news of that name have come: who had to ask what became of a change tells of it late. */
  #isOver({ name, sequence }: Announcement): boolean {
    if (sequence === undefined) return false;
    if (sequence < (this.#told.get(name) ?? 0)) return true;
    this.#told.delete(name);
    this.#told.set(name, sequence);
    for (const [leastRecent] of this.#told) {
      if (this.#told.size <= MAX_TOLD) break;
      this.#told.delete(leastRecent);
    }
    return false;
  }

  /** Reads the names again when they are next asked for, and says so: something may have been missed. */
  miss(): void {
    this.#misses += 1;
    this.#isKnown = false;
    this.events.emit("missed");
  }
}

/** What the log can't answer now can be asked for again: a {@link NoMajorityError} in place of its fault. */
export function busyInsteadOf(fault: unknown): unknown {
  return fault instanceof LogUnavailableError ? new NoMajorityError(fault.message, { cause: fault }) : fault;
}

function note(names: ListedNames, { kind, name }: Announcement): void {
  if (kind === "deleted") names.remove(name);
  else names.add(name);
}

const NO_BODY = Buffer.alloc(0);

/** The change in a message of which only the head is known. */
export function headOf(message: Omit<LogMessage, "body">): PlacedChange {
  return decodeChange({ ...message, body: NO_BODY });
}

/** A stream as its last message tells of it; the time of its last read, where that counts, is not looked up. */
export function listedOf({ change }: PlacedChange): ListedStream {
  const { name, config, newestAtMs, to, earliest, earliestAtMs } = change;
  return {
    name,
    config,
    touchedAtMs: newestAtMs,
    tail: to,
    isExcess: (limits, nowMs) => isExcess(earliest, to, earliestAtMs, limits, nowMs),
  };
}
