import { median } from "../../scale/load.js";
import { syncMs, writeMBPerSecond } from "../disk.js";
import type { Figure, Question, RivalFigure } from "../question.js";
import { appendTo, ask, creationOf, type Rig } from "../rig.js";
import { figuresOf, redisAppends, referenceAfter } from "../rivals/opponents.js";

const PATH = "/v1/stream/s";
const MIB = 1024 * 1024;
const LARGE_CONNECTIONS = 8;

export const oneAtATime: Question = {
  id: "append-latency",
  title: "one append at a time",
  load: "100 B, 1 connection: p50",
  async ask(rig) {
    const { port: ours } = await rig.server();
    await ask(ours, creationOf(PATH));
    const request = appendTo(PATH, 100);
    const yardstick = await rig.yardstick({ POST: await ask(ours, request) });
    const rivals = [...(await redisAppends(rig, 1, 100)), ...(await referenceAfter(rig, [creationOf(PATH)]))];
    const result = await rig.compare(
      { ours, yardstick, rivals },
      () => ({ kind: "fixed", requests: [request] }),
      1,
      (report) => report.p50Ms,
    );
    const sync = await medianSyncMs(rig);
    return {
      figures: [
        within(
          `at most the yardstick and 1.5 of this disk's syncs (${sync.toFixed(2)} ms)`,
          result.ours,
          result.yardstick + 1.5 * sync,
          result.rivals,
        ),
      ],
    };
  },
};

export const longPoll: Question = {
  id: "long-poll",
  title: "long-poll round trip",
  load: "100 B, append to arrival: p50",
  async ask(rig) {
    const { port: ours } = await rig.server();
    await ask(ours, creationOf(PATH));
    const head = { method: "HEAD", path: PATH, headers: {}, body: 0 };
    const yardstick = await rig.yardstick({ HEAD: await ask(ours, head) });
    const { pairs, warmUpMs, measureMs } = rig.effort;
    const trips = { path: PATH, bytes: 100, warmUpMs, measureMs };
    const tripsMs: number[] = [];
    const headsMs: number[] = [];
    for (let pair = 0; pair < pairs; pair += 1) {
      rig.progress(`pair ${pair + 1} of ${pairs}`);
      tripsMs.push((await rig.roundTrips({ port: ours, ...trips })).p50Ms);
      headsMs.push(
        (await rig.load({ port: yardstick, connections: 1, traffic: { kind: "fixed", requests: [head] }, warmUpMs, measureMs })).p50Ms,
      );
    }
    const rivals = await figuresOf(
      await referenceAfter(rig, [creationOf(PATH)]),
      async (port) => (await rig.roundTrips({ port, ...trips })).p50Ms,
    );
    const sync = await medianSyncMs(rig);
    return {
      figures: [
        within(
          `at most 2 of the yardstick's HEADs (${median(headsMs).toFixed(3)} ms) and one of this disk's syncs (${sync.toFixed(2)} ms)`,
          median(tripsMs),
          2 * median(headsMs) + sync,
          rivals,
        ),
      ],
    };
  },
};

/** One sync of this disk, in milliseconds. */
async function medianSyncMs(rig: Rig): Promise<number> {
  const syncsMs: number[] = [];
  for (let pair = 0; pair < rig.effort.pairs; pair += 1) syncsMs.push(await syncMs(rig.directory()));
  return median(syncsMs);
}

/** A time that should be no longer than `mostMs`. */
function within(what: string, oursMs: number, mostMs: number, rivals: readonly RivalFigure[]): Figure {
  return { what, unit: "ms", ours: oursMs, yardstick: mostMs, ratio: oursMs / mostMs, goal: { kind: "atMost", value: 1 }, rivals };
}

export const largeAppends: Question = {
  id: "appends-large",
  title: "large appends",
  load: `1 MiB, ${LARGE_CONNECTIONS} connections`,
  async ask(rig) {
    const { port } = await rig.server();
    const requests = Array.from({ length: LARGE_CONNECTIONS }, (_, index) => appendTo(`${PATH}${index}`, MIB));
    for (const { path } of requests) await ask(port, creationOf(path));
    const ours: number[] = [];
    const disk: number[] = [];
    const { pairs, warmUpMs, measureMs } = rig.effort;
    for (let pair = 0; pair < pairs; pair += 1) {
      rig.progress(`pair ${pair + 1} of ${pairs}`);
      const report = await rig.load({ port, connections: LARGE_CONNECTIONS, traffic: { kind: "fixed", requests }, warmUpMs, measureMs });
      ours.push((report.requestsPerSecond * MIB) / 1e6);
      disk.push(await writeMBPerSecond(rig.directory(), LARGE_CONNECTIONS, measureMs));
    }
    return {
      figures: [
        {
          what: "the yardstick is this disk's sequential write with sync",
          unit: "MB/s",
          ours: median(ours),
          yardstick: median(disk),
          ratio: median(ours.map((value, pair) => value / (disk[pair] ?? NaN))),
          goal: { kind: "atLeast", value: 0.6 },
        },
      ],
    };
  },
};
