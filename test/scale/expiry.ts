import { readdirSync } from "node:fs";
import { join } from "node:path";
import { AppendProbe } from "./append-probe.js";
import type { Figure, Setting } from "./figure.js";
import { median, requestBytes } from "./load.js";
import { pathOf, toEach } from "./memory.js";
import { pause, ServerUnderLoad } from "./server-under-load.js";

const QUIET_MS = 3000;
/** Rounds of quiet and busy appends; the busy ones fall into the sweep. */
const LIMIT_MS = 1_800_000;
const MAX_RATIO = 3;
const MAX_MEMORY_MIB = 400;

/** How much slower appends are while streams that expired together are removed, from memory and from disk. */
export async function measureExpiry(setting: Setting): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const where of ["memory", "disk"] as const) {
    const ratios: number[] = [];
    let peakMiB = 0;
    for (let round = 0; round < setting.rounds; round += 1) {
      const swept = await sweep(setting, where, round);
      ratios.push(swept.ratio);
      peakMiB = Math.max(peakMiB, swept.peakMiB);
    }
    figures.push({
      what: `p99 of appends while streams in ${where} are swept, times quiet`,
      measured: median(ratios),
      unit: "x",
      goal: MAX_RATIO,
    });
    figures.push({ what: `highest memory while streams in ${where} are swept`, measured: peakMiB, unit: "MiB", goal: MAX_MEMORY_MIB });
  }
  return figures;
}

async function sweep(
  { scope, root, streams }: Setting,
  where: "memory" | "disk",
  round: number,
): Promise<{ ratio: number; peakMiB: number }> {
  const dir = join(root, `expiry-${where}-${round}`);
  // Long enough for all to be written out and loaded again.
  const expiresAtMs = Math.ceil(Date.now() / 1000) * 1000 + 20_000 + streams * 2.5;
  const headers = { "Content-Type": "text/plain", "Stream-Expires-At": new Date(expiresAtMs).toISOString() };
  let server = await ServerUnderLoad.start(scope, dir);
  await toEach(server, streams, (path) => requestBytes("PUT", path, headers, "x".repeat(100)));
  await server.end("SIGTERM");
  // From disk the search must begin when all have expired; in memory they are loaded before that.
  if (where === "disk") await pause(Math.max(0, expiresAtMs - Date.now()));
  server = await ServerUnderLoad.start(scope, dir);
  const first = await AppendProbe.open(server);
  if (where === "memory") await toEach(server, streams, (path) => requestBytes("GET", `${path}?offset=-1`));
  if (Date.now() > expiresAtMs === (where === "memory")) throw new Error("the machine was too slow: they expired too early");
  if (where === "memory") await pause(Math.max(0, expiresAtMs - QUIET_MS - 500 - Date.now()));
  const beforeMs = where === "memory" ? await first.p99During(QUIET_MS) : null;
  const busyMs = await first.p99Until(() => Date.now() > expiresAtMs && leftIn(dir) === 0, LIMIT_MS);
  const quietMs = beforeMs ?? (await first.p99During(QUIET_MS));
  first.close();
  const { peakMiB } = server.memory();
  await server.end("SIGKILL");
  return { ratio: busyMs / quietMs, peakMiB };
}

/** Directories of streams that are not gone yet, also in the trash; the probe's own does not count. */
function leftIn(dir: string): number {
  const inTrash = readdirSync(join(dir, "trash")).length;
  if (inTrash > 0) return inTrash;
  const own = encodeURIComponent(pathOf(0).split("/").slice(3, 4).join(""));
  return readdirSync(join(dir, "streams")).reduce(
    (sum, shard) => sum + readdirSync(join(dir, "streams", shard)).filter((name) => name.startsWith(own)).length,
    0,
  );
}
