import { randomBytes } from "node:crypto";
import { stopwatchMs, type Clock } from "../../../ops/clock.js";
import { LogUnavailableError, type LogMessage } from "../log/replicated-log.js";
import { faultOfAnswer, messageOfConsumer, type ApiAnswer } from "./answers.js";
import type { NatsMessage } from "../client/nats-client.js";
import type { Requests } from "./requests.js";

/** Heads that are fetched at a time. */
const HEADS_BATCH = 1000;
const HEADS_TIMEOUT_MS = 10_000;
/** How long a consumer that was made may not be found yet by the server that is asked. */
const NEW_CONSUMER_MS = 2000;
const MIN_PAUSE_MS = 2;

type Head = Omit<LogMessage, "body">;
type Delivery = NonNullable<ReturnType<typeof messageOfConsumer>>;

/** How a JetStream stream is asked for its heads. */
export interface HeadsSource {
  /** What the leader answers to a call of the API that names a consumer; `null` where it does not. */
  readonly call: (call: string, query: object, consumer: string) => Promise<ApiAnswer | null>;
  /** Why a call has no answer: `otherwise`, unless more is known. */
  readonly unavailable: (stream: string, call: string, otherwise: string) => LogUnavailableError;
  readonly requests: Pick<Requests, "gatherDeliveries">;
  readonly clock: Pick<Clock, "after">;
}

/** The heads of one JetStream stream, by a consumer that fetches so many at a time. Throws LogUnavailableError. */
export async function* headsOf(source: HeadsSource, stream: string, filter: string): AsyncGenerator<Head> {
  const name = `sd_${randomBytes(8).toString("hex")}`;
  let pending = await openConsumer(source, stream, name, filter);
  let delivered = 0;
  try {
    while (pending > 0) {
      for (const head of await fetch(source, stream, name, Math.min(HEADS_BATCH, pending))) {
        delivered += 1;
        if (head.delivered !== delivered)
          throw new LogUnavailableError(`a head of ${stream} was lost on its way`, stream);
        pending = head.pending;
        yield head;
      }
    }
  } finally {
    await source.call(`CONSUMER.DELETE.${stream}`, {}, name);
  }
}

async function openConsumer(source: HeadsSource, stream: string, name: string, filter: string): Promise<number> {
  const config = {
    name,
    deliver_policy: "last_per_subject",
    ack_policy: "none",
    replay_policy: "instant",
    filter_subject: filter,
    headers_only: true,
    mem_storage: true,
    num_replicas: 1,
    inactive_threshold: HEADS_TIMEOUT_MS * 6 * 1e6,
  };
  const call = `CONSUMER.CREATE.${stream}`;
  const answer = await source.call(call, { stream_name: stream, config, action: "create" }, name);
  const pending = answer?.["num_pending"];
  if (typeof pending === "number") return pending;
  const why = answer === null ? "no leader answers" : faultOfAnswer(answer)?.description;
  throw source.unavailable(stream, call, `${stream} can't be listed: ${why ?? ""}`);
}

/** The next heads. That a consumer is there is told before the server that this one is connected to can find it. */
async function fetch(source: HeadsSource, stream: string, name: string, batch: number): Promise<readonly Delivery[]> {
  const query = JSON.stringify({ batch, expires: HEADS_TIMEOUT_MS * 0.9 * 1e6 });
  const isLast = (message: NatsMessage, count: number): boolean =>
    count === batch || messageOfConsumer(message)?.pending === 0 || (message.headers?.code ?? 0) > 0;
  const call = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${name}`;
  const startedAtMs = stopwatchMs();
  for (let pauseMs = MIN_PAUSE_MS; ; pauseMs *= 2) {
    const messages = await source.requests.gatherDeliveries(call, query, HEADS_TIMEOUT_MS, isLast);
    const heads = messages.flatMap((message) => messageOfConsumer(message) ?? []);
    if (heads.length > 0) return heads;
    if (stopwatchMs() - startedAtMs + pauseMs > NEW_CONSUMER_MS)
      throw source.unavailable(stream, call, `${stream} can't be listed: its consumer is gone`);
    await new Promise<void>((resolve) => void source.clock.after(pauseMs, resolve));
  }
}
