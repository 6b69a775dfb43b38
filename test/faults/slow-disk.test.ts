import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { injectFaults, lacksInjection } from "../helpers/machine.js";
import { codeOf, RealServer, type Reply } from "../helpers/real-server.js";
import { placeOf } from "../helpers/tokens.js";

const KIB = 1024;
const MIB = 1024 * KIB;
/** Payload that may wait for the disk; beyond it appends are refused. */
const QUEUE_MIB = 64;
/** The tail cache of these servers. */
const CACHE_MIB = 16;
/** What bodies that are still arriving, and the garbage of those that were refused, may take beside that. */
const ARRIVING_MIB = 192;

/** The most memory that a process has had since `forgetPeak`, in MiB. */
function peakMiB(pid: number): number {
  const [, kib = "0"] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "latin1")) ?? [];
  return Number(kib) / KIB;
}

function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}

interface Flood {
  readonly name: string;
  readonly appends: number;
  readonly bytes: number;
}

/** Both are about twice what may wait; the large ones go past the journal. */
const FLOODS: readonly Flood[] = [
  { name: "small", appends: 500, bytes: 240 * KIB },
  { name: "large", appends: 128, bytes: MIB },
];
const STREAMS = 10;

const TEXT = { "Content-Type": "text/plain" };

/** One of many producers appends once. */
function appendOne(server: RealServer, { name, bytes }: Flood, index: number): Promise<Reply> {
  const headers = { ...TEXT, "Producer-Id": `p${index}`, "Producer-Epoch": "0", "Producer-Seq": "0" };
  return server.ask("POST", `${name}/${index % STREAMS}`, { headers, body: Buffer.alloc(bytes, `${index} `) });
}

/** The first answer that is a refusal. */
function firstRefusal(answers: readonly Promise<Reply>[]): Promise<Reply> {
  const refusals = answers.map((answer) => answer.then((reply) => (reply.status === 503 ? reply : Promise.reject(new Error("taken")))));
  return Promise.any(refusals);
}

/** Bytes in all streams of a flood. */
async function storedBytes(server: RealServer, { name }: Flood): Promise<number> {
  let sum = 0;
  for (let index = 0; index < STREAMS; index += 1) {
    const { headers } = await server.ask("HEAD", `${name}/${index}`);
    sum += placeOf(headers["stream-next-offset"])
      .split("_")
      .reduce((left, right) => left + Number(right), 0);
  }
  return sum;
}

describe("a slow disk", { skip: lacksInjection }, () => {
  for (const delay of ["100ms", "1100ms"]) {
    for (const flood of FLOODS) {
      test(`each write and sync ${delay}: a flood of ${flood.name} appends waits or is refused in bounded memory, and all is well when the disk is`, async (context) => {
        const server = new RealServer(context, ["--tail-cache-bytes", `${CACHE_MIB}MiB`]);
        await server.start();
        for (let index = 0; index < STREAMS; index += 1) await server.ask("PUT", `${flood.name}/${index}`, { headers: TEXT });
        const { pid } = server.process;
        const before = peakMiB(pid);
        forgetPeak(pid);
        const endSlowness = await injectFaults(context, pid, { calls: "pwrite64,fdatasync", fault: `delay_enter=${delay}` });
        const answers = Array.from({ length: flood.appends }, (_, index) => appendOne(server, flood, index));
        const refusal = await firstRefusal(answers);
        assert.equal(codeOf(refusal), "overloaded");
        assert.match(String(refusal.headers["retry-after"]), /^\d+$/);
        assert.equal((await server.ask("GET", `${flood.name}/0?offset=now`)).status, 200, "reads go on");
        // Large ones are on their way to their segments, which nobody logs.
        if (delay === "1100ms" && flood.name === "small") await server.process.stderrLine(/the disk is slow/);
        await endSlowness();
        const replies = await Promise.all(answers);
        const peak = peakMiB(pid);
        const refused = replies.flatMap(({ status }, index) => (status === 503 ? [index] : []));
        context.diagnostic(
          `${refused.length} of ${flood.appends} were refused; ${peak.toFixed(0)} MiB at most, ${before.toFixed(0)} before`,
        );
        assert.ok(peak < before + QUEUE_MIB + CACHE_MIB + ARRIVING_MIB, `${peak} MiB at most`);
        assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200, 503]));
        assert.equal(await storedBytes(server, flood), (flood.appends - refused.length) * flood.bytes, "what was refused is not there");
        // What is still on its way may turn a few more away.
        for (const index of refused) {
          let reply = await appendOne(server, flood, index);
          while (reply.status === 503) reply = await appendOne(server, flood, index);
          assert.equal(reply.status, 200);
        }
        assert.equal((await appendOne(server, flood, 0)).status, 204);
        assert.equal(await storedBytes(server, flood), flood.appends * flood.bytes);
        assert.equal((await server.ask("GET", "/health")).status, 200);
      });
    }
  }
});
