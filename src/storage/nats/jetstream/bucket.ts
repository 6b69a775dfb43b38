import type { NatsAddress } from "../../../net/storage-address.js";
import type { Clock } from "../../../ops/clock.js";
import { Subjects } from "../log/subjects.js";
import { API_ERROR, faultOfAnswer, jsonOf, stateOf, type ApiAnswer } from "./answers.js";
import { ClusterUnusableError } from "../client/nats-client.js";
import { whyNotPublish, withAdvice } from "./permissions.js";
import type { Requests } from "./requests.js";

/** A bucket, as it is on the servers. */
export interface Bucket {
  readonly subjects: Subjects;
  /** Its JetStream streams, one for each shard. */
  readonly shards: readonly string[];
  /** The JetStream stream that has when streams were last read. */
  readonly touches: string;
  readonly replicas: number;
  /** Whether this front end has made it now. */
  readonly isNew: boolean;
}

/** A JetStream stream, as far as streamdir says how it is; the rest has its default. */
interface StreamSettings {
  readonly name: string;
  readonly subjects: readonly string[];
  readonly num_replicas: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

const LAYOUT_VERSION = "1";
const DEFAULT_REPLICAS = 3;
/** How many shards a new bucket has where nobody asks for another number. */
export const DEFAULT_SHARDS = 3;
/** As many as `--storage` takes. */
const MAX_SHARDS = 64;
const ANSWER_TIMEOUT_MS = 5000;
/** A cluster that has just started has no leader for some seconds. */
const PATIENCE_MS = 30_000;
const PAUSE_MS = 250;
/** The shortest time that servers remember ids of messages for: there are none. */
const DUPLICATE_WINDOW_NS = 100_000_000;

/** What to do about a JetStream stream that is not there any more. */
const RESTORE = "restore it from a backup before any front end starts";
/** Why the API gives no answer. */
const NO_LEADER = "JetStream does not answer: the NATS cluster may have no leader";

/**
 * Makes the streams of a bucket, or compares them with what they have to be. `onWait` is told why it asks again. Throws
 * {@link ClusterUnusableError}.
 */
export async function openBucket(
  requests: Requests,
  { bucket, replicas, shards }: NatsAddress,
  clock: Clock,
  onWait: (why: string) => void = () => {},
): Promise<Bucket> {
  const api = new StreamApi(requests, clock, onWait);
  let plan = planFor(bucket, await streamsOf(api, bucket), replicas, shards);
  // Another front end may have made the bucket, and written to it, during the look.
  if (plan.why !== null) plan = planFor(bucket, await streamsOf(api, bucket), replicas, shards);
  if (plan.why !== null) throw new ClusterUnusableError(plan.why);
  const subjects = new Subjects(bucket, plan.shards);
  await mayBeWritten(requests, subjects);
  let isNew = false;
  // The last of them is that of touches: who makes that has made the bucket.
  for (const wanted of plan.missing) isNew = await api.ensure(wanted);
  return {
    subjects,
    shards: Array.from({ length: plan.shards }, (_, shard) => shardName(bucket, shard)),
    touches: touchName(bucket),
    replicas: plan.replicas,
    isNew,
  };
}

/** A JetStream stream as it was found. */
interface Found {
  readonly settings: StreamSettings;
  /** Whether it ever had a message. */
  readonly wasWritten: boolean;
}

/** The JetStream streams of a bucket that are there, by their names. */
async function streamsOf(api: StreamApi, bucket: string): Promise<ReadonlyMap<string, Found>> {
  const found = new Map<string, Found>();
  // Until one of them says how many there are, any may be the only one that is left.
  let count = MAX_SHARDS;
  for (let shard = 0; shard < count; shard += 1) {
    const there = await api.find(shardName(bucket, shard));
    if (there === null) continue;
    found.set(there.settings.name, there);
    count = shardsIn(there.settings) ?? count;
  }
  const touches = await api.find(touchName(bucket));
  if (touches !== null) found.set(touches.settings.name, touches);
  return found;
}

/** What a bucket is to have, and which streams of it are to be made; `why` says what keeps it from being opened. */
interface Plan {
  readonly shards: number;
  readonly replicas: number;
  readonly missing: readonly StreamSettings[];
  readonly why: string | null;
}

/**
 * Only a bucket that nobody has used gets streams. That of touches is made last, and nothing is written before it is
 * there: without it, and without any message ever, a first start was cut short, or goes on elsewhere. Otherwise what is
 * missing has been lost: an empty stream in its place would answer that nothing was ever there.
 */
function planFor(
  bucket: string,
  found: ReadonlyMap<string, Found>,
  replicas: number | null,
  asked: number | null,
): Plan {
  const there = [...found.values()].map(({ settings }) => settings);
  const shards = shardsOf(found.get(shardName(bucket, 0))?.settings ?? null, there, asked);
  const copies = replicas ?? there.find(isOurs)?.num_replicas ?? DEFAULT_REPLICAS;
  const all = Array.from({ length: shards }, (_, shard) => shardSettings(bucket, shard, shards, copies));
  all.push(touchSettings(bucket, copies));
  for (const wanted of all) {
    const settings = found.get(wanted.name)?.settings;
    if (settings !== undefined) compare(settings, wanted);
  }
  const missing = all.filter(({ name }) => !found.has(name));
  const isUsed = found.has(touchName(bucket)) || [...found.values()].some(({ wasWritten }) => wasWritten);
  const names = missing.map(({ name }) => name).join(", ");
  const why = isUsed && missing.length > 0 ? `the bucket ${bucket} has lost ${names}: ${RESTORE}` : null;
  return { shards, replicas: copies, missing, why };
}

/** Refuses a bucket whose subjects the user may not publish to. */
async function mayBeWritten(requests: Requests, subjects: Subjects): Promise<void> {
  const needed = Array.from({ length: subjects.shards }, (_, shard) => subjects.ofReserve(shard));
  needed.push(subjects.ofTouch("none"));
  const faults = await Promise.all(needed.map((subject) => whyNotPublish(requests, subject)));
  for (const why of faults) if (why !== null) throw new ClusterUnusableError(withAdvice(why));
}

function shardsOf(first: StreamSettings | null, all: readonly StreamSettings[], asked: number | null): number {
  if (first !== null && shardsIn(first) === null) throw notOurs(first);
  const [count = null] = all.flatMap((settings) => shardsIn(settings) ?? []);
  if (count === null) return asked ?? DEFAULT_SHARDS;
  if (asked !== null && asked !== count)
    throw new ClusterUnusableError(`the bucket has ${count} shards, not ${asked}: that can't be changed`);
  return count;
}

/** How many shards there are, as one of them says; `null` where it is none. */
function shardsIn(settings: StreamSettings): number | null {
  const count = Number(settings.metadata["shards"]);
  return isOurs(settings) && count > 0 ? count : null;
}

function isOurs({ metadata }: StreamSettings): boolean {
  return metadata["streamdir"] === LAYOUT_VERSION;
}

function shardName(bucket: string, shard: number): string {
  return `SD_${bucket}_${shard}`;
}

function touchName(bucket: string): string {
  return `SD_${bucket}_touch`;
}

function notOurs({ name }: StreamSettings): ClusterUnusableError {
  return new ClusterUnusableError(`the JetStream stream ${name} is not one that this version of streamdir made`);
}

function shardSettings(bucket: string, shard: number, shards: number, replicas: number): StreamSettings {
  return {
    ...commonSettings(replicas),
    name: shardName(bucket, shard),
    subjects: [`sd.${bucket}.${shard}.>`],
    max_msgs_per_subject: -1,
    discard: "new",
    republish: { src: `sd.${bucket}.${shard}.s.>`, dest: `sdr.${bucket}.${shard}.s.>` },
    metadata: { streamdir: LAYOUT_VERSION, shards: String(shards) },
  };
}

function touchSettings(bucket: string, replicas: number): StreamSettings {
  return {
    ...commonSettings(replicas),
    name: touchName(bucket),
    subjects: [`sdt.${bucket}.>`],
    max_msgs_per_subject: 1,
    discard: "old",
    metadata: { streamdir: LAYOUT_VERSION },
  };
}

function commonSettings(
  replicas: number,
): Omit<StreamSettings, "name" | "subjects" | "metadata"> & { readonly num_replicas: number } {
  return {
    retention: "limits",
    storage: "file",
    num_replicas: replicas,
    max_consumers: -1,
    max_msgs: -1,
    max_bytes: -1,
    max_age: 0,
    allow_direct: true,
    deny_delete: false,
    deny_purge: false,
    duplicate_window: DUPLICATE_WINDOW_NS,
  };
}

/** What an operator may change without harm: room, and where it lies. */
const FREE_FIELDS: ReadonlySet<string> = new Set(["max_bytes", "max_consumers", "duplicate_window"]);

/** Looks at JetStream streams, and makes them. */
class StreamApi {
  readonly #requests: Requests;
  readonly #clock: Clock;
  readonly #onWait: (why: string) => void;
  readonly #untilMs: number;

