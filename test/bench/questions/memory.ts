import { connect, type Socket } from "node:net";
import { median, requestBytes } from "../../scale/load.js";
import type { ServerUnderLoad } from "../../scale/server-under-load.js";
import { Crowd } from "../crowd.js";
import { lackOfConnections, lackOfDisk, lackOfMemoryFigures } from "../machine.js";
import { absolute, type Question } from "../question.js";
import { appendTo, ask, askEach, askTimes, creationOf, headerOf, readOf, START, type Rig } from "../rig.js";
import { requestOf } from "../traffic.js";

const IDLE_READERS = 9000;
const IDLE_STREAMS = 1000;
const IDLE_MIB = 160;
const SLOW_READER_MIB = 2;
const GROWING_MIB = 250;
const MIB = 2 ** 20;
const GIB = 2 ** 30;
const APPEND_BYTES = 64 * 1024;
/** Reads that a slow reader asks for at once: more than the system's own buffers between the two hold. */
const PIPELINED_READS = 32;
/** Nothing that waits is sent away while it is measured. */
const PATIENT = ["--long-poll-timeout", "1h", "--sse-lifetime", "1h"];

/** So many readers, at the tails of many streams, that nothing comes for. */
function idle(id: string, title: string, live: "sse" | "long-poll"): Question {
  return {
    id,
    title,
    load: `over ${IDLE_STREAMS.toLocaleString("en")} streams; resident, the most while idle`,
    async ask(rig) {
      const readers = rig.size(IDLE_READERS, 500);
      const lack = lackOfConnections(readers) ?? lackOfMemoryFigures();
      if (lack !== null) return lack;
      const resident: Resident[] = [];
      for (let round = 0; round < rig.effort.pairs; round += 1) {
        rig.progress(`round ${round + 1} of ${rig.effort.pairs}`);
        resident.push(await residentWith(rig, live, readers));
      }
      const before = median(resident.map(({ beforeMiB }) => beforeMiB)).toFixed(0);
      return { figures: [absolute(`before they came ${before} MiB`, "MiB", median(resident.map(({ idleMiB }) => idleMiB)), IDLE_MIB)] };
    },
  };
}

/** Resident memory before readers came, and the most while they waited, in MiB. */
interface Resident {
  readonly beforeMiB: number;
  readonly idleMiB: number;
}

async function residentWith(rig: Rig, live: "sse" | "long-poll", readers: number): Promise<Resident> {
  const server = await rig.server(...PATIENT);
  const paths = Array.from({ length: IDLE_STREAMS }, (_, index) => `/v1/stream/idle-${index}`);
  await askEach(
    server.port,
    paths.map((path) => creationOf(path)),
  );
  const beforeMiB = server.memory().nowMiB;
  const requests = paths.map((path) => requestOf(readOf(`${path}?offset=now&live=${live}`)));
  // A HEAD is answered when the server has taken all that was sent before it.
  const head = { method: "HEAD", path: paths[0] ?? "", headers: {}, body: 0 };
  const taken = live === "sse" ? {} : { taken: () => ask(server.port, head) };
  const crowd = await Crowd.open(server.port, readers, (index) => requests[index % requests.length] ?? Buffer.alloc(0), taken);
  const idleMiB = await mostDuring(server, rig.effort.measureMs);
  crowd.recount();
  await askEach(
    server.port,
    paths.map((path) => appendTo(path, 100)),
  );
  // All of them were there all the time.
  await crowd.answered(readers);
  crowd.close();
  await server.end("SIGKILL");
  return { beforeMiB, idleMiB };
}

/** The most resident memory that is seen in `ms`, in MiB. */
async function mostDuring(server: ServerUnderLoad, ms: number): Promise<number> {
  let mostMiB = 0;
  await server.until(() => {
    mostMiB = Math.max(mostMiB, server.memory().nowMiB);
    return false;
  }, ms);
  return mostMiB;
}

export const idleSse = idle("memory-sse", "memory with 9,000 idle SSE readers", "sse");
export const idleLongPolls = idle("memory-long-poll", "memory with 9,000 idle long-polls", "long-poll");

/** What a client asks that then reads nothing, by the name that the table gives it. */
const SLOW_READERS: readonly (readonly [what: string, request: Buffer])[] = [
  ["SSE", requestBytes("GET", `/v1/stream/slow?offset=${START}&live=sse`)],
  [
    "catch-up, 32 reads asked for at once",
    Buffer.concat(Array<Buffer>(PIPELINED_READS).fill(requestBytes("GET", `/v1/stream/slow?offset=${START}`))),
  ],
];

