// Wires a server together, from the directory to the listener: `createServer` and `createHandler`.

import events from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { resolve } from "node:path";
import { connectionLimitFor } from "./http/bounds/connection-limit.js";
import { ConnectionsByClient } from "./http/bounds/connections-by-client.js";
import type { Context } from "./http/context/context.js";
import { Authority, AuthFileError } from "./auth/authority.js";
import { listenFault, StartError } from "./server/start-error.js";
import { guarded, guardedLog } from "./server/caller-hooks.js";
import { closed, listenForAdmin, type Listening } from "./server/admin-listening.js";
import { contextOf } from "./server/context-of.js";
import { namedFilesIn } from "./server/named-files.js";
import { warnOfOpenAccess } from "./server/open-access.js";
import { once, within } from "./server/stop.js";
import { ownOptions, settingsOf, type ServerOptions } from "./server/server-options.js";
import { parseStorage, type NatsAddress } from "./net/storage-address.js";
import { Dispatcher } from "./http/dispatch.js";
import { problem, type Problem } from "./http/encoding/problems.js";
import { HttpServer, REQUEST_LIMITS, type RequestLimits } from "./http/http-server.js";
import { CertificateError } from "./ops/certificate-files.js";
import { ListenError } from "./http/listen/listener.js";
import { adminPlanOf, planOf, urlOf, type ListenPlan } from "./http/listen/plan.js";
import { awaitsContinue } from "./http/node/awaits-continue.js";
import { StorageObservations } from "./metrics/storage-observations.js";
import { stopwatchMs, systemClock, type Clock } from "./ops/clock.js";
import { LineQueue } from "./ops/lines/line-queue.js";
import { createLog, type Log } from "./ops/log.js";
import { keepTickClass } from "./ops/tick-class.js";
import { OPTIONS, type Settings } from "./options.js";
import { ALL_NAMES } from "./protocol/names/name-range.js";
import { warnOfOtherOwner } from "./storage/file/directory/owner.js";
import { FileStorage } from "./storage/file/file-storage.js";
import { Layout } from "./storage/file/format/layout.js";
import type { Storage } from "./storage/storage.js";
import { systemFiles } from "./storage/file/disk/files.js";
import { DirectoryError } from "./storage/file/directory/lock.js";
import { freeDescriptors, TOO_FEW_FILES } from "./storage/file/disk/open-files-limit.js";
import { Registry } from "./stream/registry.js";
import { segmentRollOf } from "./stream/loaded/retention.js";

/** Where a server with these settings will listen, for who only wants to know. */
export { isBeyond } from "./http/listen/reach.js";
export { adminPlanOf, beyondReach, LISTEN_BACKLOG, planOf, type ListenPlan } from "./http/listen/plan.js";

export { conflictWithStorage, withWholePaths, type ServerOptions } from "./server/server-options.js";

/** What {@link createServer} throws. */
export { StartError } from "./server/start-error.js";

/** A listening server. */
export interface RunningServer {
  /** The URL to which a stream's name is appended, like `http://127.0.0.1:4437/v1/stream/`. */
  readonly url: string;
  /** The first port that it listens on; 0 for one that only has Unix sockets. */
  readonly port: number;
  /** Where it listens, as `--listen` writes it: with the real ports. */
  readonly listening: readonly string[];
  /** Where `--admin-listen` answers, with the real ports; empty without it. */
  readonly adminListening: readonly string[];
  /**
   * Reads the auth file and the certificate again, as it does by itself when they change; false where one of them can't
   * be used: then the old one is kept, and the log has the reason.
   */
  reload(): Promise<boolean>;
  /**
   * Stops: serves on for `shutdownDelayMs`, gives each connection its last answer for at most `shutdownTimeoutMs`, ends
   * live reads, and releases the directory.
   */
  close(): Promise<void>;
  /** Cuts all connections, for a process that is about to end. What was acknowledged is in the journal. */
  closeNow(): void;
}

/**
 * A listener for a node:http server of your own. It answers what is below {@link Settings.prefix}, and `/health`; for
 * all other paths it calls `next`, or answers by itself when there is none: `/` with a page, the rest with 404.
 */
