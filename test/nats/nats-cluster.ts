import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "../helpers/free-ports.js";
import { natsServerPath } from "./nats-server-path.js";

/** How a cluster is made. */
export interface NatsClusterOptions {
  /** How many servers. */
  readonly size: number;
  /** The command; that of the newest version when absent. */
  readonly program?: string;
  /** Whether that is Debian's release, which knows fewer settings. */
  readonly isOld?: boolean;
  /** `always`, or how often servers sync. */
  readonly syncInterval?: string;
  /** Addresses that the servers know each other by, in place of their own: a proxy's. */
  readonly routes?: (ports: readonly number[]) => readonly (readonly number[])[];
  /** What JetStream may take on each server's disk. */
  readonly maxStoreBytes?: number;
  /** The folder of each server's data, where it is not one of the test's own. */
  readonly storeOf?: (server: number) => string | null;
  /** More lines for each server's configuration. */
  readonly more?: string;
}

interface Member {
  readonly name: string;
  readonly clientPort: number;
  readonly routePort: number;
  readonly configuration: string;
  process: ChildProcess | null;
  readonly said: string[];
}

const READY_WITHIN_MS = 30_000;

/** Real NATS servers on this machine, in a folder of their own. */
export class NatsCluster {
  readonly #folder: string;
  readonly #program: string;
  readonly members: readonly Member[];

  private constructor(folder: string, program: string, members: readonly Member[]) {
    this.#folder = folder;
    this.#program = program;
    this.members = members;
  }

  /** Starts the servers and waits until each takes connections. */
  static async start(options: NatsClusterOptions): Promise<NatsCluster> {
    const { size, isOld = false, syncInterval = "2m", maxStoreBytes = 2 ** 31, more = "" } = options;
    const syncing = isOld ? "" : `, sync_interval: ${syncInterval}`;
    const pooling = isOld ? "" : "pool_size: -1, ";
    const folder = await mkdtemp(join(tmpdir(), "streamdir-nats-"));
    const ports = await freePorts(size * 2);
    const routePorts = ports.slice(size);
    const members: Member[] = [];
    const seen = options.routes?.(routePorts) ?? routePorts.map(() => routePorts);
    for (let at = 0; at < size; at += 1) {
      const name = `n${at + 1}`;
      const store = options.storeOf?.(at) ?? join(folder, name);
      await mkdir(store, { recursive: true });
      const [clientPort = 0, routePort = 0] = [ports[at], routePorts[at]];
      const routes = (seen[at] ?? []).filter((_, other) => other !== at).map((port) => `nats://127.0.0.1:${port}`);
      // What servers tell each other of a third leads nowhere: all ways between them are those that the test gave.
      const advertised = options.routes === undefined ? "" : 'advertise: "127.0.0.1:1"';
      const configuration = join(folder, `${name}.conf`);
      await writeFile(
        configuration,
        `server_name: ${name}
listen: "127.0.0.1:${clientPort}"
jetstream { store_dir: ${JSON.stringify(store)}, max_file_store: ${maxStoreBytes}${syncing} }
${size === 1 ? "" : `cluster { name: c, listen: "127.0.0.1:${routePort}", ${pooling}${advertised}\n routes: ${JSON.stringify(routes)} }`}
${more}
`,
      );
      members.push({ name, clientPort, routePort, configuration, process: null, said: [] });
    }
    const cluster = new NatsCluster(folder, options.program ?? (await natsServerPath()), members);
    try {
      await Promise.all(members.map((_, at) => cluster.startServer(at)));
    } catch (fault) {
      await cluster.stop();
      throw fault;
    }
    return cluster;
  }

  /** `host:port` of each server, for clients. */
  get servers(): readonly string[] {
    return this.members.map(({ clientPort }) => `127.0.0.1:${clientPort}`);
  }

  /** The address for `--storage`. */
  storageOf(bucket: string, query = ""): string {
    return `nats://${this.servers.join(",")}/${bucket}${query}`;
  }

  /** Starts one server, and waits until it takes connections. */
  async startServer(at: number): Promise<void> {
    const member = this.#member(at);
    const child = spawn(this.#program, ["-c", member.configuration], { stdio: ["ignore", "pipe", "pipe"] });
    member.process = child;
    await new Promise<void>((resolve, reject) => {
      const said = (): string => member.said.slice(-30).join("\n");
      const tooLate = setTimeout(() => reject(new Error(`nats-server is not ready:\n${said()}`)), READY_WITHIN_MS);
      const listen = (chunk: Buffer): void => {
        member.said.push(...chunk.toString().split("\n").filter(Boolean));
        if (member.said.length > 2000) member.said.splice(0, 1000);
        if (!chunk.includes("Server is ready")) return;
        clearTimeout(tooLate);
        resolve();
      };
      child.stdout.on("data", listen);
      child.stderr.on("data", listen);
      child.once("exit", () => {
        clearTimeout(tooLate);
        reject(new Error(`nats-server has ended:\n${said()}`));
      });
    });
  }

  #member(at: number): Member {
    const member = this.members[at];
    if (member === undefined) throw new RangeError(`there is no server ${at}`);
    return member;
  }

  /** The place of a server by its name. */
  placeOf(name: string): number {
    return this.members.findIndex((member) => member.name === name);
  }

  /** Sends a server a signal. */
  signal(at: number, signal: NodeJS.Signals): void {
    this.#member(at).process?.kill(signal);
  }

  /** Kills a server with -9, and waits until it is gone. */
  async kill(at: number): Promise<void> {
    const { process } = this.#member(at);
    if (process === null || process.exitCode !== null || process.signalCode !== null) return;
    const gone = once(process, "exit");
    process.kill("SIGKILL");
    await gone;
  }

  /** Ends all servers and removes what they have. */
  async stop(): Promise<void> {
    await Promise.all(
      this.members.map(async (_, at) => {
        this.signal(at, "SIGCONT");
        await this.kill(at);
      }),
    );
    await rm(this.#folder, { recursive: true, force: true });
  }
}
