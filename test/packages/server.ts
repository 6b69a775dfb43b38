import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { startNode, type TestProcess, type TestScope } from "../helpers/process.js";
import { NatsCluster } from "../nats/nats-cluster.js";
import { tempDir } from "../helpers/temp-dir.js";

const BIN = fileURLToPath(new URL("../../bin/streamdir.js", import.meta.url));
/** Where the client of NATS is found. */
const NATS_FOLDER = fileURLToPath(new URL("../nats/", import.meta.url));

/**
 * The built server as a process of its own, with the defaults that a user gets; it ends with the test file. With
 * PACKAGES_OVER=nats it keeps streams on three NATS servers, else in a directory.
 */
export class Server {
  readonly origin: string;
  readonly #place: Place;
  readonly #scope: TestScope;
  #process: TestProcess;

  private constructor(place: Place, scope: TestScope, started: Started) {
    this.#place = place;
    this.#scope = scope;
    this.#process = started.process;
    this.origin = started.origin;
  }

  /** Starts it on a free port and a new directory; resolves when it serves. To be called outside of any test. */
  static async start(): Promise<Server> {
    const ends: (() => Promise<void>)[] = [];
    // One hook of the file for all processes: a hook that is set while a test runs would end with that test.
    after(async () => void (await Promise.all(ends.map((end) => end()))));
    const scope = { after: (end: () => Promise<void>) => void ends.push(end) };
    const place = await placeAsked(ends);
    return new Server(place, scope, await launch(scope, place, "0"));
  }

  /** The address of the stream of that name. */
  urlOf(name: string): string {
    return `${this.origin}/v1/stream/${name}`;
  }

  /** Kills the process as a power cut does, and starts another on the same directory and port. */
  async killAndRestart(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.ended;
    this.#process = (await launch(this.#scope, this.#place, new URL(this.origin).port)).process;
  }
}

interface Started {
  readonly process: TestProcess;
  readonly origin: string;
}

/** Where it keeps streams, and is started. */
interface Place {
  readonly args: readonly string[];
  readonly cwd?: string;
}

async function placeAsked(ends: (() => Promise<void>)[]): Promise<Place> {
  if (process.env["PACKAGES_OVER"] !== "nats") return { args: [tempDir()] };
  // Some append more at once than a message may have by default.
  const cluster = await NatsCluster.start({ size: 3, more: "max_payload: 8MB" });
  ends.push(() => cluster.stop());
  return { args: ["--storage", cluster.storageOf("packages")], cwd: NATS_FOLDER };
}

async function launch(scope: TestScope, { args, ...options }: Place, port: string): Promise<Started> {
  const process = startNode(scope, [BIN, "serve", ...args, "--port", port], options);
  const ready = await process.stdoutLine(/http:/);
  return { process, origin: new URL(/http:[^\s"]+/.exec(ready)?.[0] ?? "").origin };
}
