import { DEFAULT_CONTENT_TYPE, formatOf } from "../protocol/content-type.js";
import type { AppendRecord, MaybePromise, Settlement, StreamConfig } from "../storage/storage.js";
import type { LoadedStreams } from "./eviction/loaded-streams.js";
import { passMessages } from "./loaded/sought-place.js";
import { Stream, type StreamContext } from "./loaded/stream.js";
import type { Body, CreateCommand, ForkRequest } from "./rules/command.js";
import { refuseConfig } from "./rules/config-difference.js";
import { frameBody, framedInTurns } from "./rules/decide.js";
import type { ExpiryQueue } from "./rules/expiry.js";
import { forkConfig, forkOrigin, refuseSource, type ForkBase } from "./rules/fork.js";
import {
  GONE,
  MAX_ROUNDS,
  MOVED,
  NOT_FOUND,
  refuse,
  refuseRejected,
  refuseSettled,
  type CreateOutcome,
  type Refused,
} from "./rules/outcome.js";

/** The registry, as creations need it. */
export interface CreationContext {
  readonly context: StreamContext;
  readonly streams: LoadedStreams;
  readonly expiries: ExpiryQueue<Stream>;
  /** The stream as readers see it, or why there is none. */
  find(name: string): MaybePromise<Stream | Refused>;
  /** Loads the stream of this name; `null` when there is none, or when it was loaded meanwhile. */
  load(name: string): MaybePromise<Stream | Refused | null>;
  /** Makes the state of a stream in memory fresh; false where the name does not belong to it any more. */
  refreshed(stream: Stream): MaybePromise<boolean>;
  /** Deletes a stream whose time is over. */
  expire(stream: Stream): void;
  /** Calls `next` when a deletion has settled: with why the name has no stream to change, or `null` when it has one. */
  afterDeletion<T>(stream: Stream, next: (refused: Refused | null) => MaybePromise<T>): Promise<T>;
}

/** The place of a fork that was found, and the request's body, framed as the source's type wants it. */
interface FoundBase extends ForkBase<Stream> {
  readonly body: Body;
}

const HELD_BY_FORKS: Refused = refuse("name-held-by-forks");

/** Makes streams, or finds that they are there as asked for. */
export class Creations {
  readonly #registry: CreationContext;

  constructor(registry: CreationContext) {
    this.#registry = registry;
  }

  /** Creates the stream of this name, or finds one with the same configuration (docs/api.md, Create a stream). */
  async create(name: string, command: CreateCommand): Promise<CreateOutcome> {
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const outcome = await this.#create(name, command, null);
      if (outcome !== MOVED) return outcome;
    }
    return MOVED;
  }

  /** `base` is the place of a fork, once it has been found. {@link MOVED} where another server was first. */
  async #create(name: string, command: CreateCommand, base: FoundBase | null): Promise<CreateOutcome> {
    const { context, streams } = this.#registry;
    let stream = streams.get(name);
    while (stream === null) {
      const loaded = await this.#registry.load(name);
      if (isRefused(loaded)) return loaded;
      stream = streams.get(name);
      if (loaded === null && stream === null) return this.#createNew(name, command, base);
    }
    const refreshed = this.#registry.refreshed(stream);
    if (refreshed instanceof Promise && !(await refreshed)) return MOVED;
    if (stream.isCurrent && !stream.isExpired(context.clock.nowMs())) return this.#compare(stream, command);
    this.#registry.expire(stream);
    return this.#registry.afterDeletion<CreateOutcome>(stream, (refused) => {
      if (refused === null) return this.#create(name, command, base);
      if (refused === GONE) return HELD_BY_FORKS;
      return refused === NOT_FOUND ? this.#createNew(name, command, base) : refused;
    });
  }

  #compare(stream: Stream, command: CreateCommand): MaybePromise<CreateOutcome> {
    const closed = stream.reservedClosed;
    const tail = stream.reservedTail;
    return stream.whenDurable((): CreateOutcome => {
      const refusal = refuseConfig(stream.config, closed, command);
      return (
        refusal ?? {
          kind: "created",
          created: false,
          contentType: stream.config.contentType,
          nextOffset: stream.offsetAt(tail),
          closed,
        }
      );
    });
  }

  #createNew(name: string, command: CreateCommand, base: FoundBase | null): MaybePromise<CreateOutcome> {
    const { fork, ttlSeconds, expiresAtMs } = command;
    if (this.#registry.streams.makeRoomForStream() !== null)
      return this.#registry.streams.whenLeft().then((refused) => refused ?? this.#create(name, command, base));
    const nowMs = this.#registry.context.clock.nowMs();
    if (fork === null) {
      const contentType = command.contentType ?? DEFAULT_CONTENT_TYPE;
      return this.#createAs(name, command, {
        contentType,
        createdAtMs: nowMs,
        ttlSeconds,
        expiresAtMs,
        forkedFrom: null,
      });
    }
    // The source may have been deleted, or trimmed, while the place was searched for or a deletion was waited for.
    const isThere =
      base !== null &&
      base.source.phase === "live" &&
      !base.source.isExpired(nowMs) &&
      base.source.stored.earliest === base.origin.earliest.position;
    return isThere
      ? this.#createAs(
          name,
          { ...command, body: base.body },
          forkConfig(base.source.config, command, nowMs, base.origin),
        )
      : this.#createFork(name, command, fork);
  }

  async #createFork(name: string, command: CreateCommand, fork: ForkRequest): Promise<CreateOutcome> {
    const source = await this.#registry.find(fork.source);
    if (!(source instanceof Stream)) return refuseSource(source);
    source.retain();
    try {
      const origin = await forkOrigin(source, fork, command.contentType, (from, count) =>
        passMessages(this.#registry.context.storage, source, from, count),
      );
      if ("kind" in origin) return origin;
      const { body } = await framedInTurns(source.config, command);
      // The command stays as it was sent: a source that is found anew may be of another type.
      return await this.#create(name, command, { source, origin, body });
    } finally {
      source.release();
    }
  }

  #createAs(name: string, { body, closed }: CreateCommand, config: StreamConfig): MaybePromise<CreateOutcome> {
    const framed = frameBody(formatOf(config.contentType), body, "create");
    if (framed.kind === "refused") return framed;
    return this.#storeNew(name, config, {
      payload: framed.bytes,
      messages: framed.messages,
      closes: closed,
      producer: null,
      seq: null,
      atMs: config.createdAtMs,
    });
  }

  #storeNew(name: string, config: StreamConfig, initial: AppendRecord): Promise<CreateOutcome> | Refused {
    const { context, streams, expiries } = this.#registry;
    let onSettled: (how: Settlement) => void = () => undefined;
    const outcome = new Promise<Settlement>((resolve) => (onSettled = resolve));
    const stored = context.storage.create(name, config, initial, (how) => {
      stream.creationSettled(how);
      if (how !== "durable") streams.drop(stream);
      onSettled(how);
    });
    if (typeof stored === "string") return refuseRejected(stored);
    const stream = new Stream(context, stored, initial);
    streams.add(stream);
    expiries.add(stream);
    return outcome.then((how) => {
      if (how !== "durable") return refuseSettled(how);
      const nextOffset = stream.offsetAt((config.forkedFrom?.point ?? 0) + initial.payload.length);
      return { kind: "created", created: true, contentType: config.contentType, nextOffset, closed: initial.closes };
    });
  }
}

/** Whether a stream that was loaded is refused. */
export function isRefused(loaded: Stream | Refused | null): loaded is Refused {
  return loaded !== null && !(loaded instanceof Stream);
}
