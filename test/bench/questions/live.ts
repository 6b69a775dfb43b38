import { median } from "../../scale/load.js";
import { compared, type Question } from "../question.js";
import { ask, creationOf } from "../rig.js";

const PATH = "/v1/stream/live";

/** One stream that so many readers follow. */
function fanOut(readers: number): Question {
  return {
    id: `sse-${readers}`,
    title: `SSE fan-out, ${readers.toLocaleString("en")} readers`,
    load: "one writer, 100 B; against a loop over res.write",
    async ask(rig) {
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
      const ratio = median(ours.map((value, pair) => value / (yardstick[pair] ?? NaN)));
      return { figures: [compared("", "deliveries/s", { ours: median(ours), yardstick: median(yardstick), ratio }, 1)] };
    },
  };
}

export const fanOut1000 = fanOut(1000);
export const fanOut8000 = fanOut(8000);