  constructor(requests: Requests, clock: Clock, onWait: (why: string) => void) {
    this.#requests = requests;
    this.#clock = clock;
    this.#onWait = onWait;
    this.#untilMs = clock.nowMs() + PATIENCE_MS;
  }

  /** A stream as it is; `null` where there is none. */
  async find(name: string): Promise<Found | null> {
    const answer = await this.#call(`STREAM.INFO.${name}`, null);
    const fault = faultOfAnswer(answer);
    if (fault?.code === API_ERROR.noSuchStream) return null;
    if (fault !== null)
      throw new ClusterUnusableError(`the JetStream stream ${name} can't be looked at: ${fault.description}`);
    const config = answer["config"];
    if (typeof config !== "object" || config === null)
      throw new ClusterUnusableError(`the JetStream stream ${name} has no settings`);
    const given = config as Partial<StreamSettings>; // as the API has it
    const settings = { name, subjects: [], num_replicas: 1, ...given, metadata: given.metadata ?? {} };
    return { settings, wasWritten: (stateOf(answer)?.last ?? 0) > 0 };
  }

  /** Makes a stream, unless another front end was first; then it has to be as this one would make it. */
  async ensure(wanted: StreamSettings): Promise<boolean> {
    const answer = await this.#call(`STREAM.CREATE.${wanted.name}`, wanted);
    const fault = faultOfAnswer(answer);
    if (fault === null) return answer["did_create"] === true;
    if (fault.code === API_ERROR.nameInUse) {
      const there = await this.find(wanted.name);
      compare(there?.settings ?? wanted, wanted);
      return false;
    }
    const isTooSmall = fault.code === API_ERROR.notEnoughServers || fault.code === API_ERROR.noSuitablePeers;
    const hint = isTooSmall ? `; ${wanted.num_replicas} copies need as many servers, ?replicas=1 is for one` : "";
    throw new ClusterUnusableError(`the JetStream stream ${wanted.name} can't be made: ${fault.description}${hint}`);
  }

