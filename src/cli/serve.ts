// The verb `serve`: runs a server until a signal or a fault.

import { resolve } from "node:path";
import { systemClock } from "../ops/clock.js";
import type { Clock } from "../ops/clock.js";
import { createLog, oneLine } from "../ops/log.js";
import type { Log } from "../ops/log.js";
import { firstRequest } from "../ops/first-request.js";
import { pageAddress } from "../net/page-address.js";
import { createServer, StartError, type RunningServer } from "../server.js";
import { formatStorage, parseStorage } from "../net/storage-address.js";
import { OPTIONS, type Settings } from "../options.js";
import { serviceNotifierOf } from "../ops/notify.js";
import { listenForStop, STOP_SIGNALS } from "./command/stop-signals.js";
import { EXIT, LAST_LINE_MS } from "./command/verb.js";
import { inheritedListen } from "./systemd/socket-activation.js";
import type { Invocation, OtherSignal, Output, StopSignal, Surroundings } from "./command/verb.js";

/** What a test replaces. */
export interface ServeParts {
  readonly start?: typeof createServer;
  readonly clock?: Clock;
}

const STOP_BESIDE_RELOAD = STOP_SIGNALS.filter((signal) => signal !== "SIGHUP");
const OTHER_SIGNALS: readonly OtherSignal[] = [
  "SIGALRM",
  "SIGIO",
  "SIGPWR",
  "SIGSTKFLT",
  "SIGUSR2",
  "SIGVTALRM",
  "SIGXCPU",
];

/**
 * Serves `dir` until a signal: prints one line on standard output when it is ready (on standard error where the access
 * log has the other), logs to standard error, and resolves to the exit status. A second signal, or a fault, ends the
 * process from within.
 */
export async function serve(
  invocation: Invocation,
  surroundings: Surroundings,
  { start = createServer, clock = systemClock() }: ServeParts = {},
): Promise<number> {
  const { settings, switches, version } = invocation;
  const { stdout, stderr } = surroundings;
  const format = settings.logFormat === "auto" ? (stderr.isTTY === true ? "text" : "json") : settings.logFormat;
  const log = createLog({ level: settings.logLevel, format, write: linesTo(stderr), clock });
  // A process never ends without a word, even if its log is silent.
  const fault = exitAtFault(createLog({ level: "error", format, write: linesTo(stderr), clock }), surroundings, clock);
  const reload = listenForReload(surroundings, settings, log);
  let ask: (signal: StopSignal) => void = () => {};
  const asked = new Promise<StopSignal>((resolve) => (ask = resolve));
  const stop = listenForStop(surroundings, clock, reload === null ? STOP_SIGNALS : STOP_BESIDE_RELOAD, ask);
  const surprises = listenForSurprises(surroundings, log, fault);
  const notifier = serviceNotifierOf(surroundings.env, clock, log);
  try {
    const isCluster = settings.storage !== OPTIONS.storage.default;
    const starting = start({
      ...settings,
      ...inherited(settings, surroundings),
      ...(isCluster ? {} : { dir: resolve(invocation.dir) }),
      forceUnlock: switches.has("force-unlock"),
      log,
      accessOutput: stdout,
      onFault: (error) => fault.report("the storage has failed", EXIT.fault, error.message),
    });
    // A front end keeps nothing, so it may end while it still looks for its cluster.
    const early = isCluster ? await Promise.race([starting.then(() => null), asked]) : null;
    if (early !== null) {
      log.info("stopping", { signal: early });
      exitOnceSaid(surroundings, clock, EXIT.done);
      return EXIT.done;
    }
    const server = await starting;
    reload?.answerWith(server);
    const ready = readyOf(server, invocation);
    const streams = "dir" in ready ? ready.dir : ready.storage;
    const write = linesTo(settings.accessLog ? stderr : stdout);
    if (format === "json") createLog({ level: "info", format, write, clock }).info("serving", ready);
    else {
      const page = "page" in ready ? ` - see: ${ready.page}` : "";
      write(`streamdir ${version} serves ${oneLine(streams)} at ${placesOf(server)}${page} - try: ${ready.try}`);
    }
    notifier.ready(`serves ${streams} at ${placesOf(server)}`);

    log.info("stopping", { signal: await asked });
    notifier.stopping();
    await server.close();
    return EXIT.done;
  } catch (error) {
    const status = fault.reported();
    if (status !== null) return status; // that fault was reported already
    if (!(error instanceof StartError)) throw error;
    stderr.write(`streamdir: ${error.message}\n`);
    // The client of NATS keeps a connection open on which no server has said anything.
    if (error.code === "storage-unusable") exitOnceSaid(surroundings, clock, EXIT.unusable);
    return error.code === "invalid-option" ? EXIT.usage : EXIT.unusable;
  } finally {
    stop.release();
    reload?.release();
    surprises.release();
    notifier.close();
  }
}

