import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startProgram, type TestScope } from "../helpers/process.js";
import type { LoadOrder, LoadReport } from "./load-process.js";
import { hasProgram } from "./rivals/rival.js";
import { requestOf, type RequestShape } from "./traffic.js";

/** Fewer connections are for large bodies, which cost everybody more than the load does, or for one at a time. */
const MIN_CONNECTIONS = 32;

/** What the script prints at the end. Times are in microseconds. */
interface WrkSummary {
  readonly requests: number;
  readonly bytes: number;
  readonly durationUs: number;
  readonly p50Us: number;
  readonly p99Us: number;
  /** The latency of each thousandth of the answers. */
  readonly thousandthsUs: readonly number[];
  /** Answers with a status from 400 on. */
  readonly refused: number;
  /** Connections that failed, and answers that did not come in time. */
  readonly failed: number;
}

/** Whether it is installed. */
export const hasWrk = hasProgram("wrk");

/**
 * Whether wrk makes this load: where it is installed, and the requests depend on nothing that was sent before. It takes
 * half of the processor time of a process of Node, which is what the server is left with on a small machine.
 */
export function isForWrk({ traffic, connections }: Pick<LoadOrder, "traffic" | "connections">): boolean {
  return hasWrk && traffic.kind === "fixed" && connections >= MIN_CONNECTIONS;
}

/** Makes the load with wrk, which knows whole seconds; `directory` is for its script. Throws when a connection fails. */
export async function loadByWrk(scope: TestScope, directory: string, order: LoadOrder): Promise<LoadReport> {
  if (order.traffic.kind !== "fixed") throw new Error(`wrk can't send ${order.traffic.kind}`);
  mkdirSync(directory);
  const script = join(directory, "requests.lua");
  writeFileSync(script, scriptOf(order.traffic.requests));
  // It is warm at once: less than half a second is for a load of Node's.
  if (order.warmUpMs >= 500) await run(scope, script, order, order.warmUpMs);
  const summary = await run(scope, script, order, order.measureMs);
  const { requests, bytes, durationUs, p50Us, p99Us, thousandthsUs, refused, failed } = summary;
  if (failed > 0) throw new Error(`wrk: ${failed} connections failed or were not answered in time`);
  const seconds = durationUs / 1e6;
  return {
    requestsPerSecond: requests / seconds,
    answerBytesPerSecond: bytes / seconds,
    p50Ms: p50Us / 1000,
    p99Ms: p99Us / 1000,
    thousandthsMs: thousandthsUs.map((us) => us / 1000),
    answers: requests,
    refusals: refused > 0 ? { "400 or more": refused } : {},
  };
}

async function run(scope: TestScope, script: string, { port, connections }: LoadOrder, durationMs: number): Promise<WrkSummary> {
  const seconds = Math.max(1, Math.round(durationMs / 1000));
  const args = ["-t1", `-c${connections}`, `-d${seconds}s`, "-s", script, `http://127.0.0.1:${port}`];
  const { status, stdout, stderr } = await startProgram(scope, "wrk", args).ended;
  const summary = /^summary (.*)$/m.exec(stdout)?.[1];
  if (status !== 0 || summary === undefined) throw new Error(`wrk ended with ${status}: ${stdout}${stderr}`);
  return JSON.parse(summary) as WrkSummary; // what the script below prints
}

/** A script that sends `requests` in turn, on whatever connection is free. */
export function scriptOf(requests: readonly RequestShape[]): string {
  return `local requests = {
${requests.map((shape) => luaString(requestOf(shape))).join(",\n")}
}
local last = 0
function request()
  last = last % #requests + 1
  return requests[last]
end
function done(summary, latency)
  local errors = summary.errors
  local thousandths = {}
  for n = 1, 1000 do thousandths[n] = string.format("%d", latency:percentile(n / 10)) end
  print(string.format('summary {"requests":%d,"bytes":%d,"durationUs":%d,"p50Us":%d,"p99Us":%d,"thousandthsUs":[%s],"refused":%d,"failed":%d}',
    summary.requests, summary.bytes, summary.duration, latency:percentile(50), latency:percentile(99),
    table.concat(thousandths, ","), errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
`;
}

/** Bytes as Lua writes them down. */
function luaString(bytes: Buffer): string {
  const text = bytes.toString("latin1").replaceAll(/[^ !#-[\]-~]/g, (character) => `\\${String(character.charCodeAt(0)).padStart(3, "0")}`);
  return `"${text}"`;
}