export const slowReader: Question = {
  id: "memory-slow-reader",
  title: "memory that a reader costs who stops reading while 1 GiB is appended",
  load: "64 KiB appends, 8 connections; beside the same without the reader",
  async ask(rig) {
    const lack = lackOfMemoryFigures() ?? lackOfDisk(2 * GIB);
    if (lack !== null) return lack;
    const alone: Held[] = [];
    const beside = SLOW_READERS.map((): Held[] => []);
    for (let round = 0; round < rig.effort.pairs; round += 1) {
      rig.progress(`round ${round + 1} of ${rig.effort.pairs}`);
      alone.push(await heldAfterAppends(rig, null));
      for (const [index, [, request]] of SLOW_READERS.entries()) beside[index]?.push(await heldAfterAppends(rig, request));
    }
    const costs = (index: number, of: (held: Held) => number): number =>
      median((beside[index] ?? []).map((held, round) => of(held) - of(alone[round] ?? held)));
    const figures = SLOW_READERS.flatMap(([what], index) => [
      absolute(
        `${what}: in use after a collection`,
        "MiB",
        costs(index, (held) => held.inUseMiB),
        SLOW_READER_MIB,
      ),
      absolute(
        `${what}: resident at the most`,
        "MiB",
        costs(index, (held) => held.peakMiB),
        null,
      ),
    ]);
    return {
      figures: [...figures, absolute("without one, resident at the most", "MiB", median(alone.map(({ peakMiB }) => peakMiB)), null)],
    };
  },
};

/** What a server holds, in MiB. */
interface Held {
  readonly inUseMiB: number;
  readonly peakMiB: number;
}

/** Appends to a new server's stream while one client has sent `slow` and reads nothing. */
async function heldAfterAppends(rig: Rig, slow: Buffer | null): Promise<Held> {
  const server = await rig.probedServer(...PATIENT);
  await ask(server.port, creationOf("/v1/stream/slow"));
  // A whole chunk, for a reader that catches up.
  await ask(server.port, appendTo("/v1/stream/slow", MIB));
  const socket = slow === null ? null : await deafSocket(server.port, slow);
  const append = requestOf(appendTo("/v1/stream/slow", APPEND_BYTES));
  await askTimes(server.port, rig.size(GIB, 64 * MIB) / APPEND_BYTES, () => append);
  const held = { inUseMiB: await server.inUseMiB(), peakMiB: server.memory().peakMiB };
  if (socket?.destroyed === true) throw new Error("the slow reader was sent away");
  socket?.destroy();
  await server.end("SIGKILL");
  return held;
}

/** A connection that sends `request` and from then on reads nothing. */
function deafSocket(port: number, request: Buffer): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.pause();
  return new Promise((resolve, reject) => {
    socket.on("error", reject);
    socket.on("connect", () => socket.write(request, () => resolve(socket)));
  });
}

export const tenGiB: Question = {
  id: "memory-10-gib",
  title: "memory while 10 GiB are appended to one stream and read back",
  load: "1 MiB, appends on 8 connections; resident, the most ever",
  async ask(rig) {
    const bytes = rig.size(10 * GIB, 128 * MIB);
    const lack = lackOfMemoryFigures() ?? lackOfDisk(bytes * 1.2);
    if (lack !== null) return lack;
    const server = await rig.server();
    const path = "/v1/stream/grows";
    await ask(server.port, creationOf(path));
    rig.progress("appends");
    const append = requestOf(appendTo(path, MIB));
    await askTimes(server.port, bytes / MIB, () => append);
    const appendedMiB = server.memory().peakMiB;
    rig.progress("reads");
    let offset = START;
    for (let read = 0; read < bytes;) {
      const answer = await ask(server.port, readOf(`${path}?offset=${offset}`));
      if (answer.bodyBytes === 0) throw new Error(`the stream ends after ${read} of ${bytes} bytes`);
      read += answer.bodyBytes;
      offset = headerOf(answer, "stream-next-offset");
    }
    return { figures: [absolute(`after the appends ${appendedMiB.toFixed(0)} MiB`, "MiB", server.memory().peakMiB, GROWING_MIB)] };
  },
};
