import { join } from "node:path";
import { AppendProbe } from "./append-probe.js";
import type { Figure, Setting } from "./figure.js";
import { appendBytes, creationBytes, median } from "./load.js";
import { toEach } from "./memory.js";
import { ServerUnderLoad } from "./server-under-load.js";

const DIRTY_STREAMS = 10_000;
const QUIET_MS = 3000;
const LIMIT_MS = 300_000;
const MAX_RATIO = 5;

/** How much slower appends are while 10,000 streams are checkpointed, and how long that takes. */
export async function measureCheckpoint({ scope, root, rounds }: Setting): Promise<Figure[]> {
  // A journal file that one round of appends fills, so that each is followed by its checkpoint.
  const server = await ServerUnderLoad.start(scope, join(root, "checkpoint"), ["--journal-bytes", "8MiB"]);
  await toEach(server, DIRTY_STREAMS, creationBytes);
  const probe = await AppendProbe.open(server);
  const ratios: number[] = [];
  const perStreamMs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const quietMs = await probe.p99During(QUIET_MS);
    const before = server.checkpoints().length;
    await toEach(server, DIRTY_STREAMS, appendBytes);
    const large = (): { streams: number; ms: number } | undefined =>
      server
        .checkpoints()
        .slice(before)
        .find(({ streams }) => streams > DIRTY_STREAMS / 2);
    const busyMs = await probe.p99Until(() => large() !== undefined, LIMIT_MS);
    ratios.push(busyMs / quietMs);
    perStreamMs.push((large()?.ms ?? NaN) / (large()?.streams ?? NaN));
  }
  probe.close();
  await server.end("SIGKILL");
  return [
    { what: "p99 of appends in a checkpoint of 10,000 streams, times quiet", measured: median(ratios), unit: "x", goal: MAX_RATIO },
    { what: "checkpoint, each stream, beside the appends", measured: median(perStreamMs), unit: "ms", goal: null },
  ];
}
