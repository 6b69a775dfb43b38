// The end of a process whose terminal has gone: Node aborts, with a core dump, where it can't set that back at its end.

import { isatty } from "node:tty";

const STANDARD_FDS = [0, 1, 2] as const;
/** Time for a signal to arrive that the process has sent to itself. */
const ARRIVAL_MS = 1_000;

/** A process, as far as it ends itself by a signal; `process` is one. */
export interface EndingProcess {
  readonly pid: number;
  once(event: "exit", listener: () => void): unknown;
  removeAllListeners(event: "SIGHUP"): unknown;
  kill(pid: number, signal: "SIGHUP"): unknown;
}

/** Lets the process end by SIGHUP, once all else is done, if a terminal that it began with has gone by then. */
export function endByLostTerminal(own: EndingProcess, isTerminal: (fd: number) => boolean = isatty): void {
  const terminals = STANDARD_FDS.filter((fd) => isTerminal(fd));
  own.once("exit", () => {
    if (terminals.every((fd) => isTerminal(fd))) return;
    // Nobody listens: then the system ends it.
    own.removeAllListeners("SIGHUP");
    own.kill(own.pid, "SIGHUP");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ARRIVAL_MS);
  });
}
