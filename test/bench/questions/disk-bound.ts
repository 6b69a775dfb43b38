import { median } from "../../scale/load.js";
import { syncMs, writeMBPerSecond } from "../disk.js";
import type { Question } from "../question.js";
import { appendTo, ask, creationOf } from "../rig.js";

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
    const syncsMs: number[] = [];
    const result = await rig.compare(
      { ours, yardstick },
      () => ({ kind: "fixed", requests: [request] }),
      1,
      (report) => report.p50Ms,
    );
    for (let pair = 0; pair < rig.effort.pairs; pair += 1) syncsMs.push(await syncMs(rig.directory()));
    const most = result.yardstick + 1.5 * median(syncsMs);
    return { figures: [{ what: `at most the yardstick and 1.5 of this disk's syncs (${median(syncsMs).toFixed(2)} ms)`, unit: "ms", ours: result.ours, yardstick: most, ratio: result.ours / most, goal: { kind: "atMost", value: 1 } }] };
  },
};

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
    return { figures: [{ what: "the yardstick is this disk's sequential write with sync", unit: "MB/s", ours: median(ours), yardstick: median(disk), ratio: median(ours.map((value, pair) => value / (disk[pair] ?? NaN))), goal: { kind: "atLeast", value: 0.6 } }] };
  },
};
