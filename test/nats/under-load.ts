import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { FrontEnd } from "./front-end.js";
import { pause } from "./load/fronts.js";
import { Load, LONGEST_PAUSE_MS, type LoadOptions } from "./load/load.js";

/** How long producers write before and after a fault; more with `STREAMDIR_FAULT_SECONDS`. */
export const SECONDS = Number(process.env["STREAMDIR_FAULT_SECONDS"] ?? 2);

let loads = 0;

/** Runs a fault under a load, and looks at what the load was told. */
export async function underLoad(
  context: TestContext,
  fronts: readonly FrontEnd[],
  doIt: (load: Load) => Promise<void>,
  options: LoadOptions = {},
): Promise<void> {
  loads += 1;
  const urls = fronts.map(({ url }) => url);
  const load = new Load(urls, { prefix: `l${loads}/`, ...options });
  context.after(() => load.stop());
  await load.start();
  await pause(SECONDS * 1000);
  await doIt(load);
  await load.written();
  await pause(SECONDS * 1000);
  const result = await load.finish();
  context.diagnostic(Load.summaryOf(context.name, result));
  assert.deepEqual(load.ledger.violations, []);
  assert.equal(result.lost, 0);
  assert.equal(result.twice, 0);
  assert.ok(result.longestPauseMs < LONGEST_PAUSE_MS, `a stream was not written to for ${result.longestPauseMs} ms`);
}
