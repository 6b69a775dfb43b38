import { quantile, requestBytes } from "../scale/load.js";
import { openDialogue } from "./connection.js";
import { fieldOf, HttpAnswers } from "./http-answers.js";

/** What a process that waits for its own appends is to do; it gets that as its only argument, and prints a {@link RoundTripReport}. */
export interface RoundTripOrder {
  readonly port: number;
  /** The stream's. */
  readonly path: string;
  readonly bytes: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** How it went. */
export interface RoundTripReport {
  /** From the append's first byte sent to the long-poll's last one received. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** One connection waits in a long-poll, another appends once it does, again and again. */
async function run({ port, path, bytes, warmUpMs, measureMs }: RoundTripOrder): Promise<RoundTripReport> {
  const reader = await openDialogue(port, new HttpAnswers());
  const writer = await openDialogue(port, new HttpAnswers());
  const head = requestBytes("HEAD", path);
  const append = requestBytes("POST", path, { "Content-Type": "text/plain" }, "x".repeat(bytes));
  const latenciesMs: number[] = [];
  const startedMs = performance.now();
  let offset = "now";
  for (let nowMs = startedMs; nowMs - startedMs < warmUpMs + measureMs; nowMs = performance.now()) {
    const arrived = reader.ask(requestBytes("GET", `${path}?offset=${offset}&live=long-poll`));
    // Once this is answered the server has taken the long-poll, which was sent before it.
    await writer.ask(head);
    const sentMs = performance.now();
    const appended = writer.ask(append);
    const answer = await arrived;
    if (sentMs - startedMs >= warmUpMs) latenciesMs.push(performance.now() - sentMs);
    const { status } = await appended;
    if (answer.status !== 200 || status >= 300) throw new Error(`an append was answered ${status}, its long-poll ${answer.status}`);
    offset = fieldOf(answer.head, "stream-next-offset") ?? "";
  }
  const sorted = Float64Array.from(latenciesMs).sort();
  return { p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99) };
}

const [order] = process.argv.slice(2);
if (order !== undefined) {
  console.log(JSON.stringify(await run(JSON.parse(order) as RoundTripOrder)));
  process.exit(0);
}
