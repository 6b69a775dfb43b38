import { randomBytes } from "node:crypto";
import { systemClock, type Timer } from "../../src/ops/clock.js";
import { REQUEST_LIMITS, type RequestLimits } from "../../src/http/http-server.js";
import { startServer as startWithin, type RunningServer, type ServerOptions } from "../../src/server.js";
import { ManualClock } from "./manual-clock.js";
import { RawConnection, transport, type Answer } from "./raw-connection.js";
import { tempDir } from "./temp-dir.js";
import { openConnections } from "./test-server-connections.js";

/** Where the servers of NATS are that tests are to use; see `storageAsked`. */
const CLUSTER = process.env["TEST_STORAGE"];
const MAX_REAL_PAUSE_MS = 100;
/** How long a stop may take, on a machine however busy. */
const STOP_MS = 60_000;
/** Options that have no meaning with a cluster. */
const OF_DIRECTORIES = /^(journal|segment|fsync|tailCache)/;

/** Whatever calls back when a test is over. */
export interface TestScope {
  after(run: () => Promise<void>): void;
}

/** A clock that a test turns, and that tells it what the server waits for. */
export class WatchedClock extends ManualClock {
  readonly #delays: number[] = [];
  #watchers: (() => void)[] = [];

  override after(delayMs: number, run: () => void): Timer {
    this.#delays.push(delayMs);
    for (const look of this.#watchers.splice(0)) look();
    // What a cluster is asked again is a matter of real time.
    if (CLUSTER !== undefined && delayMs <= MAX_REAL_PAUSE_MS) return systemClock().after(delayMs, run);
    return super.after(delayMs, run);
  }

  /** Resolves when `count` timers with a delay from `minMs` to `maxMs` have been set since the start. */
  async armed(minMs: number, { maxMs = minMs, count = 1 } = {}): Promise<void> {
    const isMeant = (delayMs: number): boolean => delayMs >= minMs && delayMs <= maxMs;
    while (this.#delays.filter(isMeant).length < count) await new Promise<void>((resolve) => this.#watchers.push(resolve));
  }
}

/** What a request has beyond its method and target. */
export interface RequestParts {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** The client's address, of 127.0.0.0/8. */
  readonly from?: string;
}

/** A server on a directory of its own, with a clock that stands still. It is gone when the test is over. */
export class TestServer {
  readonly server: RunningServer;
  readonly clock: WatchedClock;
  readonly dir: string;
  /** What the server logged as warnings and errors. */
  readonly faults: readonly string[];
  readonly #connections: RawConnection[] = [];
  /** Others that serve the same streams: connections are opened to each in turn. */
  readonly #others: readonly RunningServer[];
  #opened = 0;

  constructor(server: RunningServer, clock: WatchedClock, dir: string, faults: readonly string[], others: readonly RunningServer[] = []) {
    this.server = server;
    this.#others = others;
    this.clock = clock;
    this.dir = dir;
    this.faults = faults;
  }

  get port(): number {
    return this.server.port;
  }

  /** A connection of the test's own, from the address `from`. */
  async connect(from?: string): Promise<RawConnection> {
    const { port } = [this.server, ...this.#others][this.#opened++ % (1 + this.#others.length)] ?? this.server;
    const connection = await RawConnection.open(port, from);
    this.#connections.push(connection);
    return connection;
  }

  /** Sends one request on a connection of its own. */
  async begin(method: string, target: string, parts: RequestParts = {}): Promise<RawConnection> {
    const connection = await this.connect(parts.from);
    connection.write(requestBytes(method, target, parts));
    return connection;
  }

  /** Sends one request and takes its answer. `target` is a stream's name with its query, or a path from `/` on. */
  async send(method: string, target: string, parts: RequestParts = {}): Promise<Answer> {
    const connection = await this.begin(method, target, parts);
    const answer = await connection.answer({ toHead: method === "HEAD" });
    await connection.close();
    return answer;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
    const gone = stopped([this.server, ...this.#others]);
    // A connection that a test's `fetch` keeps is waited for: it may have sent its next request.
    const { nextRequestTimeout } = REQUEST_LIMITS;
    void this.clock.armed(nextRequestTimeout).then(() => this.clock.advance(nextRequestTimeout));
    await gone;
  }
}

/**
 * Waits for a stop, and keeps the process meanwhile: one that waits for nothing that Node knows of would end, and say of
 * another test that it was cancelled.
 */
async function stopped(servers: readonly RunningServer[]): Promise<void> {
  const stop = Promise.all(servers.map((server) => server.close()));
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((_, reject) => {
    const fail = (): void => {
      const open = openConnections(servers.map(({ port }) => port)).join("\n");
      reject(new Error(`the server does not stop; there is ${process.getActiveResourcesInfo().join()}\n${open}`));
    };
    timer = setTimeout(fail, STOP_MS);
  });
  try {
    await Promise.race([stop, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Starts a server for a test, which asks nobody for a name or an origin; test/http/access has those that do. */
export async function startServer(
  scope: TestScope,
  options: Partial<ServerOptions> = {},
  limits: Partial<RequestLimits> = {},
): Promise<TestServer> {
  const dir = options.dir ?? tempDir();
  const clock = new WatchedClock();
  const faults: string[] = [];
  const note = (message: string, fields?: object): void => void faults.push(`${message} ${JSON.stringify(fields)}`);
  const log = { debug() {}, info() {}, warn: note, error: note };
  const storage = storageAsked(options);
  const meant = Object.entries(options).filter(([name]) => storage === null || !OF_DIRECTORIES.test(name));
  const given = { port: 0, insecure: true, corsOrigin: "*", clock, log, ...transport.options(), ...Object.fromEntries(meant) };
  const start = (): Promise<RunningServer> =>
    startWithin(storage === null ? { ...given, dir } : { ...given, storage }, { ...REQUEST_LIMITS, ...limits });
  const server = await start();
  const others = storage === null ? [] : [await start()];
  const testServer = new TestServer(server, clock, dir, faults, others);
  scope.after(() => testServer.stop());
  return testServer;
}

/**
 * The bucket of a cluster that TEST_STORAGE asks for, as `nats://HOST`: then two servers serve each test's streams. `null`
 * for a directory.
 */
function storageAsked({ dir }: Partial<ServerOptions>): string | null {
  if (CLUSTER === undefined || dir !== undefined) return null;
  return `${CLUSTER}/t${randomBytes(5).toString("hex")}?shards=1&replicas=1`;
}

/** The bytes of a request, with a Content-Length when there is a body. */
export function requestBytes(method: string, target: string, { headers = {}, body }: RequestParts = {}): Buffer {
  const path = /^(\/|\*|http:)/.test(target) ? target : `/v1/stream/${target}`;
  const bytes = body === undefined ? Buffer.alloc(0) : Buffer.from(body);
  const all = { Host: "streams.test", ...(body === undefined ? {} : { "Content-Length": String(bytes.length) }), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`, "latin1"), bytes]);
}
