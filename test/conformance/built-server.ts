import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AlternatingProxy } from "../nats/alternating-proxy.js";
import { Cluster } from "./cluster.js";
import { Over } from "./over.js";
import { RecordingProxy } from "./recording-proxy.js";
import { ServerProcess } from "./server-process.js";

/** What the suite is told, and the server is: two of its tests wait a whole long-poll inside a limit of 5 s. */
export const LONG_POLL_TIMEOUT_MS = 1000;

const FLAGS = ["--long-poll-timeout", `${LONG_POLL_TIMEOUT_MS}ms`];

type End = () => Promise<void>;

/** How what was started ends: the servers first, while those are there that speak to them; then the rest, the last first. */
interface Ends {
  readonly servers: End[];
  readonly around: End[];
}

/** The built server in a process of its own, on a directory of its own; or two of them on a cluster, request by request. */
export class BuiltServer {
  /** Where it answers. */
  readonly origin: string;
  readonly #ends: Ends;
  #stopping: Promise<void> | null = null;

  private constructor(origin: string, ends: Ends) {
    this.origin = origin;
    this.#ends = ends;
  }

  /** Starts the server and waits until it says where it listens. */
  static async start(): Promise<BuiltServer> {
    const ends: Ends = { servers: [], around: [] };
    try {
      return new BuiltServer(await started(ends), ends);
    } catch (fault) {
      await endAll(ends).catch(() => undefined); // the first fault is what tells
      throw fault;
    }
  }

  /** Sends SIGTERM; throws when the server does not end with status 0. A second call waits for the first. */
  stop(): Promise<void> {
    return (this.#stopping ??= endAll(this.#ends));
  }
}

/** Starts all that is asked for; its origin. */
async function started(ends: Ends): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "streamdir-conformance-"));
  ends.around.push(() => rm(directory, { recursive: true, force: true }));
  const cluster = await Cluster.asked();
  if (cluster !== null) ends.around.push(() => cluster.stop());
  const over = Over.asked();
  const storage = cluster?.flags ?? [join(directory, "data"), ...(over?.flags(directory) ?? [])];
  const origins: string[] = [];
  for (let count = cluster?.frontEnds ?? 1; count > 0; count -= 1) {
    const server = new ServerProcess([...storage, ...FLAGS], cluster?.folder ?? directory);
    ends.servers.push(() => server.stop());
    origins.push(await server.ready());
  }
  const origin = await oneOriginOf(origins, ends);
  const file = process.env["CONFORMANCE_RECORDING"];
  if (over !== null || file === undefined) return origin;
  // It notes the server's answers on their way.
  const recording = await RecordingProxy.start(portOf(origin), file);
  ends.around.push(() => recording.stop());
  return recording.origin;
}

async function oneOriginOf(origins: readonly string[], ends: Ends): Promise<string> {
  const [only = ""] = origins;
  if (origins.length === 1) return only;
  const proxy = await AlternatingProxy.start(origins.map(portOf));
  ends.around.push(() => proxy.stop());
  return proxy.origin;
}

function portOf(origin: string): number {
  return Number(new URL(origin).port);
}

/** Ends all of them; throws what the first that failed said. */
async function endAll({ servers, around }: Ends): Promise<void> {
  const faults: unknown[] = [];
  for (const end of [...servers, ...[...around].reverse()]) await end().catch((fault: unknown) => faults.push(fault));
  if (faults.length > 0) throw faults[0];
}
