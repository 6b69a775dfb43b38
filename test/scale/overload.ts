import { join } from "node:path";
import type { Figure, Setting } from "./figure.js";
import { appendBytes, creationBytes, Load, quantile } from "./load.js";
import { pathOf, toEach } from "./memory.js";
import { ServerUnderLoad } from "./server-under-load.js";

const CONNECTIONS = 64;
const MAX_WAIT_MS = 1000;
/** Long before the last of them the journal is full, and its last file waits for each. */
const CHECKPOINTS = 6;
const LIMIT_MS = 900_000;

/**
 * How appends go, each stream's in its turn, when for a long time they are more than the disk takes in files of the streams'
 * own. Journal files are small, so that they are soon full.
 */
export async function measureOverload({ scope, root, streams }: Setting): Promise<Figure[]> {
  const server = await ServerUnderLoad.start(scope, join(root, "overload"), ["--journal-bytes", "16MiB"]);
  await toEach(server, streams, creationBytes);
  const load = await Load.open(server.port, CONNECTIONS);
  const startedMs = performance.now();
  let isOver = false;
  const { latenciesMs, seconds, statuses } = await load.run((index) => {
    if (index % 1000 === 0) isOver = server.checkpoints().length >= CHECKPOINTS || performance.now() - startedMs > LIMIT_MS;
    return isOver ? null : appendBytes(pathOf(index % streams));
  });
  load.close();
  const checkpoints = server.checkpoints().length;
  const { peakMiB } = server.memory();
  await server.end("SIGKILL");
  const refused = [...statuses].reduce((sum, [status, count]) => sum + (status >= 300 ? count : 0), 0);
  const what = `appends to ${streams} streams in turn`;
  return [
    { what: `${what}: ${checkpoints} checkpoints took`, measured: seconds, unit: "s", goal: null },
    { what: `${what}: answered`, measured: latenciesMs.length / seconds, unit: "/s", goal: null },
    { what: `${what}: refused`, measured: refused, unit: "", goal: 0 },
    { what: `${what}: p99`, measured: quantile(latenciesMs, 0.99), unit: "ms", goal: null },
    { what: `${what}: longest wait`, measured: latenciesMs.at(-1) ?? NaN, unit: "ms", goal: MAX_WAIT_MS },
    { what: `${what}: memory`, measured: peakMiB, unit: "MiB", goal: null },
  ];
}
