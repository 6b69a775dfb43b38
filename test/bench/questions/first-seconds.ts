import { median } from "../../scale/load.js";
import type { LoadReport } from "../load-process.js";
import { compared, type Figure, type Question } from "../question.js";
import { appendTo, ask, creationOf, type Rig } from "../rig.js";
import { together, type Together } from "../together.js";

const CONNECTIONS = 64;
const BYTES = 100;
const PATH = "/v1/stream/s";
const TURN_MS = 1000;
const TURNS = 10;
/** How long a server is under load before it counts as settled. */
const SETTLING_MS = 30_000;

/** The first ten seconds of load of a server in a fresh directory, beside one that has been under load for longer. */
export const firstSeconds: Question = {
  id: "first-seconds",
  title: "the first ten seconds in a fresh directory, beside those of a settled server",
  load: `${BYTES} B, ${CONNECTIONS} connections, one stream`,
  async ask(rig) {
    const settled = await serverWithStream(rig);
    await load(rig, settled, rig.size(SETTLING_MS, TURN_MS));
    const pairs: { readonly fresh: Together; readonly settled: Together }[] = [];
    for (let pair = 0; pair < rig.effort.pairs; pair += 1) {
      rig.progress(`pair ${pair + 1} of ${rig.effort.pairs}`);
      const fresh = await rig.server();
      await ask(fresh.port, creationOf(PATH));
      const turns = { fresh: [] as LoadReport[], settled: [] as LoadReport[] };
      for (let turn = 0; turn < rig.size(TURNS, 1); turn += 1) {
        for (const side of turn % 2 === 0 ? (["fresh", "settled"] as const) : (["settled", "fresh"] as const))
          turns[side].push(await load(rig, side === "fresh" ? fresh.port : settled, TURN_MS));
      }
      await fresh.end("SIGKILL");
      pairs.push({ fresh: together(turns.fresh), settled: together(turns.settled) });
    }
    const figureOf = (what: string, unit: string, of: (stretch: Together) => number): Figure => ({
      ...compared(
        what,
        unit,
        {
          ours: median(pairs.map(({ fresh }) => of(fresh))),
          yardstick: median(pairs.map((pair) => of(pair.settled))),
          ratio: median(pairs.map((pair) => of(pair.fresh) / of(pair.settled))),
        },
        0,
      ),
      goal: what === "rate" ? { kind: "atLeast", value: 0.95 } : { kind: "atMost", value: 1.2 },
    });
    return { figures: [figureOf("rate", "appends/s", ({ rate }) => rate), figureOf("p99", "ms", ({ p99Ms }) => p99Ms)] };
  },
};

async function serverWithStream(rig: Rig): Promise<number> {
  const { port } = await rig.server();
  await ask(port, creationOf(PATH));
  return port;
}

function load(rig: Rig, port: number, measureMs: number): Promise<LoadReport> {
  const traffic = { kind: "fixed", requests: [appendTo(PATH, BYTES)] } as const;
  return rig.load({ port, connections: CONNECTIONS, traffic, warmUpMs: 0, measureMs });
}
