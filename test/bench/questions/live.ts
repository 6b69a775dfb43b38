import { median } from "../../scale/load.js";
import { lackOfConnections } from "../machine.js";
import type { MixedReport } from "../mixed-process.js";
import { absolute, compared, type Question } from "../question.js";
import { ask, askEach, creationOf } from "../rig.js";
import { figuresOf, referenceAfter } from "../rivals/opponents.js";

const PATH = "/v1/stream/live";

/** The reference server needs minutes for more, and a second for one event to these. */
const REFERENCE_READERS = 1000;
const REFERENCE_MS = 3000;

/** One stream that so many readers follow. */
function fanOut(readers: number): Question {
  return {
    id: `sse-${readers}`,
    title: `SSE fan-out, ${readers.toLocaleString("en")} readers`,
    load: "one writer, 100 B; against a loop over res.write",
    async ask(rig) {
      const lack = lackOfConnections(readers);
      if (lack !== null) return lack;
      const ours: number[] = [];
      const yardstick: number[] = [];
      const { pairs, warmUpMs, measureMs } = rig.effort;
      const target = `${PATH}?offset=now&live=sse`;
      for (let pair = 0; pair < pairs; pair += 1) {
        rig.progress(`pair ${pair + 1} of ${pairs}`);
        // Each round has its own servers: readers that leave would be work for the next.
        const server = await rig.server();
        await ask(server.port, creationOf(PATH));
        ours.push((await rig.readers({ port: server.port, target, readers, warmUpMs, measureMs })).deliveriesPerSecond);
        await server.end("SIGKILL");
        const bare = await rig.fanOutYardstick();
        yardstick.push((await rig.readers({ port: bare.port, target, readers, warmUpMs, measureMs })).deliveriesPerSecond);
        await bare.stop();
      }
      const opponents = readers <= REFERENCE_READERS ? await referenceAfter(rig, [creationOf(PATH)]) : [];
      const order = { target, readers, warmUpMs, measureMs: Math.max(measureMs, REFERENCE_MS) };
      const rivals = await figuresOf(opponents, async (port) => (await rig.readers({ port, ...order })).deliveriesPerSecond);
      const ratio = median(ours.map((value, pair) => value / (yardstick[pair] ?? NaN)));
      return { figures: [compared("", "deliveries/s", { ours: median(ours), yardstick: median(yardstick), ratio, rivals }, 1)] };
    },
  };
}

export const fanOut1000 = fanOut(1000);
export const fanOut8000 = fanOut(8000);

const MIXED = { prefix: "/v1/stream/m", streams: 1000, readers: 800, writers: 200, bytes: 100 };

export const mixed: Question = {
  id: "mixed",
  title: "mixed, over 1,000 streams",
  load: "400 readers by SSE, 400 by long-poll, 200 writers, 100 B",
  async ask(rig) {
    const lack = lackOfConnections(MIXED.readers + MIXED.writers);
    if (lack !== null) return lack;
    const reports: MixedReport[] = [];
    const { pairs, warmUpMs, measureMs } = rig.effort;
    for (let round = 0; round < pairs; round += 1) {
      rig.progress(`round ${round + 1} of ${pairs}`);
      const server = await rig.server();
      await askEach(
        server.port,
        Array.from({ length: MIXED.streams }, (_, index) => creationOf(`${MIXED.prefix}${index}`)),
      );
      reports.push(await rig.mixed({ port: server.port, ...MIXED, warmUpMs, measureMs }));
      await server.end("SIGKILL");
    }
    const of = (valueOf: (report: MixedReport) => number): number => median(reports.map(valueOf));
    return {
      figures: [
        absolute(
          "p99 of an append",
          "ms",
          of((report) => report.appendP99Ms),
          null,
        ),
        absolute(
          "p99 from append to arrival",
          "ms",
          of((report) => report.arrivalP99Ms),
          null,
        ),
        absolute(
          "appends at the same time",
          "appends/s",
          of((report) => report.appendsPerSecond),
          null,
        ),
        absolute(
          "arrivals at the same time",
          "arrivals/s",
          of((report) => report.arrivalsPerSecond),
          null,
        ),
      ],
    };
  },
};
