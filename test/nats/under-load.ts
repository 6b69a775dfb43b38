import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { FrontEnd } from "./front-end.js";
import { pause } from "./load/fronts.js";
import { LeaderWatch } from "./leader-watch.js";
import { Load } from "./load/load.js";
import type { NatsCluster } from "./nats-cluster.js";
import { shardsOf } from "./raw-cluster.js";

/** How long producers write before and after a fault; more with `STREAMDIR_FAULT_SECONDS`. */
export const SECONDS = Number(process.env["STREAMDIR_FAULT_SECONDS"] ?? 1);

/** No stream may wait longer for its next acknowledgement, */
const LONGEST_PAUSE_MS = 15_000;
/** nor this much longer than its servers have no leader. */
const AFTER_ELECTION_MS = 6000;
/** A front end says within so long that the log takes no writes. */
export const UNHEALTHY_WITHIN_MS = 8000;

/** A time in words. */
export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

let loads = 0;

/** Where a load is. */
export interface Place {
  readonly cluster: NatsCluster;
  readonly bucket: string;
  readonly fronts: readonly FrontEnd[];
}

/** Runs a fault under a load, and looks at what the load was told. */
export async function underLoad(
  context: TestContext,
  { cluster, bucket, fronts }: Place,
  doIt: (load: Load) => Promise<void>,
): Promise<void> {
  loads += 1;
  const urls = fronts.map(({ url }) => url);
  const load = new Load(urls, { prefix: `l${loads}/` });
  context.after(() => load.stop());
  await load.start();
  const leaders = await LeaderWatch.begin(cluster.servers, shardsOf(bucket));
  context.after(async () => void (await leaders.end()));
  await pause(SECONDS * 1000);
  await doIt(load);
  await load.written();
  await pause(SECONDS * 1000);
  const leaderlessMs = await leaders.end();
  const result = await load.finish();
  context.diagnostic(`${Load.summaryOf(context.name, result)}; longest without a leader ${seconds(leaderlessMs)}`);
  assert.deepEqual(load.ledger.violations, []);
  assert.equal(result.lost, 0);
  assert.equal(result.twice, 0);
  // An election that is split takes the servers another 4 to 9 s, and nobody can write meanwhile.
  const boundMs = Math.max(LONGEST_PAUSE_MS, leaderlessMs + AFTER_ELECTION_MS);
  assert.ok(result.longestPauseMs < boundMs, `a stream was not written to for ${result.longestPauseMs} ms`);
}
