import type { Authority } from "../../auth/authority.js";
import type { Clock } from "../../ops/clock.js";
import type { Log } from "../../ops/log.js";
import type { ConnectionFigures } from "../../metrics/connection-figures.js";
import type { EventLoopMeter } from "../../metrics/process-figures.js";
import type { ReadFreshness } from "../../protocol/cache-control.js";
import type { Settings } from "../../options.js";
import type { StreamList } from "../../stream/loaded/stream.js";
import type { Registry } from "../../stream/registry.js";
import type { BodyMemory } from "../bounds/body-memory.js";
import type { Access } from "../access/access.js";
import type { Clients } from "../bounds/clients.js";
import type { LiveReaders } from "../bounds/live-readers.js";
import type { Compression } from "../answer/compression.js";
import type { InFlight } from "../answer/in-flight.js";
import type { ReadBuffers } from "../answer/read-buffers.js";
import type { Responder } from "../answer/respond.js";
import type { UnreadAnswers } from "../bounds/unread.js";

/** What every handler works with. */
export interface Context {
  readonly settings: Settings;
  readonly registry: Registry;
  readonly streamList: StreamList;
  readonly clock: Clock;
  readonly log: Log;
  /** Gives numbers in [0, 1). */
  readonly random: () => number;
  readonly responder: Responder;
  readonly inFlight: InFlight;
  readonly bodyMemory: BodyMemory;
  readonly unread: UnreadAnswers;
  readonly clients: Clients;
  readonly liveReaders: LiveReaders;
  readonly connections: ConnectionFigures;
  readonly readBuffers: ReadBuffers;
  /** `null` without `--compress`. */
  readonly compression: Compression | null;
  readonly readFreshness: ReadFreshness;
  readonly access: Access;
  /** All metrics, as `GET /metrics` answers them. */
  readonly metricsReport: () => string;
  readonly eventLoop: EventLoopMeter;
  /** `null` without an auth file. */
  readonly authority: Authority | null;
}