/** The sockets that a service manager has opened, unless the options say where to listen. */
function inherited({ host, port, listen }: Settings, { env }: Surroundings): { readonly listen?: string } {
  if (listen !== "" || host !== OPTIONS.host.default || port !== OPTIONS.port.default) return {};
  const sockets = inheritedListen(env, process.pid);
  return sockets === null ? {} : { listen: sockets };
}

/** What the line says that the server is ready with. */
function readyOf({ url, port, listening, adminListening }: RunningServer, { version, settings, dir }: Invocation) {
  const [first = ""] = listening;
  const socketPath = port === 0 && first.startsWith("unix:") ? first.slice("unix:".length) : null;
  const more = listening.length > 1 || port === 0 ? { listening: listening.join(",") } : {};
  const admin = adminListening.length === 0 ? {} : { admin: adminListening.join(",") };
  const { readOnly, auth } = settings;
  const attempt = firstRequest(url, { readOnly, needsToken: auth !== "", socketPath });
  const page = port === 0 ? null : pageAddress(url, settings.ui);
  const seen = page === null ? {} : { page };
  return { version, ...placeOf(dir, settings), url, ...more, ...admin, ...seen, try: attempt };
}

/** Where the streams are, as the ready line has it. */
function placeOf(dir: string, { storage }: Settings): { readonly dir: string } | { readonly storage: string } {
  const address = parseStorage(storage);
  return address === null || address.kind === "file" ? { dir: resolve(dir) } : { storage: formatStorage(address) };
}

/** All addresses: the URL in place of the first that has one. */
function placesOf({ url, port, listening }: RunningServer): string {
  const first = port === 0 ? -1 : listening.findIndex((text) => text.endsWith(`:${port}`) || text.startsWith("fd:"));
  return oneLine(listening.map((text, at) => (at === first ? url : text)).join(" and ") || url);
}

function linesTo(output: Output): (line: string) => void {
  return (line) => void output.write(`${line}\n`);
}

/** Ends the process when its last line is out, or could not be for {@link LAST_LINE_MS}: nobody may read its log. */
function exitOnceSaid(surroundings: Surroundings, clock: Clock, status: number): void {
  const limit = clock.after(LAST_LINE_MS, () => surroundings.exit(status));
  surroundings.stderr.write("", () => {
    limit.cancel();
    surroundings.exit(status);
  });
}

/** `report` ends the process; `reported` is the status that it ends with, `null` where there was no fault. */
interface FaultExit {
  report(what: string, status: number, fault: string): void;
  reported(): number | null;
}

/** Ends the process at the first fault: what can't be stored must not be accepted, and a new start recovers. */
function exitAtFault(log: Log, surroundings: Surroundings, clock: Clock): FaultExit {
  let reported: number | null = null;
  return {
    report(what, status, fault) {
      if (reported !== null) return;
      reported = status;
      log.error(`exiting: ${what}`, { status, fault });
      exitOnceSaid(surroundings, clock, status);
    },
    reported: () => reported,
  };
}

/**
 * Handles what would end the process without a line in the log: a fault outside of any request, and signals that mean
 * nothing here.
 */
function listenForSurprises(surroundings: Surroundings, log: Log, fault: FaultExit): { release(): void } {
  const crash = (thrown: unknown): void => {
    fault.report(
      "the program has a fault",
      EXIT.crash,
      thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown),
    );
  };
  const ignore = (signal: OtherSignal): void => log.warn("a signal means nothing here", { signal });
  surroundings.on("uncaughtException", crash);
  for (const signal of OTHER_SIGNALS) surroundings.on(signal, ignore);
  return {
    release() {
      surroundings.off("uncaughtException", crash);
      for (const signal of OTHER_SIGNALS) surroundings.off(signal, ignore);
    },
  };
}

/**
 * SIGHUP reads the files again that the server reads by itself when they change; `null` where there is none: then it is
 * the terminal that has gone.
 */
function listenForReload(
  surroundings: Surroundings,
  { auth, tlsCert }: Settings,
  log: Log,
): { answerWith(server: RunningServer): void; release(): void } | null {
  if (auth === "" && tlsCert === "") return null;
  let server: RunningServer | null = null;
  const { CREDENTIALS_DIRECTORY: copies } = surroundings.env;
  const hasCopies = copies !== undefined && [auth, tlsCert].some((path) => path.startsWith(`${copies}/`));
  const listener = (): void => {
    if (hasCopies) log.warn("systemd copied these files when it started the service: another takes a restart");
    void server?.reload();
  };
  surroundings.on("SIGHUP", listener);
  return { answerWith: (started) => void (server = started), release: () => void surroundings.off("SIGHUP", listener) };
}
