import { Connection } from "./connection.js";
import { Crowd } from "./crowd.js";
import { HttpAnswers } from "./http-answers.js";
import { requestBytes } from "../scale/load.js";
import { pause } from "../scale/server-under-load.js";

/** What a process that follows a stream many times is to do; it gets that as its only argument, and prints a {@link ReadersReport}. */
export interface ReadersOrder {
  readonly port: number;
  /** With its query; for the appends, the path alone counts. */
  readonly target: string;
  readonly readers: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** How it went. */
export interface ReadersReport {
  readonly deliveriesPerSecond: number;
  readonly appendsPerSecond: number;
}

/** In each message once, and in nothing else that is sent. */
export const MARK = "~";
const MARK_BYTE = MARK.charCodeAt(0);

/** Follows a stream with so many readers while one writer appends as fast as it is answered, and counts what arrives. */
async function run({ port, target, readers, warmUpMs, measureMs }: ReadersOrder): Promise<ReadersReport> {
  let deliveries = 0;
  let appends = 0;
  const request = requestBytes("GET", target, { Accept: "text/event-stream" });
  await Crowd.open(port, readers, () => request, { take: (chunk) => (deliveries += marksIn(chunk)) });
  const append = requestBytes("POST", target.split("?")[0] ?? "", { "Content-Type": "text/plain" }, MARK.padEnd(100, "x"));
  const answered = (): void => {
    appends += 1;
    writer.send(append);
  };
  const writer = await Connection.open(port, new HttpAnswers(), answered, (error) => {
    throw error;
  });
  writer.send(append);
  await pause(warmUpMs);
  const before = { deliveries, appends };
  const startedMs = performance.now();
  await pause(measureMs);
  const seconds = (performance.now() - startedMs) / 1000;
  return { deliveriesPerSecond: (deliveries - before.deliveries) / seconds, appendsPerSecond: (appends - before.appends) / seconds };
}

function marksIn(chunk: Buffer): number {
  let marks = 0;
  for (let at = chunk.indexOf(MARK_BYTE); at !== -1; at = chunk.indexOf(MARK_BYTE, at + 1)) marks += 1;
  return marks;
}

const [order] = process.argv.slice(2);
if (order !== undefined) {
  console.log(JSON.stringify(await run(JSON.parse(order) as ReadersOrder)));
  process.exit(0);
}
