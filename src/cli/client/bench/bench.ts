// The verb `bench`: how many appends and reads a server that runs answers.

import type { Given } from "../../command/task.js";
import { faultOfEncoding } from "../../command/value.js";
import { EXIT } from "../../command/verb.js";
import { stopwatchMs } from "../../../ops/clock.js";
import { checkedName } from "../../../protocol/names/stream-name.js";
import { failure, type Failure } from "../remote/failure.js";
import { readToTail } from "../reading/pages.js";
import { Meter } from "../session/meter.js";
import { clientTask, flag, freshId, streamCalled, type Session } from "../session/session.js";
import { Tally, type Figures } from "./figures.js";
import { chartOf, tableOf } from "./report.js";

const DEFAULT_STREAMS = 10;
const MAX_STREAMS = 1000;
const DEFAULT_BYTES = 1024;
const MAX_BYTES = 16 * 1024 * 1024;
const DEFAULT_SECONDS = 5;
const MAX_SECONDS = 3600;
/** Streams that a benchmark could not delete, as it was killed, are gone so long after it. */
const LEFT_FOR_SECONDS = 600;
/** How long a benchmark that was stopped tries to delete them. */
const CLEAN_UP_MS = 5000;
const SLICES = 60;
const TYPE = "application/octet-stream";

/** The row of the table of verbs. */
export const BENCH = clientTask({
  name: "bench",
  summary: "measure how many appends and reads a server answers, on streams of its own",
  flags: [
    flag("streams", "integer", "N", `streams at a time, each with a connection; ${DEFAULT_STREAMS}`),
    flag("size", "bytes", "SIZE", "bytes of an append; 1KiB"),
    flag("seconds", "integer", "S", `how long to append; ${DEFAULT_SECONDS}`),
    flag("below", "text", "NAME", "the streams are made below this name, and deleted; streamdir-bench"),
  ],
  connections: (given) => planOf(given).streams,
  run: bench,
});

interface Plan {
  readonly streams: number;
  readonly size: number;
  readonly seconds: number;
  readonly below: string;
}

function planOf(given: Given): Plan {
  return {
    streams: given.number("streams") ?? DEFAULT_STREAMS,
    size: given.number("size") ?? DEFAULT_BYTES,
    seconds: given.number("seconds") ?? DEFAULT_SECONDS,
    below: given.text("below") ?? "streamdir-bench",
  };
}

function faultOf({ streams, size, seconds, below }: Plan): string | null {
  const checked = checkedName(below);
  if ("fault" in checked) return `--below ${checked.fault}`;
  const garbled = faultOfEncoding(below);
  if (garbled !== null) return `--below ${garbled}`;
  if (streams < 1 || streams > MAX_STREAMS) return `--streams must be from 1 to ${MAX_STREAMS}`;
  if (size > MAX_BYTES) return "--size must be at most 16MiB";
  return seconds < 1 || seconds > MAX_SECONDS ? `--seconds must be from 1 to ${MAX_SECONDS}` : null;
}

async function bench(session: Session): Promise<Failure | null> {
  const plan = planOf(session.given);
  const fault = faultOf(plan);
  if (fault !== null) return failure(EXIT.usage, fault);
  const id = freshId();
  const names = Array.from({ length: plan.streams }, (_, at) => `${plan.below}/${id}/${at}`);
  const meter = new Meter(session.surroundings.stderr);
  const made = await onAll(names, (name) => create(session, name, plan));
  const append = new Tally(stopwatchMs(), (plan.seconds * 1000) / SLICES);
  const appended = made ?? (await appendAll(session, names, plan, append, meter));
  const appends = append.figures(stopwatchMs());
  const read = new Tally(stopwatchMs(), 100);
  const readBack = appended ?? (await onAll(names, (name) => readAll(session, name, read, meter, append.bytes)));
  const reads = read.figures(stopwatchMs());
  meter.clear();
  // A server that was waited for in vain is not waited for once more: what it has expires.
  const isLost = readBack?.status === EXIT.unreachable;
  const removed = isLost ? null : await removeAll(session, names);
  if (readBack !== null) return readBack;
  return (await report(session, plan, { append: appends, read: reads })) ?? removed;
}

/** Does the same with all streams at a time; the first failure counts. */
async function onAll(
  names: readonly string[],
  work: (name: string) => Promise<Failure | null>,
): Promise<Failure | null> {
  const ended = await Promise.all(names.map(work));
  return ended.find((failed) => failed !== null) ?? null;
}

async function create(session: Session, name: string, { seconds }: Plan): Promise<Failure | null> {
  const headers = { "Content-Type": TYPE, "Stream-TTL": String(seconds + LEFT_FOR_SECONDS) };
  const asked = { method: "PUT", target: session.server.target(name), headers } as const;
  // 200 says that it was made before, where the first answer was lost: nobody else has the name.
  const answer = await session.expect([200, 201], streamCalled(name), asked);
  return answer.kind === "failure" ? answer : null;
}

function appendAll(
  session: Session,
  names: readonly string[],
  { seconds, size }: Plan,
  tally: Tally,
  meter: Meter,
): Promise<Failure | null> {
  const endMs = stopwatchMs() + seconds * 1000;
  const body = Buffer.alloc(size, "0123456789abcdef");
  return onAll(names, async (name) => {
    const headers = { "Content-Type": TYPE };
    const asked = { method: "POST", target: session.server.target(name), headers, body } as const;
    for (let nowMs = stopwatchMs(); nowMs < endMs; nowMs = stopwatchMs()) {
      const answer = await session.expect([200, 204], streamCalled(name), asked);
      if (answer.kind === "failure") return answer;
      tally.add(stopwatchMs(), answer.tookMs, size);
      meter.showUntil("append", tally.bytes, endMs - nowMs);
    }
    return null;
  });
}

function readAll(session: Session, name: string, tally: Tally, meter: Meter, total: number): Promise<Failure | null> {
  let beganMs = stopwatchMs();
  return readToTail(session, name, "-1", (page) => {
    const nowMs = stopwatchMs();
    tally.add(nowMs, nowMs - beganMs, page.body.length);
    meter.show("read", tally.bytes, total);
    beganMs = nowMs;
    return "more";
  });
}

/** Also after a signal, which has broken off all that the session asked for. */
async function removeAll(session: Session, names: readonly string[]): Promise<Failure | null> {
  const removed = session.signal.aborted ? null : await onAll(names, (name) => remove(session, name));
  if (!session.signal.aborted) return removed;
  const last = session.afterSignal(AbortSignal.timeout(CLEAN_UP_MS));
  try {
    return await onAll(names, (name) => remove(last, name));
  } finally {
    last.close();
  }
}

async function remove(session: Session, name: string): Promise<Failure | null> {
  const asked = { method: "DELETE", target: session.server.target(name) } as const;
  const answer = await session.expect([204, 404], streamCalled(name), asked);
  return answer.kind === "failure" ? answer : null;
}

async function report(
  session: Session,
  plan: Plan,
  phases: { readonly append: Figures; readonly read: Figures },
): Promise<null> {
  const { out, asJson, surroundings } = session;
  if (asJson) {
    await out.writeJson({ ...plan, ...phases });
    return null;
  }
  const isColoured = out.isTerminal && (surroundings.env["NO_COLOR"] ?? "") === "";
  const heading = `${plan.streams} streams, appends of ${plan.size} bytes, ${plan.seconds} s, ${session.serverName}\n`;
  await out.write(`${heading}${tableOf(phases)}${chartOf("appends", phases.append, isColoured)}`);
  return null;
}
