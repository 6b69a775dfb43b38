// The verb `serve`: runs a server until a signal or a fault.

import { resolve } from "node:path";
import { systemClock } from "../ops/clock.js";
import type { Clock } from "../ops/clock.js";
import { createLog, oneLine } from "../ops/log.js";
import type { Log } from "../ops/log.js";
import { firstRequest } from "../ops/first-request.js";
import { createServer, StartError } from "../server.js";
import { EXIT } from "./command/verb.js";
import type { Invocation, OtherSignal, Output, StopSignal, Surroundings } from "./command/verb.js";

/** What a test replaces. */
export interface ServeParts {
  readonly start?: typeof createServer;
  readonly clock?: Pick<Clock, "nowMs">;
}

/** The exit status of a process that a second signal ended: 128 + the signal's number. */
const SIGNAL_EXIT = { SIGHUP: 129, SIGINT: 130, SIGQUIT: 131, SIGTERM: 143 } as const satisfies Readonly<
  Record<StopSignal, number>
>;
const STOP_SIGNALS = Object.keys(SIGNAL_EXIT) as StopSignal[]; // keys forgets what they are
const OTHER_SIGNALS: readonly OtherSignal[] = [
  "SIGALRM",
  "SIGIO",
  "SIGPWR",
  "SIGSTKFLT",
  "SIGUSR2",
  "SIGVTALRM",
  "SIGXCPU",
];

/** How long after the first a second SIGINT under npm is the same Ctrl-C. */
const NPM_ECHO_MS = 200;

/**
 * Serves `dir` until a signal: prints one line on standard output when it is ready, logs to standard error, and
 * resolves to the exit status. A second signal, or a fault, ends the process from within.
 */
export async function serve(
  { dir, settings, switches, version }: Invocation,
  surroundings: Surroundings,
  { start = createServer, clock = systemClock() }: ServeParts = {},
): Promise<number> {
  const { stdout, stderr } = surroundings;
  const format = settings.logFormat === "auto" ? (stderr.isTTY === true ? "text" : "json") : settings.logFormat;
  const log = createLog({ level: settings.logLevel, format, write: linesTo(stderr), clock });
  // A process never ends without a word, even if its log is silent.
  const fault = exitAtFault(createLog({ level: "error", format, write: linesTo(stderr), clock }), surroundings);
  const stop = listenForStop(surroundings, clock);
  const surprises = listenForSurprises(surroundings, log, fault);
  try {
    const server = await start({
      ...settings,
      dir: resolve(dir),
      forceUnlock: switches.has("force-unlock"),
      log,
      onFault: (error) => fault.report("the storage has failed", EXIT.fault, error.message),
    });
    const ready = { version, dir: resolve(dir), url: server.url, try: firstRequest(server.url, settings.readOnly) };
    if (format === "json") createLog({ level: "info", format, write: linesTo(stdout), clock }).info("serving", ready);
    else linesTo(stdout)(`streamdir ${version} serves ${oneLine(ready.dir)} at ${ready.url} - try: ${ready.try}`);

    log.info("stopping", { signal: await stop.asked });
    await server.close();
    return EXIT.done;
  } catch (error) {
    const status = fault.reported();
    if (status !== null) return status; // that fault was reported already
    if (!(error instanceof StartError)) throw error;
    stderr.write(`streamdir: ${error.message}\n`);
    return error.code === "invalid-option" ? EXIT.usage : EXIT.unusable;
  } finally {
    stop.release();
    surprises.release();
  }
}

function linesTo(output: Output): (line: string) => void {
  return (line) => void output.write(`${line}\n`);
}

/** `report` ends the process; `reported` is the status that it ends with, `null` where there was no fault. */
interface FaultExit {
  report(what: string, status: number, fault: string): void;
  reported(): number | null;
}

/** Ends the process at the first fault: what can't be stored must not be accepted, and a new start recovers. */
function exitAtFault(log: Log, surroundings: Surroundings): FaultExit {
  let reported: number | null = null;
  return {
    report(what, status, fault) {
      if (reported !== null) return;
      reported = status;
      log.error(`exiting: ${what}`, { status, fault });
      // Written after the log line, so that the line is out when the process ends.
      surroundings.stderr.write("", () => surroundings.exit(status));
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

/** `asked` resolves to the first signal; `release` gives signals back to the platform. */
function listenForStop(
  surroundings: Surroundings,
  clock: Pick<Clock, "nowMs">,
): { readonly asked: Promise<StopSignal>; release(): void } {
  let firstAtMs: number | null = null;
  let ask: (signal: StopSignal) => void = () => {};
  const asked = new Promise<StopSignal>((resolve) => (ask = resolve));
  const listener = (signal: StopSignal): void => {
    if (firstAtMs === null) {
      firstAtMs = clock.nowMs();
      ask(signal);
    } else if (!isNpmEcho(signal, clock.nowMs() - firstAtMs, surroundings)) {
      surroundings.exit(SIGNAL_EXIT[signal]);
    }
  };
  for (const signal of STOP_SIGNALS) surroundings.on(signal, listener);
  return {
    asked,
    release() {
      for (const signal of STOP_SIGNALS) surroundings.off(signal, listener);
    },
  };
}

/** A terminal's Ctrl-C reaches this process and npm, and npm passes its own on: two signals for one request to stop. */
function isNpmEcho(signal: StopSignal, sinceFirstMs: number, { env }: Surroundings): boolean {
  return signal === "SIGINT" && env["npm_command"] !== undefined && sinceFirstMs < NPM_ECHO_MS;
}
