import { BodyMemory } from "../../src/http/bounds/body-memory.js";
import type { Context } from "../../src/http/context/context.js";
import { CorsPolicy } from "../../src/http/encoding/cors.js";
import { InFlight } from "../../src/http/answer/in-flight.js";
import { Responder } from "../../src/http/answer/respond.js";
import { UnreadAnswers } from "../../src/http/bounds/unread.js";
import { keptLog, type LogLine } from "./engine.js";
import { ManualClock } from "./manual-clock.js";

/** What answers requests, without a registry behind it. */
export interface HttpParts extends Pick<Context, "clock" | "log" | "inFlight" | "bodyMemory" | "unread" | "responder"> {
  readonly clock: ManualClock;
  readonly lines: readonly LogLine[];
}

/** What the parts differ in from rooms of 1 MiB each. Sizes in bytes. */
export interface HttpPartsOptions {
  readonly clock?: ManualClock;
  readonly maxSmallBytes?: number;
  readonly maxLargeBytes?: number;
  readonly maxBodyBytes?: number;
  readonly chunkBytes?: number;
}

const MIB = 1024 * 1024;

/** The parts of an HTTP layer that count and answer, on a clock that the test turns. */
export function httpParts({
  clock = new ManualClock(),
  maxSmallBytes = MIB,
  maxLargeBytes = MIB,
  maxBodyBytes = MIB,
  chunkBytes = MIB,
}: HttpPartsOptions = {}): HttpParts {
  const { log, lines } = keptLog();
  const inFlight = new InFlight();
  const bodyMemory = new BodyMemory({ maxSmallBytes, maxLargeBytes, maxBodyBytes, clock });
  const unread = new UnreadAnswers({ maxSmallBytes, maxLargeBytes, chunkBytes, clock });
  const responder = new Responder({ cors: new CorsPolicy("*"), inFlight, unread, clock, log });
  return { clock, log, lines, inFlight, bodyMemory, unread, responder };
}
