// Wires a server together, from the directory to the listener: `createServer` and `createHandler`.

import type { IncomingMessage, ServerResponse } from "node:http";
import { connectionLimitFor } from "./http/bounds/connection-limit.js";
import { ConnectionsByClient } from "./http/bounds/connections-by-client.js";
import type { Context } from "./http/context/context.js";
import { Authority } from "./auth/authority.js";
import { listenFault, StartError } from "./server/start-error.js";
import { closed, listenForAdmin, type Listening } from "./server/admin-listening.js";
import { contextOf } from "./server/context-of.js";
import { Dispatcher } from "./http/dispatch.js";
import { HttpServer, REQUEST_LIMITS, type RequestLimits } from "./http/http-server.js";
import { CertificateError } from "./http/listen/certificate.js";
import { ListenError } from "./http/listen/listener.js";
import { adminPlanOf, planOf, urlOf, type ListenPlan } from "./http/listen/plan.js";
import { StorageObservations } from "./metrics/storage-observations.js";
import { stopwatchMs, systemClock, type Clock } from "./ops/clock.js";
import { LineQueue, type LineOutput } from "./ops/line-queue.js";
import { createLog, type Log } from "./ops/log.js";
import { keepTickClass } from "./ops/tick-class.js";
import { defaultSettings, faultOf, OPTIONS, type OptionName, type Settings } from "./options.js";
import { FileStorage } from "./storage/file/file-storage.js";
import type { FileStorageOptions } from "./storage/file/file-storage-options.js";
import { systemFiles } from "./storage/file/disk/files.js";
import { DirectoryError } from "./storage/file/directory/lock.js";
import { freeDescriptors, TOO_FEW_FILES } from "./storage/file/disk/open-files-limit.js";
import { Registry } from "./stream/registry.js";
import { segmentRollOf } from "./stream/loaded/retention.js";

/** What a server is made of. What is left out of the settings has its default. */
export interface ServerOptions extends Partial<Settings> {
  /** The data directory; made when it does not exist. */
  readonly dir: string;
  /** Removes the lock of a process that can't be seen from here. Set it only if that process has certainly stopped. */
  readonly forceUnlock?: boolean;
  /** The server's log; standard error when absent. */
  readonly log?: Log;
  readonly clock?: Clock;
  /** Where `accessLog` writes its lines; standard output when absent. */
  readonly accessOutput?: LineOutput;
  /**
   * Called when the disk failed: no write is accepted any more, and the process should be restarted. When absent the
   * fault is only logged.
   */
  readonly onFault?: (error: Error) => void;
}

/** Where a server with these settings will listen, for who only wants to know. */
export { beyondReach, LISTEN_BACKLOG, planOf, type ListenPlan } from "./http/listen/plan.js";

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
export async function startServer(options: ServerOptions, limits: RequestLimits): Promise<RunningServer> {
  const settings = settingsOf(options);
  const plan = planOf(settings);
  if ("fault" in plan) throw new StartError("invalid-option", `Cannot start: ${plan.fault}`);
  const service = await Service.open(options, settings, false);
  const { http, listeners, admin } = await listenAll(service, plan, limits).catch(async (error: unknown) => {
    await service.stop();
    if (error instanceof CertificateError) throw new StartError("invalid-option", error.message);
    throw error instanceof ListenError ? listenFault(error, TOO_FEW_FILES) : error;
  });
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
      await service.stop();
      await (admin === null ? null : closed(admin.http));
    }),
    closeNow() {
      for (const server of admin === null ? [http] : [http, admin.http]) void closed(server);
      service.stopTimers();
    },
  };
}

async function listenAll(
  service: Service,
  plan: ListenPlan,
  limits: RequestLimits,
): Promise<Listening & { readonly admin: Listening | null }> {
  const adminPlan = adminPlanOf(service.context.settings);
  const admin = adminPlan === null ? null : await listenForAdmin(service.context, adminPlan, limits);
  try {
    return { ...(await listen(service, plan, limits)), admin };
  } catch (error) {
    if (admin !== null) await closed(admin.http);
    throw error;
  }
}

