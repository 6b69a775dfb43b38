// Signals that ask a command to stop: the first ends its work in order, the second ends the process.

import type { Clock } from "../../ops/clock.js";
import type { StopSignal, Surroundings } from "./verb.js";

/** The exit status of a process that a signal ended: 128 + the signal's number. */
export const SIGNAL_EXIT = { SIGHUP: 129, SIGINT: 130, SIGQUIT: 131, SIGTERM: 143 } as const satisfies Readonly<
  Record<StopSignal, number>
>;

/** All of them. */
export const STOP_SIGNALS = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"] as const satisfies readonly StopSignal[];

/** The process id of the first process of a container, as it sees it itself. */
const FIRST_PID = 1;

/** How long after the first a second SIGINT under npm is the same Ctrl-C. */
const NPM_ECHO_MS = 200;

/** Calls `onFirst` with the first signal; the next one ends the process. `release` gives signals back to the system. */
export function listenForStop(
  surroundings: Surroundings,
  clock: Pick<Clock, "nowMs">,
  signals: readonly StopSignal[],
  onFirst: (signal: StopSignal) => void,
): { release(): void } {
  let firstAtMs: number | null = null;
  const listener = (signal: StopSignal): void => {
    if (firstAtMs === null) {
      firstAtMs = clock.nowMs();
      onFirst(signal);
    } else if (!isNpmEcho(signal, clock.nowMs() - firstAtMs, surroundings)) {
      surroundings.exit(SIGNAL_EXIT[signal]);
    }
  };
  for (const signal of signals) surroundings.on(signal, listener);
  return {
    release() {
      for (const signal of signals) surroundings.off(signal, listener);
    },
  };
}

/** A process, as far as signals end it; `process` is one. */
export interface SignalledProcess {
  readonly pid: number;
  on(event: StopSignal, listener: (signal: StopSignal) => void): unknown;
  listenerCount(event: StopSignal): number;
  exit(status: number): void;
}

/**
 * Signals that nobody listens for end the first process of a container as they do any other: the system would keep them
 * from it.
 */
export function endByUnheardSignals(own: SignalledProcess): void {
  if (own.pid !== FIRST_PID) return;
  for (const name of STOP_SIGNALS)
    own.on(name, (signal) => {
      if (own.listenerCount(signal) === 1) own.exit(SIGNAL_EXIT[signal]);
    });
}

/** A terminal's Ctrl-C reaches this process and npm, and npm passes its own on: two signals for one request to stop. */
function isNpmEcho(signal: StopSignal, sinceFirstMs: number, { env }: Surroundings): boolean {
  return signal === "SIGINT" && env["npm_command"] !== undefined && sinceFirstMs < NPM_ECHO_MS;
}
