import { once } from "node:events";
import { connect } from "node:net";
import { quantile, requestBytes } from "../scale/load.js";
import { pause } from "../scale/server-under-load.js";
import { Connection } from "./connection.js";
import { Crowd } from "./crowd.js";
import { fieldOf, HttpAnswers } from "./http-answers.js";
import { stamped, Stamps } from "./stamps.js";

/** What a process with readers and writers is to do; it gets that as its only argument, and prints a {@link MixedReport}. */
export interface MixedOrder {
  readonly port: number;
  /** The streams are this and a number, from 0 on. */
  readonly prefix: string;
  readonly streams: number;
  /** Half of them by SSE, half by long-poll, each at the tail of a stream of its own. */
  readonly readers: number;
  /** Each appends to its part of the streams in turn, the next as soon as the last is answered. */
  readonly writers: number;
  readonly bytes: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** How it went. */
export interface MixedReport {
  readonly appendsPerSecond: number;
  readonly arrivalsPerSecond: number;
  readonly appendP99Ms: number;
  /** From the append's first byte sent until a reader has the message. */
  readonly arrivalP99Ms: number;
}

/** Latencies, once they count. */
class Latencies {
  readonly #ms: number[] = [];
  isCounting = false;

  add(sentMs: number): void {
    if (this.isCounting) this.#ms.push(performance.now() - sentMs);
  }

  get count(): number {
    return this.#ms.length;
  }

  get p99Ms(): number {
    return quantile(Float64Array.from(this.#ms).sort(), 0.99);
  }
}

async function run({ port, prefix, streams, readers, writers, bytes, warmUpMs, measureMs }: MixedOrder): Promise<MixedReport> {
  const appends = new Latencies();
  const arrivals = new Latencies();
  const half = Math.floor(readers / 2);
  const bySse = (index: number): Buffer =>
    requestBytes("GET", `${prefix}${index % streams}?offset=now&live=sse`, { Accept: "text/event-stream" });
  const stamps = Array.from({ length: half }, () => new Stamps());
  await Crowd.open(port, half, bySse, { take: (chunk, index) => stamps[index]?.take(chunk).forEach((sentMs) => arrivals.add(sentMs)) });
  for (let index = half; index < readers; index += 1)
    await pollAgainAndAgain(port, `${prefix}${index % streams}`, (sentMs) => arrivals.add(sentMs));
  for (let index = 0; index < writers; index += 1) {
    const own = Array.from({ length: streams }, (_, stream) => stream).filter((stream) => stream % writers === index);
    await appendAgainAndAgain(
      port,
      own.map((stream) => `${prefix}${stream}`),
      bytes,
      (sentMs) => appends.add(sentMs),
    );
  }
  await pause(warmUpMs);
  appends.isCounting = arrivals.isCounting = true;
  const startedMs = performance.now();
  await pause(measureMs);
  const seconds = (performance.now() - startedMs) / 1000;
  return {
    appendsPerSecond: appends.count / seconds,
    arrivalsPerSecond: arrivals.count / seconds,
    appendP99Ms: appends.p99Ms,
    arrivalP99Ms: arrivals.p99Ms,
  };
}

function fail(error: Error): never {
  throw error;
}

/** Follows a stream by long-poll, and tells when each message that arrives was sent. */
async function pollAgainAndAgain(port: number, path: string, arrived: (sentMs: number) => void): Promise<void> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  await once(socket, "connect");
  const stamps = new Stamps();
  const answers = new HttpAnswers();
  const poll = (offset: string): void => void socket.write(requestBytes("GET", `${path}?offset=${offset}&live=long-poll`));
  socket.on("data", (chunk: Buffer) => {
    for (const sentMs of stamps.take(chunk)) arrived(sentMs);
    if (!answers.take(chunk)) return;
    if (answers.status >= 300) throw new Error(`a long-poll was answered ${answers.status}`);
    poll(fieldOf(answers.head, "stream-next-offset") ?? "");
  });
  socket.on("error", fail);
  socket.on("end", () => fail(new Error("the server closed a connection")));
  poll("now");
}

async function appendAgainAndAgain(
  port: number,
  paths: readonly string[],
  bytes: number,
  answered: (sentMs: number) => void,
): Promise<void> {
  let next = 0;
  let sentMs = 0;
  const send = (): void => {
    sentMs = performance.now();
    connection.send(requestBytes("POST", paths[next] ?? "", { "Content-Type": "text/plain" }, stamped(sentMs, bytes)));
    next = (next + 1) % paths.length;
  };
  const connection = await Connection.open(
    port,
    new HttpAnswers(),
    (status) => {
      if (status >= 300) throw new Error(`an append was answered ${status}`);
      answered(sentMs);
      send();
    },
    fail,
  );
  send();
}

const [order] = process.argv.slice(2);
if (order !== undefined) {
  console.log(JSON.stringify(await run(JSON.parse(order) as MixedOrder)));
  process.exit(0);
}