async function listen({ context, dispatcher }: Service, plan: ListenPlan, limits: RequestLimits): Promise<Listening> {
  const { responder, clock, log, settings, clients } = context;
  // After the storage, which has opened the files that it always needs.
  const connectionLimit = connectionLimitFor(await freeDescriptors(systemFiles(false)), settings.maxConnections);
  const connectionsByClient = new ConnectionsByClient(settings.maxConnectionsPerClient, clients);
  const bounds = { limits, connectionLimit, connectionsByClient };
  const http = new HttpServer({
    ...{ dispatcher, responder, clock, log, ...bounds },
    onClientAuthorities: (authorities) => context.authority?.trustClients(authorities),
  });
  return { http, listeners: await http.listen(plan) };
}

/** Opens the directory, for a server of your own: `host` and `port` are not used. Throws {@link StartError}. */
export async function createHandler(options: ServerOptions): Promise<StreamHandler> {
  const service = await Service.open(options, settingsOf(options), true);
  const handle = (req: IncomingMessage, res: ServerResponse, next?: () => void): void => {
    service.dispatcher.handle(req, res, { next });
  };
  const close = once(async () => {
    // Nobody here can know when the last connection is gone.
    service.context.inFlight.refuseAll();
    await service.drain(Promise.resolve());
    await service.stop();
  });
  return Object.assign(handle, { close, metrics: () => service.context.metricsReport() });
}

/** Everything that a listener serves from, from the directory up. */
class Service {
  readonly context: Context;
  readonly dispatcher: Dispatcher;
  readonly #storage: FileStorage;
  readonly #accessLines: LineQueue | null;

  private constructor(context: Context, storage: FileStorage, accessLines: LineQueue | null) {
    this.#accessLines = accessLines;
    this.context = context;
    this.dispatcher = new Dispatcher(context);
    this.#storage = storage;
  }

  static async open(options: ServerOptions, settings: Settings, isEmbedded: boolean): Promise<Service> {
    const clock = options.clock ?? systemClock();
    const log = options.log ?? logToStderr(settings, clock);
    const onFault = options.onFault ?? ((error) => log.error("the storage has failed", { fault: error.message }));
    const { dir, forceUnlock = false } = options;
    const retention = { maxBytes: settings.retentionBytes, maxAgeMs: settings.retentionAgeMs };
    const roll = segmentRollOf(retention, settings.segmentBytes);
    const authority = settings.auth === "" ? null : await Authority.open({ file: settings.auth, clock, log });
    const observations = new StorageObservations();
    const storage = await openStorage({
      ...settings,
      ...roll,
      dir,
      forceUnlock,
      fsync: settings.fsync === "always",
      clock,
      log,
      onFault,
      observer: observations,
    });
    const registry = new Registry({
      storage,
      clock,
      log,
      ttlMode: settings.ttl,
      retention,
      maxLoadedStreams: settings.maxLoadedStreams,
      maxLoadedProducers: settings.maxLoadedProducers,
    });
    registry.start();
    // The first list is not to wait for all names; whoever lists is told what fails.
    storage.streamList.names("", 0).catch(() => undefined);
    void keepTickClass();
    const accessLines = settings.accessLog ? new LineQueue(options.accessOutput ?? process.stdout, clock) : null;
    // With a clock of the caller's, times are those that it tells.
    const nowMs = options.clock === undefined ? stopwatchMs : () => clock.nowMs();
    return new Service(
      contextOf(settings, {
        registry,
        streamList: storage.streamList,
        observations,
        authority,
        clock,
        log,
        accessLines,
        stopwatchMs: nowMs,
        isEmbedded,
      }),
      storage,
      accessLines,
    );
  }

  /** Tells balancers that the server is about to stop, and serves on for `shutdownDelayMs`. */
  async leave(): Promise<void> {
    const { inFlight, clock, settings } = this.context;
    inFlight.leave();
    const { shutdownDelayMs } = settings;
    if (shutdownDelayMs > 0) await new Promise<void>((resolve) => void clock.after(shutdownDelayMs, resolve));
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
    this.context.registry.stop();
    this.context.authority?.close();
  }

  /** Makes everything permanent and releases the directory. */
  async stop(): Promise<void> {
    this.stopTimers();
    await this.#storage.close();
    await this.#accessLines?.close();
  }
}

