import { Access } from "../../src/http/access/access.js";
import { SitePolicy } from "../../src/http/access/site-policy.js";
import { CorsPolicy } from "../../src/http/encoding/cors.js";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { RequestRates } from "../../src/http/access/request-rates.js";
import { Clients } from "../../src/http/bounds/clients.js";
import { LiveReaders } from "../../src/http/bounds/live-readers.js";
import type { Context } from "../../src/http/context/context.js";
import { Exchange } from "../../src/http/exchange/exchange.js";
import { ReadBuffers } from "../../src/http/answer/read-buffers.js";
import { readHeaders } from "../../src/http/request/request-headers.js";
import { ConnectionFigures } from "../../src/metrics/connection-figures.js";
import { EventLoopMeter } from "../../src/metrics/process-figures.js";
import { splitTarget } from "../../src/http/request/target.js";
import { defaultSettings, type Settings } from "../../src/options.js";
import { ReadFreshness } from "../../src/protocol/cache-control.js";
import { Registry } from "../../src/stream/registry.js";
import { Stream } from "../../src/stream/loaded/stream.js";
import { keptLog, openEngine, type Engine, type LogLine } from "./engine.js";
import { httpParts } from "./http-parts.js";
import { ManualClock } from "./manual-clock.js";
import { RawConnection } from "./raw-connection.js";
import { requestBytes, type RequestParts, type TestScope } from "./test-server.js";

/** What an exchange server differs in from the defaults. */
export interface ExchangeServerOptions {
  readonly settings?: Partial<Settings>;
  readonly host?: string;
  /** A data directory that is there already. */
  readonly dir?: string;
}

/** What a stream is made of. */
export interface StreamParts {
  readonly contentType?: string;
  readonly body?: string | Buffer;
  readonly ttlSeconds?: number;
  readonly closed?: boolean;
}

/** A request that has arrived, and the connection that it came on. */
export interface Arrived {
  readonly connection: RawConnection;
  readonly exchange: Exchange;
}

/** An HTTP server that hands each request to the test as an exchange, for the test to answer. */
export class ExchangeServer {
  readonly context: Context;
  readonly engine: Engine;
  readonly clock: ManualClock;
  readonly log: readonly LogLine[];
  readonly #server: Server;
  readonly #connections: RawConnection[] = [];
  readonly #arrived: Exchange[] = [];
  readonly #wanted: ((exchange: Exchange) => void)[] = [];

  constructor(server: Server, context: Context, engine: Engine, log: readonly LogLine[]) {
    this.#server = server;
    this.context = context;
    this.engine = engine;
    this.clock = engine.clock;
    this.log = log;
    for (const [event, awaitsContinue] of [
      ["request", false],
      ["checkContinue", true],
    ] as const) {
      server.on(event, (req, res) => {
        const exchange = new Exchange(req, res, splitTarget(req.url ?? ""), readHeaders(req.rawHeaders), awaitsContinue);
        context.inFlight.begin(exchange);
        const wanted = this.#wanted.shift();
        if (wanted === undefined) this.#arrived.push(exchange);
        else wanted(exchange);
      });
    }
  }

  get port(): number {
    // A server that listens on a port has an address of this shape.
    return (this.#server.address() as AddressInfo).port;
  }

  async connect(): Promise<RawConnection> {
    const connection = await RawConnection.open(this.port);
    this.#connections.push(connection);
    return connection;
  }

  /** The next request that arrives, on whatever connection. */
  next(): Promise<Exchange> {
    const exchange = this.#arrived.shift();
    return exchange === undefined ? new Promise((resolve) => this.#wanted.push(resolve)) : Promise.resolve(exchange);
  }

  /** Sends one request, on `connection` or one of its own, and waits until its head has arrived. */
  async receive(method: string, target: string, parts: RequestParts = {}, connection?: RawConnection): Promise<Arrived> {
    const used = connection ?? (await this.connect());
    used.write(requestBytes(method, target, parts));
    return { connection: used, exchange: await this.next() };
  }

  /** Makes a stream. */
  async stream(name: string, { contentType = "text/plain", body = "", ttlSeconds, closed = false }: StreamParts = {}): Promise<Stream> {
    await this.context.registry.create(name, {
      contentType,
      body: Buffer.from(body),
      ttlSeconds: ttlSeconds ?? null,
      expiresAtMs: null,
      closed,
      fork: null,
    });
    const stream = await this.context.registry.find(name);
    if (!(stream instanceof Stream)) throw new Error(`${name} was not made: ${stream.code}`);
    return stream;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}

/** Lets everybody in. */
function openSite(): SitePolicy {
  return new SitePolicy({ cors: new CorsPolicy("*"), allowHost: "", checksHosts: false, isCertifiedFor: () => false });
}

/** Starts an exchange server for a test. */
export async function startExchanges(
  scope: TestScope,
  { settings = {}, host = "127.0.0.1", dir }: ExchangeServerOptions = {},
): Promise<ExchangeServer> {
  const clock = new ManualClock();
  const { lines, ...parts } = httpParts({ clock });
  const engine = await openEngine(dir === undefined ? { clock } : { clock, dir });
  const { storage } = engine;
  const all = { ...defaultSettings(), ...settings };
  const registry = new Registry({
    storage,
    clock,
    log: parts.log,
    ttlMode: all.ttl,
    maxLoadedStreams: all.maxLoadedStreams,
    maxLoadedProducers: all.maxLoadedProducers,
  });
  const context = {
    ...parts,
    settings: all,
    registry,
    streamList: engine.storage.streamList,
    random: () => 0,
    readBuffers: new ReadBuffers(all.chunkBytes, clock),
    compression: null,
    readFreshness: new ReadFreshness(all.readMaxAgeMs),
    clients: new Clients("", keptLog().log),
    liveReaders: new LiveReaders(all, parts.log),
    connections: new ConnectionFigures(),
    access: new Access({
      authority: null,
      site: openSite(),
      rates: new RequestRates("off", clock),
      clock,
      prefix: all.prefix,
      certificateOf: () => null,
    }),
    authority: null,
    metricsReport: () => "",
    eventLoop: new EventLoopMeter(),
  };
  const server = createServer({ requireHostHeader: false });
  const exchanges = new ExchangeServer(server, context, engine, lines);
  const listening = once(server, "listening");
  server.listen({ host, port: 0 });
  await listening;
  scope.after(async () => {
    await exchanges.stop();
    registry.stop();
    await storage.close();
  });
  return exchanges;
}