export interface StreamHandler {
  (req: IncomingMessage, res: ServerResponse, next?: () => void): void;
  /** The metrics as Prometheus reads them, in the text format 0.0.4 (docs/metrics.md). */
  metrics(): string;
  /** Lets requests in flight finish for at most `shutdownTimeoutMs`, ends live reads, and releases the directory. */
  close(): Promise<void>;
}

/** Opens the directory and listens. Throws {@link StartError}. */
export function createServer(options: ServerOptions): Promise<RunningServer> {
  return startServer(options, REQUEST_LIMITS);
}

/** {@link createServer} for tests, with `limits` short enough to wait for. */
export async function startServer(given: ServerOptions, limits: RequestLimits): Promise<RunningServer> {
  const options = ownOptions(given);
  const settings = settingsOf(options);
  const plan = planOf(settings);
  if ("fault" in plan) throw new StartError("invalid-option", `Cannot start: ${plan.fault}`);
  const adminPlan = adminPlanOf(settings);
  const service = await Service.open(options, settings, false);
  const listening = listenAll(service, plan, adminPlan, limits);
  const { http, listeners, admin } = await listening.catch(async (error: unknown) => {
    await service.stop();
    if (error instanceof CertificateError) throw new StartError("invalid-option", error.message);
    throw error instanceof ListenError ? listenFault(error, TOO_FEW_FILES) : error;
  });
  warnOfOpenAccess(settings, service.context.log);
  return {
    url: urlOf(listeners, plan, settings.prefix),
    port: listeners.find(({ port }) => port !== null)?.port ?? 0,
    listening: listeners.map(({ text }) => text),
    adminListening: admin?.listeners.map(({ text }) => text) ?? [],
    reload: async () => {
      const reloaded = await Promise.all([service.context.authority?.reload() ?? true, http.reloadCertificate()]);
      return !reloaded.includes(false);
    },
    close: once(async () => {
      await service.leave();
      const connectionsEnd = http.close();
      await service.drain(connectionsEnd);
      http.destroyConnections();
      await connectionsEnd;
      try {
        await service.stop();
      } finally {
        await (admin === null ? null : closed(admin.http));
      }
    }),
    closeNow() {
      for (const server of admin === null ? [http] : [http, admin.http]) void closed(server);
      service.cut();
    },
  };
}

async function listenAll(
  service: Service,
  plan: ListenPlan,
  adminPlan: ListenPlan | null,
  limits: RequestLimits,
): Promise<Listening & { readonly admin: Listening | null }> {
  const admin = adminPlan === null ? null : await listenForAdmin(service.context, adminPlan, limits);
  try {
    return { ...(await listen(service, plan, limits)), admin };
  } catch (error) {
    if (admin !== null) await closed(admin.http);
    throw error;
  }
}

async function listen({ context, dispatcher }: Service, plan: ListenPlan, limits: RequestLimits): Promise<Listening> {
  const { responder, clock, log, settings, clients, connections } = context;
  // After the storage, which has opened the files that it always needs.
  const connectionLimit = connectionLimitFor(await freeDescriptors(systemFiles(false)), settings.maxConnections);
  const connectionsByClient = new ConnectionsByClient(settings.maxConnectionsPerClient, clients);
  const bounds = { limits, connectionLimit, connectionsByClient, connections };
  const http = new HttpServer({
    ...{ dispatcher, responder, clock, log, clients, ...bounds },
    onClientAuthorities: (authorities) => context.authority?.trustClients(authorities),
  });
  return { http, listeners: await http.listen(plan) };
}

/** Opens the directory, for a server of your own: `host` and `port` are not used. Throws {@link StartError}. */
export async function createHandler(given: ServerOptions): Promise<StreamHandler> {
  const options = ownOptions(given);
  const settings = settingsOf(options);
  // A variable that is not set would open the server to whoever reaches it.
  if (Object.hasOwn(options, "auth") && settings.auth === "")
    throw new StartError("invalid-option", "Cannot start: auth names no file; leave it out where your server asks");
  const service = await Service.open(options, settings, true);
  const handle = (req: IncomingMessage, res: ServerResponse, next?: () => void): void => {
    const refusal = refusalOfVersion(req);
    const arrival = { next, awaitsContinue: awaitsContinue(req, res) };
    service.dispatcher.handle(req, res, refusal === null ? arrival : { ...arrival, refusal });
  };
  const close = once(async () => {
    // Nobody here can know when the last connection is gone.
    service.context.inFlight.refuseAll();
    await service.drain(Promise.resolve());
    await service.stop();
  });
  return Object.assign(handle, { close, metrics: () => service.context.metricsReport() });
}