async function openStorage(options: FileStorageOptions): Promise<FileStorage> {
  try {
    return await FileStorage.open(options);
  } catch (error) {
    if (error instanceof DirectoryError) throw new StartError("directory-unusable", error.message);
    throw error;
  }
}

/** What is wrong with the options that are not settings; `null` if nothing is. */
const PART_FAULTS: Readonly<Record<Exclude<keyof ServerOptions, OptionName>, (value: unknown) => string | null>> = {
  dir: (value) => (typeof value === "string" && value !== "" ? null : "must be a path"),
  forceUnlock: (value) => (value === undefined || typeof value === "boolean" ? null : "must be true or false"),
  log: (value) => faultOfMethods(value, ["debug", "info", "warn", "error"]),
  clock: (value) => faultOfMethods(value, ["nowMs", "after"]),
  accessOutput: (value) => faultOfMethods(value, ["write"]),
  onFault: (value) => (value === undefined || typeof value === "function" ? null : "must be a function"),
};

function faultOfMethods(value: unknown, methods: readonly string[]): string | null {
  if (value === undefined) return null;
  const isObject = typeof value === "object" && value !== null;
  const lacking = isObject ? methods.find((method) => typeof Reflect.get(value, method) !== "function") : undefined;
  if (isObject && lacking === undefined) return null;
  const why = lacking === undefined ? "" : `: ${lacking} is none`;
  const list = methods.length === 1 ? "method" : `methods ${methods.slice(0, -1).join(", ")} and`;
  return `must have the ${list} ${methods.at(-1)}${why}`;
}

function settingsOf(options: ServerOptions): Settings {
  // Callers in JavaScript have no types.
  const given: unknown = options;
  if (typeof given !== "object" || given === null)
    throw invalidOption("the first argument", "must be an object with options", given);
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(OPTIONS, name) && !Object.hasOwn(PART_FAULTS, name));
  if (unknown !== undefined)
    throw new StartError(
      "invalid-option",
      `Cannot start: there is no option ${JSON.stringify(unknown)}${suggestion(unknown)}`,
    );
  for (const [name, faultOfPart] of Object.entries(PART_FAULTS)) {
    const value: unknown = options[name as keyof ServerOptions]; // the names of PART_FAULTS are some of them
    const fault = faultOfPart(value);
    if (fault !== null) throw invalidOption(name, fault, value);
  }
  const set = Object.entries(options).filter(([name, value]) => Object.hasOwn(OPTIONS, name) && value !== undefined);
  const settings = { ...defaultSettings(), ...Object.fromEntries(set) };
  for (const [name, spec] of Object.entries(OPTIONS)) {
    const value: unknown = settings[name as OptionName]; // the names of OPTIONS are all there are
    const fault = faultOf(spec, value);
    if (fault !== null) throw invalidOption(name, fault, value);
  }
  return settings;
}

/** A hint for those who write an option as its flag on the command line. */
function suggestion(unknown: string): string {
  const bare = (name: string): string => name.replace(/[^A-Za-z]/g, "").toLowerCase();
  const meant = Object.entries(OPTIONS).find(
    ([name, { flag }]) => bare(unknown) === bare(flag) || bare(unknown) === bare(name),
  );
  return meant === undefined ? "" : `; did you mean ${meant[0]}?`;
}

function invalidOption(name: string, fault: string, value: unknown): StartError {
  return new StartError("invalid-option", `Cannot start: ${name} ${fault}, current value is ${shown(value)}`);
}

/** A value of any kind in one line. */
function shown(value: unknown): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "object":
      return value === null ? "null" : Array.isArray(value) ? "an array" : "an object";
    case "function":
      return "a function";
    default:
      return String(value);
  }
}

function logToStderr({ logLevel, logFormat }: Settings, clock: Clock): Log {
  const format = logFormat === "auto" ? (process.stderr.isTTY ? "text" : "json") : logFormat;
  return createLog({ level: logLevel, format, write: (line) => void process.stderr.write(`${line}\n`), clock });
}

/** Waits for `work`, at most `limitMs`. */
function within(clock: Clock, limitMs: number, work: Promise<unknown>): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(limitMs, resolve);
    const done = (): void => {
      timer.cancel();
      resolve();
    };
    work.then(done, reject);
  });
}

/** `run`, but only the first time; later calls wait for the same. */
function once(run: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null;
  return () => (running ??= run());
}
