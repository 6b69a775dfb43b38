import type { Clock } from "../../../ops/clock.js";
import { decodeChange } from "../log/change.js";
import { LogUnavailableError, type LogMessage, type Published, type ReplicatedLog } from "../log/replicated-log.js";
import type { Draft } from "./batch.js";

/** How a message ended that was published until its outcome was known, or the time was over. */
export type Outcome =
  | { readonly kind: "stored"; readonly sequence: number }
  /** Another message follows the expected one; or none was taken, for want of room or of a leader. */
  | { readonly kind: "moved" | "full" | "untaken" | "unknown" };

/** How publishes are repeated. */
export interface PublishingOptions {
  readonly log: ReplicatedLog;
  readonly clock: Pick<Clock, "after">;
  /** Milliseconds since any moment, which no change of the system's time moves. */
  readonly stopwatchMs: () => number;
  /** How long a message is published again while nobody can say what became of it. */
  readonly timeoutMs: number;
  /** From 0 to 1. */
  readonly random: () => number;
}

const MIN_PAUSE_MS = 2;
const MAX_PAUSE_MS = 100;

/** A message that was published once, behind the one of sequence `expected`. */
export interface Attempt {
  readonly subject: string;
  readonly draft: Draft;
  readonly expected: number;
  /** By the stopwatch. */
  readonly sentAtMs: number;
}

/**
 * What becomes of a message whose first publish ended as `published` says. What has no answer is published again with
 * the same expectation: at most one of the copies can follow it.
 */
export async function publishAgain(
  { log, clock, stopwatchMs, timeoutMs, random }: PublishingOptions,
  { subject, draft, expected, sentAtMs }: Attempt,
  published: Published,
): Promise<Outcome> {
  const untilMs = sentAtMs + timeoutMs;
  let mayBeThere = false;
  for (let pauseMs = MIN_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    if (published.kind === "stored") return published;
    if (published.kind === "full" && !mayBeThere) return { kind: "full" };
    if (published.kind === "moved" && !mayBeThere) return { kind: "moved" };
    if (published.kind === "refused" && !mayBeThere) return { kind: "untaken" };
    if (published.kind === "unknown") mayBeThere = true;
    if (published.kind === "moved" || published.kind === "pending") {
      const found = await whatFollows(log, subject, draft.change.publication, expected, mayBeThere);
      if (found !== null) return found;
    }
    if (stopwatchMs() >= untilMs) return { kind: mayBeThere ? "unknown" : "untaken" };
    await new Promise<void>((resolve) => void clock.after(pauseMs * (0.5 + random()), resolve));
    published = await log.publish(subject, draft.head, draft.body, expected);
  }
}

/**
 * Calls `publish` again until the message is stored, is refused, has no room, or the time is over; says how that ended.
 * It may be stored several times.
 */
export async function publishAnyhow(
  { clock, stopwatchMs, timeoutMs, random }: Omit<PublishingOptions, "log">,
  publish: () => Promise<Published["kind"]>,
): Promise<Published["kind"]> {
  const untilMs = stopwatchMs() + timeoutMs;
  for (let pauseMs = MIN_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    const kind = await publish();
    if (kind === "stored" || kind === "refused" || kind === "full" || stopwatchMs() >= untilMs) return kind;
    await new Promise<void>((resolve) => void clock.after(pauseMs * (0.5 + random()), resolve));
  }
}

/** What follows the expected message: ours, another, or `null` where that can't be told yet. */
async function whatFollows(
  log: ReplicatedLog,
  subject: string,
  publication: string,
  expected: number,
  mayBeThere: boolean,
): Promise<Outcome | null> {
  const next = await nextOrNull(log, subject, expected + 1);
  if (next === null) return null;
  const { change, previous, sequence } = decodeChange(next);
  if (change.publication === publication) return { kind: "stored", sequence };
  // Where a purge has taken what followed the expected one, that may have been ours.
  return { kind: previous === expected || !mayBeThere ? "moved" : "unknown" };
}

async function nextOrNull(log: ReplicatedLog, subject: string, sequence: number): Promise<LogMessage | null> {
  try {
    return await log.next(subject, sequence);
  } catch (fault) {
    if (fault instanceof LogUnavailableError) return null;
    throw fault;
  }
}
