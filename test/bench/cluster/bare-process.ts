import { loadNatsClient, type NatsConnection, type NatsMessage } from "../../../src/storage/nats/client/nats-client.js";
import { quantile } from "../../scale/load.js";
import { pause } from "../../scale/server-under-load.js";
import { READ_BYTES } from "./read-bytes.js";

/**
 * What a process that has the client of NATS and nothing else is to do; it gets that as its only argument, and prints a
 * {@link BareReport}.
 */
export interface BareOrder {
  /** The servers, as HOST:PORT; readers connect to the last one. */
  readonly servers: readonly string[];
  /**
   * `publishes`: so many on their way, each waits for its acknowledgement. `arrivals`: one at a time, each waits until
   * it has come back from another server, once it is stored. `reads`: batches of {@link READ_BYTES} of each subject.
   */
  readonly kind: "publishes" | "arrivals" | "reads";
  readonly subjects: number;
  readonly inFlight: number;
  readonly bytes: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** How it went. */
export interface BareReport {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** What the client has beyond what the engine uses of it. */
interface Connection extends NatsConnection {
  request(subject: string, payload: Uint8Array | string, options: { readonly timeout: number }): Promise<NatsMessage>;
}

const TIMEOUT_MS = 10_000;
const END_OF_BATCH = 204;

async function connect(servers: readonly string[]): Promise<Connection> {
  const { connect } = await loadNatsClient();
  const connection = await connect({
    servers,
    name: "bench",
    timeout: TIMEOUT_MS,
    maxReconnectAttempts: 0,
    reconnectTimeWait: 100,
    pingInterval: 60_000,
    maxPingOut: 2,
    ignoreAuthErrorAbort: false,
  });
  return connection as Connection;
}

/** A stream on three servers, like a shard of a bucket; made anew. */
async function makeStream(connection: Connection, name: string, more: object): Promise<void> {
  const config = {
    name,
    subjects: [`${name}.>`],
    num_replicas: 3,
    storage: "file",
    retention: "limits",
    discard: "new",
    allow_direct: true,
  };
  await connection.request(`$JS.API.STREAM.DELETE.${name}`, "", { timeout: TIMEOUT_MS });
  const made = await connection.request(`$JS.API.STREAM.CREATE.${name}`, JSON.stringify({ ...config, ...more }), { timeout: TIMEOUT_MS });
  refuse(made);
}

/** Throws where an answer of the servers is a refusal. */
function refuse({ data }: NatsMessage): void {
  const text = Buffer.from(data).toString();
  if (text.includes('"error"')) throw new Error(`a bare request was answered ${text}`);
}

/** Milliseconds of what was done once it counts. */
class Times {
  readonly #ms: number[] = [];
  readonly #fromMs: number;
  readonly #untilMs: number;

  constructor({ warmUpMs, measureMs }: BareOrder) {
    this.#fromMs = performance.now() + warmUpMs;
    this.#untilMs = this.#fromMs + measureMs;
  }

  get isOver(): boolean {
    return performance.now() >= this.#untilMs;
  }

  add(sentMs: number): void {
    const nowMs = performance.now();
    if (nowMs >= this.#fromMs && nowMs < this.#untilMs) this.#ms.push(nowMs - sentMs);
  }

  get report(): BareReport {
    const sorted = Float64Array.from(this.#ms).sort();
    const perSecond = sorted.length / ((this.#untilMs - this.#fromMs) / 1000);
    return { perSecond, p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99) };
  }
}

async function publishes(order: BareOrder): Promise<BareReport> {
  const connection = await connect(order.servers);
  await makeStream(connection, "BARE", {});
  const body = Buffer.alloc(order.bytes, "x");
  const times = new Times(order);
  let next = 0;
  const publishing = Array.from({ length: order.inFlight }, async () => {
    while (!times.isOver) {
      const sentMs = performance.now();
      next = (next + 1) % order.subjects;
      refuse(await connection.request(`BARE.${next}`, body, { timeout: TIMEOUT_MS }));
      times.add(sentMs);
    }
  });
  await Promise.all(publishing);
  return times.report;
}

async function arrivals(order: BareOrder): Promise<BareReport> {
  const connection = await connect(order.servers.slice(0, 1));
  const reader = await connect(order.servers.slice(-1));
  await makeStream(connection, "TOLD", { republish: { src: "TOLD.>", dest: "RETOLD.>" } });
  let arrived = (): void => undefined;
  reader.subscribe("RETOLD.>", { callback: () => arrived() });
  await reader.flush();
  // The other servers hear of a subscription a moment later.
  await pause(500);
  const body = Buffer.alloc(order.bytes, "x");
  const times = new Times(order);
  while (!times.isOver) {
    const sentMs = performance.now();
    const arrival = new Promise<void>((resolve) => (arrived = resolve)).then(() => times.add(sentMs));
    refuse(await connection.request("TOLD.0", body, { timeout: TIMEOUT_MS }));
    await arrival;
  }
  return times.report;
}

async function reads(order: BareOrder): Promise<BareReport> {
  const connection = await connect(order.servers);
  await makeStream(connection, "READ", {});
  const count = Math.ceil(READ_BYTES / order.bytes);
  const body = Buffer.alloc(order.bytes, "x");
  const subjects = Array.from({ length: order.subjects }, (_, index) => `READ.${index}`);
  // As streams are written: beside each other.
  const fill = async (subject: string): Promise<void> => {
    for (let sent = 0; sent < count; sent += 1) refuse(await connection.request(subject, body, { timeout: TIMEOUT_MS }));
  };
  await Promise.all(subjects.map(fill));
  const latencies: number[] = [];
  for (const subject of subjects) {
    const sentMs = performance.now();
    await readAll(connection, subject, count);
    latencies.push(performance.now() - sentMs);
  }
  const sorted = Float64Array.from(latencies).sort();
  const p50Ms = quantile(sorted, 0.5);
  return { perSecond: 1000 / p50Ms, p50Ms, p99Ms: quantile(sorted, 0.99) };
}

/** Reads the messages of a subject in batches, as servers give them. */
async function readAll(connection: Connection, subject: string, count: number): Promise<void> {
  const inbox = `_INBOX.read.${subject}`;
  let last = 0;
  let got = 0;
  let batchEnded = (): void => undefined;
  const subscription = connection.subscribe(inbox, {
    callback: (_error, { headers }) => {
      if (headers?.code === END_OF_BATCH) return batchEnded();
      last = Number(headers?.get("Nats-Sequence"));
      got += 1;
    },
  });
  while (got < count) {
    const ended = new Promise<void>((resolve) => (batchEnded = resolve));
    const query = { seq: last + 1, next_by_subj: subject, batch: 1000, max_bytes: READ_BYTES };
    connection.publish("$JS.API.DIRECT.GET.READ", JSON.stringify(query), { reply: inbox });
    await ended;
  }
  subscription.unsubscribe();
}

const RUN = { publishes, arrivals, reads };

const [order] = process.argv.slice(2);
if (order !== undefined) {
  const parsed = JSON.parse(order) as BareOrder;
  console.log(JSON.stringify(await RUN[parsed.kind](parsed)));
  process.exit(0);
}
