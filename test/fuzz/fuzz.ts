import { mock } from "node:test";
import { parseArgs } from "node:util";
import { REQUEST_PATHS, takePath, type RequestPath } from "../helpers/request-paths.js";
import { runCampaign, type CampaignResult } from "./campaign.js";

// `npm run fuzz -- --requests 1000000` sends as many requests on each path, of new seeds; `--seed N` sends one seed's again
// and tells all of it. `--path direct` or `--path ordinary` takes one path only.
const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    requests: { type: "string", default: "100000" },
    from: { type: "string" },
    path: { type: "string" },
  },
});

for (const path of REQUEST_PATHS) {
  if (values.path !== undefined && values.path !== path) continue;
  takePath({ mock }, path);
  const result =
    values.seed === undefined
      ? await runMany(path)
      : await runCampaign({ from: Number(values.seed), requests: 1, trace: (line) => console.log(line) });
  mock.restoreAll();
  report(path, result);
}

async function runMany(path: RequestPath): Promise<CampaignResult> {
  return runCampaign({
    from: values.from === undefined ? Date.now() : Number(values.from),
    requests: Number(values.requests),
    // At once: whoever sends a million need not wait for the last.
    failure: ({ seed, says }) => console.log(`${says}\n  npm run fuzz -- --path ${path} --seed ${seed}`),
  });
}

function report(path: RequestPath, { requests, failures, faults }: CampaignResult): void {
  console.log(`${path} path: ${requests} requests, ${failures.length} seeds failed, ${faults.length} faults logged`);
  for (const line of [...(values.seed === undefined ? [] : failures.map(({ says }) => says)), ...faults]) console.log(`  ${line}`);
  if (failures.length > 0 || faults.length > 0) process.exitCode = 1;
}
