import { join } from "node:path";
import type { Figure, Setting } from "./figure.js";
import { appendBytes, creationBytes, Load, type RequestOf } from "./load.js";
import { ServerUnderLoad } from "./server-under-load.js";

const CONNECTIONS = 64;
const MAX_READY_MS = 1000;
const MAX_MEMORY_MIB = 400;
/** A round that finds the streams used, one that lets them go, and the time that their files take. */
const IDLE_LIMIT_MS = 600_000;

/** Time to ready with all streams on disk and in the journal; memory with one append to each, and when they are idle. */
export async function measureMemory({ scope, root, streams }: Setting): Promise<Figure[]> {
  const dir = join(root, "memory");
  const figures: Figure[] = [];
  const note = (what: string, measured: number, unit: string, goal: number | null = null): void =>
    void figures.push({ what, measured, unit, goal });

  let server = await ServerUnderLoad.start(scope, dir);
  await server.end("SIGTERM");
  server = await ServerUnderLoad.start(scope, dir);
  note("ready, empty directory", server.readyMs, "ms");
  await toEach(server, streams, creationBytes);
  note(`memory, ${streams} streams made`, server.memory().peakMiB, "MiB", MAX_MEMORY_MIB);
  await server.end("SIGKILL");

  server = await ServerUnderLoad.start(scope, dir);
  note("ready after kill -9, all streams in the journal", server.readyMs, "ms", MAX_READY_MS);
  note("clean stop, all streams to be written out", await server.end("SIGTERM"), "ms");

  server = await ServerUnderLoad.start(scope, dir);
  note("ready after a clean stop", server.readyMs, "ms", MAX_READY_MS);
  const beforeMiB = server.memory().nowMiB;
  await toEach(server, streams, appendBytes);
  const fullMiB = server.memory().nowMiB;
  note("memory after one append to each", server.memory().peakMiB, "MiB", MAX_MEMORY_MIB);
  const halfMiB = (beforeMiB + fullMiB) / 2;
  const downMs = await server.until(() => server.memory().nowMiB < halfMiB, IDLE_LIMIT_MS);
  note("until half of that is given back, idle", (downMs ?? Infinity) / 1000, "s", IDLE_LIMIT_MS / 1000);
  note("memory by then", server.memory().nowMiB, "MiB");
  note("highest memory", server.memory().peakMiB, "MiB", MAX_MEMORY_MIB);
  await server.end("SIGKILL");
  return figures;
}

/** Sends one request to each of the streams; throws when one is refused. */
export async function toEach(server: ServerUnderLoad, streams: number, request: (path: string) => Buffer): Promise<void> {
  const requestOf: RequestOf = (index) => (index < streams ? request(pathOf(index)) : null);
  const load = await Load.open(server.port, CONNECTIONS);
  const { statuses } = await load.run(requestOf);
  load.close();
  for (const status of statuses.keys()) if (status >= 300) throw new Error(`${statuses.get(status)} requests were answered with ${status}`);
}

/** The path of the `index`th stream. */
export function pathOf(index: number): string {
  return `/v1/stream/scale/stream-${index}`;
}
