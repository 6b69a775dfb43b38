import { fileURLToPath } from "node:url";
import { startNode, type TestProcess } from "../../helpers/process.js";
import { NatsCluster } from "../../nats/nats-cluster.js";
import { median } from "../../scale/load.js";
import type { Rig } from "../rig.js";
import type { ArrivalOrder, ArrivalReport } from "./arrival-process.js";
import type { BareOrder, BareReport } from "./bare-process.js";

const TSX = import.meta.resolve("tsx");
const BIN = fileURLToPath(new URL("../../../bin/streamdir.js", import.meta.url));
/** The client of NATS is found from here. */
const CLIENT_FOLDER = fileURLToPath(new URL("../../nats", import.meta.url));

/** When the servers bring what they store to the disk: now and then, or before they acknowledge it. */
export type Sync = "2m" | "always";

/** How long one turn is, and what goes before it. */
export type TurnEffort = Pick<BareOrder, "warmUpMs" | "measureMs">;

/** A front end that serves the cluster. */
export interface FrontEnd {
  readonly port: number;
  stop(): Promise<void>;
}

/** Three servers, and what is measured on them; gone when the rig ends. */
export class ClusterRig {
  readonly #rig: Rig;
  readonly #cluster: NatsCluster;
  readonly #storage: string;

  static async start(rig: Rig, sync: Sync): Promise<ClusterRig> {
    rig.progress("three NATS servers start");
    const cluster = await NatsCluster.start({ size: 3, syncInterval: sync });
    rig.after(() => cluster.stop());
    // As docs/cluster.md says where servers sync each message.
    return new ClusterRig(rig, cluster, cluster.storageOf("bench", sync === "always" ? "?shards=1" : ""));
  }

  private constructor(rig: Rig, cluster: NatsCluster, storage: string) {
    this.#rig = rig;
    this.#cluster = cluster;
    this.#storage = storage;
  }

  /** The built server on the cluster as docs/cluster.md starts it, with `args` added: no flag for Node, as for the bare client. */
  async frontEnd(...args: string[]): Promise<FrontEnd> {
    const storage = ["--storage", this.#storage, "--port", "0", "--log-format", "json"];
    const started = startNode(this.#rig, [BIN, "serve", ...storage, ...args], { cwd: CLIENT_FOLDER });
    const ready = JSON.parse(await servingLine(started)) as { url: string };
    const stop = async (): Promise<void> => {
      started.kill("SIGTERM");
      await started.ended;
    };
    return { port: Number(new URL(ready.url).port), stop };
  }

  /** The client of NATS alone, from a process of its own. */
  bare(order: Omit<BareOrder, "servers" | "warmUpMs" | "measureMs">, { warmUpMs, measureMs }: TurnEffort): Promise<BareReport> {
    return this.#report<BareReport>("bare-process.ts", { servers: this.#cluster.servers, ...order, warmUpMs, measureMs });
  }

  /** Appends at one front end and reads at another, from a process of its own. */
  arrivals(order: ArrivalOrder): Promise<ArrivalReport> {
    return this.#report<ArrivalReport>("arrival-process.ts", order);
  }

  async #report<T>(file: string, order: unknown): Promise<T> {
    const script = ["--import", TSX, fileURLToPath(new URL(file, import.meta.url)), JSON.stringify(order)];
    const { status, stdout, stderr } = await startNode(this.#rig, script, { cwd: CLIENT_FOLDER }).ended;
    if (status !== 0) throw new Error(`${file} ended with ${status}: ${stderr}`);
    return JSON.parse(stdout) as T; // it prints nothing else
  }
}

async function servingLine(started: TestProcess): Promise<string> {
  return started.stdoutLine(/"serving"/).catch((error: unknown) => {
    throw new Error(`a front end does not serve: ${started.stderrText()}`, { cause: error });
  });
}

/** A machine that is slow for some seconds is so for both: each is measured for about this at a time. */
const TURN_MS = 1000;

/**
 * Measures ours and the bare publishes in turns: for as many pairs as are asked for, and as long, in pairs of a second.
 * Both are warm each time.
 */
export async function inTurns<T>(
  rig: Rig,
  ours: (effort: TurnEffort) => Promise<T>,
  bare: (effort: TurnEffort) => Promise<T>,
): Promise<(valueOf: (report: T) => number) => { readonly ours: number; readonly yardstick: number; readonly ratio: number }> {
  const { warmUpMs, measureMs } = rig.effort;
  const effort = { warmUpMs, measureMs: Math.min(measureMs, TURN_MS) };
  const count = Math.round((rig.effort.pairs * measureMs) / effort.measureMs);
  const pairs: { readonly ours: T; readonly bare: T }[] = [];
  for (let pair = 0; pair < count; pair += 1) {
    rig.progress(`pair ${pair + 1} of ${count}`);
    // Who is first takes turns too.
    if (pair % 2 === 0) pairs.push({ ours: await ours(effort), bare: await bare(effort) });
    else {
      const first = await bare(effort);
      pairs.push({ ours: await ours(effort), bare: first });
    }
  }
  return (valueOf) => ({
    ours: median(pairs.map((pair) => valueOf(pair.ours))),
    yardstick: median(pairs.map((pair) => valueOf(pair.bare))),
    ratio: median(pairs.map((pair) => valueOf(pair.ours) / valueOf(pair.bare))),
  });
}
