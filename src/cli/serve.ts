import { resolve } from "node:path";
import { systemClock } from "../ops/clock.js";
import type { Clock } from "../ops/clock.js";
import { createLog, oneLine } from "../ops/log.js";
import type { Log } from "../ops/log.js";
import { createServer, StartError } from "../server.js";
import { EXIT } from "./verb.js";
import type { Invocation, Output, StopSignal, Surroundings } from "./verb.js";

/** What a test puts in place of the real thing. */
export interface ServeParts {
  readonly start?: typeof createServer;
  readonly clock?: Pick<Clock, "nowMs">;
}

/** What a process that a second signal ended exits with: 128 + the signal's number. */
const SIGNAL_EXIT: Readonly<Record<StopSignal, number>> = { SIGINT: 130, SIGTERM: 143 };

/** How long after the first a second SIGINT under npm is the same Ctrl-C. */
const NPM_ECHO_MS = 200;

/**
 * Serves `dir` until SIGINT or SIGTERM: prints one line on standard output when it is ready, logs to standard error,
 * and resolves to the exit status. A second signal, or a fault of the storage, ends the process from within.
 */
export async function serve(
  { dir, settings, switches, version }: Invocation,
  surroundings: Surroundings,
  { start = createServer, clock = systemClock() }: ServeParts = {},
): Promise<number> {
  const { stdout, stderr } = surroundings;
  const format = settings.logFormat === "auto" ? (stderr.isTTY === true ? "text" : "json") : settings.logFormat;
  const log = createLog({ level: settings.logLevel, format, write: linesTo(stderr), clock });
  const fault = exitAtFault(log, surroundings);
  const stop = listenForStop(surroundings, clock);
  try {
    const server = await start({ ...settings, dir: resolve(dir), forceUnlock: switches.has("force-unlock"), log, onFault: fault.report });
    const ready = { version, dir: resolve(dir), url: server.url };
    if (format === "json") createLog({ level: "info", format, write: linesTo(stdout), clock }).info("serving", ready);
    else linesTo(stdout)(`streamdir ${version} serves ${oneLine(ready.dir)} at ${ready.url}`);

    log.info("stopping", { signal: await stop.asked });
    await server.close();
    return EXIT.done;
  } catch (error) {
    if (fault.isReported()) return EXIT.fault; // what it broke on its way is no news
    if (!(error instanceof StartError)) throw error;
    stderr.write(`streamdir: ${error.message}\n`);
    return error.code === "invalid-option" ? EXIT.usage : EXIT.unusable;
  } finally {
    stop.release();
  }
}

function linesTo(output: Output): (line: string) => void {
  return (line) => void output.write(`${line}\n`);
}

interface FaultExit {
  report(error: Error): void;
  isReported(): boolean;
}

/** Ends the process at the first fault: what can't be stored must not be accepted, and a new start recovers. */
function exitAtFault(log: Log, surroundings: Surroundings): FaultExit {
  let isReported = false;
  return {
    report(error) {
      if (isReported) return;
      isReported = true;
      log.error("exiting: the storage has failed", { status: EXIT.fault, fault: error.message });
      // Written behind the log line, so that it is out when the process ends.
      surroundings.stderr.write("", () => surroundings.exit(EXIT.fault));
    },
    isReported: () => isReported,
  };
}

interface StopRequest {
  /** The first signal. */
  readonly asked: Promise<StopSignal>;
  /** Leaves signals to the platform again. */
  release(): void;
}

function listenForStop(surroundings: Surroundings, clock: Pick<Clock, "nowMs">): StopRequest {
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
  surroundings.on("SIGINT", listener);
  surroundings.on("SIGTERM", listener);
  return {
    asked,
    release() {
      surroundings.off("SIGINT", listener);
      surroundings.off("SIGTERM", listener);
    },
  };
}

/** A terminal's Ctrl-C reaches this process and npm, and npm passes its own on: two signals, but one wish. */
function isNpmEcho(signal: StopSignal, sinceFirstMs: number, { env }: Surroundings): boolean {
  return signal === "SIGINT" && env["npm_command"] !== undefined && sinceFirstMs < NPM_ECHO_MS;
}
