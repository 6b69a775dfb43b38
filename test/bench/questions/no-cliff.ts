import { measureCheckpoint } from "../../scale/checkpoint.js";
import { median } from "../../scale/load.js";
import type { ServerUnderLoad } from "../../scale/server-under-load.js";
import type { Curves } from "../curves.js";
import { lackOfDisk } from "../machine.js";
import { absolute, type Figure, type Question } from "../question.js";
import { appendTo, ask, askTimes, creationOf, type Rig } from "../rig.js";
import { requestOf, type Traffic } from "../traffic.js";

const CONNECTIONS = 64;
const BYTES = 100;
const MIB = 2 ** 20;
const MAX_CHECKPOINT_RATIO = 5;

export const checkpoint: Question = {
  id: "checkpoint",
  title: "p99 of an append during a checkpoint of 10,000 streams, times the quiet one",
  load: `${BYTES} B, 8 connections`,
  async ask(rig) {
    const [ratio] = await measureCheckpoint({ scope: rig, root: rig.directory(), streams: 0, rounds: rig.effort.pairs });
    return { figures: [absolute("", "times", ratio?.measured ?? NaN, MAX_CHECKPOINT_RATIO)] };
  },
};

/** What an append costs, in microseconds: of the clock (one second by the appends in it), and of processors. */
interface Cost {
  readonly clockUs: number;
  readonly cpuUs: number;
}

async function costOf(rig: Rig, server: ServerUnderLoad, traffic: Traffic): Promise<Cost> {
  const { warmUpMs, measureMs } = rig.effort;
  const order = { port: server.port, connections: CONNECTIONS, traffic, warmUpMs: 0 };
  await rig.load({ ...order, measureMs: warmUpMs });
  const beforeMs = server.cpuMs();
  const { requestsPerSecond, answers } = await rig.load({ ...order, measureMs });
  return { clockUs: 1e6 / requestsPerSecond, cpuUs: ((server.cpuMs() - beforeMs) * 1000) / answers };
}

/** A place of the axis, with what was measured there. */
interface Place {
  readonly label: string;
  readonly costs: Cost[];
}

/** The lines of the picture, and of the table what the last place costs beside the first. */
function findingsOf(title: string, places: readonly Place[]): { figures: Figure[]; curves: Curves } {
  const lineOf = (name: string, of: (cost: Cost) => number): Curves["lines"][number] => ({
    name,
    points: places.map(({ label, costs }) => ({ label, value: median(costs.map(of)) })),
  });
  const lines = [lineOf("by the clock", ({ clockUs }) => clockUs), lineOf("time of the server's processors", ({ cpuUs }) => cpuUs)];
  const figures = lines.map(({ name, points }): Figure => {
    const [first, last] = [points[0], points.at(-1)];
    const [ours, yardstick] = [last?.value ?? NaN, first?.value ?? NaN];
    return { what: `${name}: ${last?.label}, beside ${first?.label}`, unit: "µs", ours, yardstick, ratio: ours / yardstick, goal: null };
  });
  return { figures, curves: { title, unit: "µs", lines } };
}

export const costByStreams: Question = {
  id: "curve-streams",
  title: "cost of an append, by the number of streams",
  load: `${BYTES} B, ${CONNECTIONS} connections, to all of them in turn`,
  async ask(rig) {
    const places = [10, 100, 1000, 10_000, 100_000]
      .slice(0, rig.size(5, 3))
      .map((streams) => ({ streams, label: `${streams.toLocaleString("en")} streams`, costs: [] as Cost[] }));
    // Round by round, so that a machine that gets slower does not look like a slope.
    for (let round = 0; round < rig.effort.pairs; round += 1) {
      for (const { streams, label, costs } of places) {
        rig.progress(`round ${round + 1} of ${rig.effort.pairs}, ${label}`);
        const server = await rig.server();
        const prefix = "/v1/stream/s";
        await askTimes(server.port, streams, (index) => requestOf(creationOf(`${prefix}${index}`)));
        costs.push(await costOf(rig, server, { kind: "spread", prefix, streams, bytes: BYTES }));
        await server.end("SIGKILL");
      }
    }
    return findingsOf(this.title, places);
  },
};

export const costBySize: Question = {
  id: "curve-size",
  title: "cost of an append, by what the stream holds",
  load: `${BYTES} B, ${CONNECTIONS} connections, one stream that grows by 1 MiB appends in between`,
  async ask(rig) {
    const sizes = [0, 16, 256, 1024, 2560, 5120, 10_240].slice(0, rig.size(7, 3));
    const lack = lackOfDisk((sizes.at(-1) ?? 0) * MIB * 1.2);
    if (lack !== null) return lack;
    const server = await rig.server();
    const path = "/v1/stream/grows";
    await ask(server.port, creationOf(path));
    const traffic: Traffic = { kind: "fixed", requests: [appendTo(path, BYTES)] };
    const filling = requestOf(appendTo(path, MIB));
    const places: Place[] = [];
    let filledMiB = 0;
    for (const mib of sizes) {
      const label = sizeName(mib);
      rig.progress(`grows to ${label}`);
      await askTimes(server.port, mib - filledMiB, () => filling);
      filledMiB = mib;
      const costs: Cost[] = [];
      for (let round = 0; round < rig.effort.pairs; round += 1) {
        rig.progress(`${label}, round ${round + 1} of ${rig.effort.pairs}`);
        costs.push(await costOf(rig, server, traffic));
      }
      places.push({ label, costs });
    }
    return findingsOf(this.title, places);
  },
};

function sizeName(mib: number): string {
  if (mib === 0) return "empty";
  return mib < 1024 ? `${mib} MiB` : `${mib / 1024} GiB`;
}
