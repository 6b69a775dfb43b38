import { quantile } from "../scale/load.js";
import { pause } from "../scale/server-under-load.js";
import { Connection } from "./connection.js";
import { HttpAnswers } from "./http-answers.js";
import { RedisAnswers } from "./redis-answers.js";
import { requestsOf, type Traffic } from "./traffic.js";

/** What a process that makes load is to do; it gets that as its only argument, and prints a {@link LoadReport}. */
export interface LoadOrder {
  readonly port: number;
  readonly connections: number;
  readonly traffic: Traffic;
  /** What goes before is not counted. */
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** How it went. */
export interface LoadReport {
  readonly requestsPerSecond: number;
  /** Bytes of the answers, as they are on the wire. */
  readonly answerBytesPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The latency of each thousandth of the answers, ascending: 1,000 of them, so that loads can be put together. */
  readonly thousandthsMs: readonly number[];
  readonly answers: number;
  /** How many of them had which status from 400 on. */
  readonly refusals: Readonly<Record<string, number>>;
}

async function run({ port, connections, traffic, warmUpMs, measureMs }: LoadOrder): Promise<LoadReport> {
  const latenciesMs: number[] = [];
  const refusals: Record<string, number> = {};
  let answerBytes = 0;
  let isCounting = false;
  let isOver = false;
  const fail = (error: Error): void => {
    console.error(error.message);
    process.exit(1);
  };
  const open: Connection[] = [];
  for (let index = 0; index < connections; index += 1) {
    const next = requestsOf(traffic, index, connections);
    let sentMs = 0;
    const answered = (status: number, wireBytes: number): void => {
      const nowMs = performance.now();
      if (isOver) return;
      if (isCounting) {
        latenciesMs.push(nowMs - sentMs);
        answerBytes += wireBytes;
        if (status >= 400) refusals[status] = (refusals[status] ?? 0) + 1;
      }
      sentMs = nowMs;
      connection.send(next());
    };
    const connection = await Connection.open(port, traffic.kind === "xadd" ? new RedisAnswers() : new HttpAnswers(), answered, fail);
    open.push(connection);
    sentMs = performance.now();
    connection.send(next());
  }
  await pause(warmUpMs);
  isCounting = true;
  const startedMs = performance.now();
  await pause(measureMs);
  isOver = true;
  const seconds = (performance.now() - startedMs) / 1000;
  for (const connection of open) connection.close();
  const sorted = Float64Array.from(latenciesMs).sort();
  return {
    requestsPerSecond: sorted.length / seconds,
    answerBytesPerSecond: answerBytes / seconds,
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
    thousandthsMs: Array.from({ length: 1000 }, (_, index) => quantile(sorted, (index + 1) / 1000)),
    answers: sorted.length,
    refusals,
  };
}

const [order] = process.argv.slice(2);
if (order !== undefined) console.log(JSON.stringify(await run(JSON.parse(order) as LoadOrder)));
