import assert from "node:assert/strict";
import { test } from "node:test";
import { findingsOf, type Sample } from "./findings.js";
import { Latencies } from "./latencies.js";

/** An hour with a sample each minute, of which `change` says what is different. */
function hour(change: (minute: number) => Partial<Omit<Sample, "latencies">> & { readonly ms?: number }): Sample[] {
  return Array.from({ length: 60 }, (_, index) => {
    const { ms = 2, ...rest } = change(index + 1);
    const latencies = new Latencies();
    for (let count = 0; count < 100; count += 1) latencies.add(ms);
    return { atMs: (index + 1) * 60_000, memoryMiB: 100, descriptors: 50, diskMiB: 200, latencies, ...rest };
  });
}

const cases: readonly [what: string, change: Parameters<typeof hour>[0], broken: readonly string[]][] = [
  ["nothing changes", () => ({}), []],
  ["what grows in the first ten minutes alone is no growth", (minute) => ({ memoryMiB: Math.min(minute, 10) * 10 }), []],
  ["memory grows all the time", (minute) => ({ memoryMiB: 100 + minute }), ["resident memory"]],
  ["descriptors are left open", (minute) => ({ descriptors: 50 + minute }), ["open descriptors"]],
  ["the disk fills", (minute) => ({ diskMiB: 200 + 10 * minute }), ["disk"]],
  ["appends become slower", (minute) => ({ ms: minute > 50 ? 4 : 2 }), ["p99 of appends"]],
];

for (const [what, change, broken] of cases)
  test(what, () => {
    const findings = findingsOf(hour(change));
    assert.equal(findings.length, 4);
    assert.deepEqual(
      findings.filter(({ holds }) => !holds).map((finding) => finding.what),
      broken,
    );
  });