/** Of `node:http2`, which may pass requests with the same methods: a body without a length would be lost. */
function refusalOfVersion({ httpVersionMajor }: IncomingMessage): Problem | null {
  // What stands in for a request in a test may not say.
  if (!(httpVersionMajor >= 2)) return null;
  const detail = "The program passes HTTP/2 to a handler of streamdir, which takes HTTP/1.1 alone.";
  return problem("internal-error", { detail });
}

/** What a stop ends. */
interface Running {
  readonly registry: Registry;
  readonly authority: Authority | null;
  readonly storage: Storage;
  readonly accessLines: LineQueue | null;
}

/** Everything that a listener serves from, from the directory up. */
class Service {
  readonly context: Context;
  readonly dispatcher: Dispatcher;
  readonly #running: Running;
  /** Aborted when all connections are cut. */
  readonly #cut = new AbortController();

  private constructor(context: Context, running: Running) {
    this.context = context;
    this.dispatcher = new Dispatcher(context);
    this.#running = running;
  }

  static async open(options: ServerOptions, settings: Settings, isEmbedded: boolean): Promise<Service> {
    const clock = options.clock ?? systemClock();
    const log = options.log === undefined ? logToStderr(settings, clock) : guardedLog(options.log);
    // The working directory may change while others open.
    const given = options.dir === undefined ? options : { ...options, dir: resolve(options.dir) };
    const authority = settings.auth === "" ? null : await openAuthority(settings.auth, clock, log);
    const observations = new StorageObservations();
    const retention = { maxBytes: settings.retentionBytes, maxAgeMs: settings.retentionAgeMs };
    const { storage, maxAppendBytes } = await openEngine(given, settings, { clock, log, observations }).catch(
      (error: unknown) => {
        authority?.close();
        throw error;
      },
    );
    const registry = new Registry({
      storage,
      clock,
      log,
      ttlMode: settings.ttl,
      retention,
      maxLoadedStreams: settings.maxLoadedStreams,
      maxLoadedProducers: settings.maxLoadedProducers,
    });
    const accessLines = settings.accessLog ? new LineQueue(options.accessOutput ?? process.stdout, clock, log) : null;
    const running = { registry, authority, storage, accessLines };
    try {
      registry.start();
      // The first list is not to wait for all names; whoever lists is told what fails.
      storage.streamList.names(ALL_NAMES, 0).catch(() => undefined);
      void keepTickClass();
      // With a clock of the caller's, times are those that it tells.
      const nowMs = options.clock === undefined ? stopwatchMs : () => clock.nowMs();
      const { streamList } = storage;
      const parts = { ...running, streamList, observations, clock, log, stopwatchMs: nowMs, isEmbedded };
      return new Service(contextOf({ ...settings, maxAppendBytes }, parts), running);
    } catch (error) {
      // Else this process could not open the directory again.
      await end(running);
      throw error;
    }
  }

  /** Tells balancers that the server is about to stop, and serves on for `shutdownDelayMs`. */
  async leave(): Promise<void> {
    const { inFlight, clock, settings } = this.context;
    inFlight.leave();
    const { shutdownDelayMs } = settings;
    const { signal } = this.#cut;
    if (shutdownDelayMs > 0 && !signal.aborted) await within(clock, shutdownDelayMs, events.once(signal, "abort"));
  }

  /** Nobody is served any more: {@link leave} has nothing to wait for. */
  cut(): void {
    this.#cut.abort();
    this.stopTimers();
  }

  /** Ends live reads, and waits for all answers and for `connectionsEnd`, up to the time-out. */
  async drain(connectionsEnd: Promise<void>): Promise<void> {
    const { inFlight, clock, settings } = this.context;
    const answered = inFlight.drain();
    this.dispatcher.endLiveReads();
    await within(clock, settings.shutdownTimeoutMs, Promise.all([answered, connectionsEnd]));
    inFlight.refuseAll();
    inFlight.destroyAll();
  }

