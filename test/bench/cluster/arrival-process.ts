import { once } from "node:events";
import { connect } from "node:net";
import { quantile, requestBytes } from "../../scale/load.js";
import { openDialogue } from "../connection.js";
import { HttpAnswers } from "../http-answers.js";
import { stamped, Stamps } from "../stamps.js";

/**
 * What a process that waits for its own appends at another server is to do; it gets that as its only argument, and prints an
 * {@link ArrivalReport}.
 */
export interface ArrivalOrder {
  readonly writePort: number;
  readonly readPort: number;
  readonly path: string;
  readonly bytes: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** How it went. */
export interface ArrivalReport {
  /** From the append's first byte sent until the reader has the message. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Follows a stream at one server by SSE, and appends to it at another: one at a time, each once the one before has arrived. */
async function run({ writePort, readPort, path, bytes, warmUpMs, measureMs }: ArrivalOrder): Promise<ArrivalReport> {
  const latenciesMs: number[] = [];
  const reader = connect({ port: readPort, host: "127.0.0.1", noDelay: true });
  await once(reader, "connect");
  const stamps = new Stamps();
  const startedMs = performance.now();
  let arrived = (): void => undefined;
  reader.write(requestBytes("GET", `${path}?offset=now&live=sse`, { Accept: "text/event-stream" }));
  const [head] = (await once(reader, "data")) as [Buffer];
  if (!head.toString("latin1").startsWith("HTTP/1.1 200")) throw new Error(`a reader was answered:\n${head.toString("latin1")}`);
  reader.on("data", (chunk: Buffer) => {
    for (const sentMs of stamps.take(chunk)) {
      if (sentMs - startedMs >= warmUpMs) latenciesMs.push(performance.now() - sentMs);
      arrived();
    }
  });
  const writer = await openDialogue(writePort, new HttpAnswers());
  for (let nowMs = startedMs; nowMs - startedMs < warmUpMs + measureMs;) {
    const arrival = new Promise<void>((resolve) => (arrived = resolve));
    nowMs = performance.now();
    const { status } = await writer.ask(requestBytes("POST", path, { "Content-Type": "text/plain" }, stamped(nowMs, bytes)));
    if (status >= 300) throw new Error(`an append was answered ${status}`);
    await arrival;
  }
  const sorted = Float64Array.from(latenciesMs).sort();
  return { p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99) };
}

const [order] = process.argv.slice(2);
if (order !== undefined) {
  console.log(JSON.stringify(await run(JSON.parse(order) as ArrivalOrder)));
  process.exit(0);
}