  /** Asks until there is an answer of a leader, as long as patience lasts. */
  async #call(call: string, body: StreamSettings | null): Promise<ApiAnswer> {
    const payload = body === null ? "" : JSON.stringify(body);
    for (;;) {
      const answer = await this.#requests.ask(`$JS.API.${call}`, payload, ANSWER_TIMEOUT_MS);
      if (answer.kind === "refused") throw new ClusterUnusableError(withAdvice(answer.why));
      const json = answer.kind === "reply" ? jsonOf(answer.message) : null;
      const fault = json === null ? null : faultOfAnswer(json);
      if (fault?.code === API_ERROR.notEnabled || fault?.code === API_ERROR.notEnabledForAccount)
        throw new ClusterUnusableError(`JetStream can't be used: ${fault.description}`);
      const mayPass =
        json === null || fault?.code === API_ERROR.notAvailable || fault?.code === API_ERROR.noSuitablePeers;
      if (!mayPass) return json;
      if (this.#clock.nowMs() >= this.#untilMs) {
        if (json !== null) return json;
        throw new ClusterUnusableError(NO_LEADER);
      }
      this.#onWait(fault?.description ?? NO_LEADER);
      await new Promise<void>((resolve) => void this.#clock.after(PAUSE_MS, resolve));
    }
  }
}

/** Refuses a stream that is not as it has to be. */
function compare(there: StreamSettings, wanted: StreamSettings): void {
  if (!isOurs(there)) throw notOurs(there);
  for (const [field, value] of Object.entries(wanted)) {
    if (FREE_FIELDS.has(field)) continue;
    if (field === "num_replicas" && there.num_replicas === value) continue;
    const has = there[field];
    // What is false, 0 or empty may be absent.
    const isSame =
      field === "metadata" ? hasEntries(there.metadata, wanted.metadata) : sameJson(has, value) || (!has && !value);
    if (isSame) continue;
    throw new ClusterUnusableError(
      `the JetStream stream ${wanted.name} has ${field} ${JSON.stringify(has)}, not ${JSON.stringify(value)}`,
    );
  }
}

function hasEntries(there: StreamSettings["metadata"], wanted: StreamSettings["metadata"]): boolean {
  return Object.entries(wanted).every(([name, value]) => there[name] === value);
}

/** Whether two values are the same but for the order of fields. */
function sameJson(left: unknown, right: unknown): boolean {
  return JSON.stringify(sorted(left)) === JSON.stringify(sorted(right));
}

function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1)));
}