  stopTimers(): void {
    stopBackground(this.#running);
    this.context.eventLoop.stop();
  }

  /** Makes everything permanent and releases the directory. */
  async stop(): Promise<void> {
    this.stopTimers();
    await end(this.#running);
  }
}

function stopBackground({ registry, authority }: Running): void {
  registry.stop();
  authority?.close();
}

/** Stops all background work, makes everything permanent and releases the directory. */
async function end(running: Running): Promise<void> {
  stopBackground(running);
  try {
    await running.storage.close();
  } finally {
    await running.accessLines?.close();
  }
}

/** An engine that is open, and the longest body that it takes. */
interface Engine {
  readonly storage: Storage;
  readonly maxAppendBytes: number;
}

interface EngineParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly observations: StorageObservations;
}

async function openAuthority(file: string, clock: Clock, log: Log): Promise<Authority> {
  try {
    return await Authority.open({ file, clock, log });
  } catch (error) {
    if (error instanceof AuthFileError) throw new StartError("invalid-option", `Cannot start: ${error.message}`);
    throw error;
  }
}

/** There an open file can't be renamed, nor a directory synced. */
const NOT_ON_WINDOWS = "streamdir keeps directories on Linux and macOS; on Windows use WSL 2 or a container";

/** Opens what the settings name: the directory, or a bucket of a cluster. */
async function openEngine(options: ServerOptions, settings: Settings, parts: EngineParts): Promise<Engine> {
  const address = parseStorage(settings.storage);
  if (address?.kind === "nats") return openClusterEngine(address, settings, parts);
  const { clock, log, observations } = parts;
  const { dir = "", forceUnlock = false } = options;
  if (process.platform === "win32") throw new StartError("directory-unusable", NOT_ON_WINDOWS);
  const logFault = ({ message }: Error): void => log.error("the storage has failed", { fault: message });
  const onFault = guarded(options.onFault ?? logFault);
  const retention = { maxBytes: settings.retentionBytes, maxAgeMs: settings.retentionAgeMs };
  const roll = segmentRollOf(retention, settings.segmentBytes);
  const fsync = settings.fsync === "always";
  const engine = { dir, besides: namedFilesIn(dir, settings), forceUnlock, fsync, clock, log, onFault };
  const given = { ...settings, ...roll, ...engine, observer: observations };
  try {
    const storage = await FileStorage.open(given);
    await warnOfOtherOwner(new Layout(dir), log);
    return { storage, maxAppendBytes: settings.maxAppendBytes };
  } catch (error) {
    if (error instanceof DirectoryError) throw new StartError("directory-unusable", error.message);
    throw error;
  }
}

/** Loads the engine on a cluster only where one is asked for. */
async function openClusterEngine(
  address: NatsAddress,
  { natsCreds, storageTimeoutMs, maxAppendBytes }: Settings,
  { clock, log, observations }: EngineParts,
): Promise<Engine> {
  const { ClusterUnusableError, openCluster } = await import("./storage/nats/open-cluster.js");
  const given = { address, credsFile: natsCreds, timeoutMs: storageTimeoutMs, clock, log, observer: observations };
  try {
    const storage = await openCluster(given);
    // Nobody has asked for the default.
    const level = maxAppendBytes === OPTIONS.maxAppendBytes.default ? "debug" : "warn";
    if (maxAppendBytes > storage.maxRecordBytes)
      log[level]("appends are limited by what a message of the NATS servers may have", {
        maxAppendBytes: storage.maxRecordBytes,
      });
    return { storage, maxAppendBytes: Math.min(maxAppendBytes, storage.maxRecordBytes) };
  } catch (error) {
    if (error instanceof ClusterUnusableError)
      throw new StartError("storage-unusable", `Cannot start: ${error.message}`);
    throw error;
  }
}

function logToStderr({ logLevel, logFormat }: Settings, clock: Clock): Log {
  const format = logFormat === "auto" ? (process.stderr.isTTY ? "text" : "json") : logFormat;
  return createLog({ level: logLevel, format, write: (line) => void process.stderr.write(`${line}\n`), clock });
}
