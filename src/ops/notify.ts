// Tells systemd, or whoever else started the process as a service of `Type=notify`, how it is.

import { spawn, type ChildProcess } from "node:child_process";
import type { Clock, Timer } from "./clock.js";
import { oneLine, type Log } from "./log.js";

/** Node has no datagram sockets of Unix. A shell that stays is started once, while the process is still small. */
const TELLER = 'while IFS= read -r line; do systemd-notify "$line" || exit; done';
const MAX_FAULT_CHARS = 500;

/** Tells the service manager how the server is; does nothing where none wants to know. */
export interface ServiceNotifier {
  /** The service is ready; `status` is a line for people. From now on the watchdog is fed, if there is one. */
  ready(status: string): void;
  /** The service is stopping. */
  stopping(): void;
  /** Lets go of the program that tells it. */
  close(): void;
}

const NOBODY: ServiceNotifier = { ready() {}, stopping() {}, close() {} };

/** What a service manager says to its service: `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID` (sd_notify(3)). */
type Environment = Readonly<Record<string, string | undefined>>;

/** The service manager that `env` names. */
export function serviceNotifierOf(env: Environment, clock: Pick<Clock, "after">, log: Log): ServiceNotifier {
  const { NOTIFY_SOCKET: socket } = env;
  return socket === undefined || socket === "" ? NOBODY : new SystemdNotifier(env, socket, clock, log);
}

/**
 * Milliseconds between two signs of life, half of what the watchdog waits; `null` where it does not watch this process.
 */
export function watchdogIntervalMs(env: Environment, pid: number): number | null {
  const { WATCHDOG_USEC: written = "", WATCHDOG_PID: watched } = env;
  if (!/^[1-9]\d{0,15}$/.test(written)) return null;
  if (watched !== undefined && watched !== String(pid)) return null;
  return Math.max(1, Math.floor(Number(written) / 2000));
}

class SystemdNotifier implements ServiceNotifier {
  readonly #clock: Pick<Clock, "after">;
  readonly #log: Log;
  readonly #intervalMs: number | null;
  readonly #teller: ChildProcess;
  #isTold = true;
  #timer: Timer | null = null;

  constructor(env: Environment, socket: string, clock: Pick<Clock, "after">, log: Log) {
    this.#clock = clock;
    this.#log = log;
    this.#intervalMs = watchdogIntervalMs(env, process.pid);
    this.#teller = spawn("/bin/sh", ["-c", TELLER], {
      stdio: ["pipe", "ignore", "pipe"],
      env: { PATH: env["PATH"], NOTIFY_SOCKET: socket },
    });
    this.#teller.unref();
    this.#watchTeller();
  }

  ready(status: string): void {
    this.#tell(`STATUS=${oneLine(status)}`);
    this.#tell("READY=1");
    this.#feed();
  }

  stopping(): void {
    this.#tell("STOPPING=1");
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#isTold = false;
    this.#teller.stdin?.end();
  }

  /** The timer turns with the loop: a loop that stands still feeds nothing. */
  #feed(): void {
    if (this.#intervalMs === null) return;
    this.#timer = this.#clock.after(this.#intervalMs, () => {
      // What is not taken is not heaped up.
      if (this.#teller.stdin?.writableNeedDrain === false) this.#tell("WATCHDOG=1");
      this.#feed();
    });
  }

  #tell(line: string): void {
    if (this.#isTold) this.#teller.stdin?.write(`${line}\n`);
  }

  #watchTeller(): void {
    const { stdin, stderr } = this.#teller;
    let fault = "";
    stderr?.setEncoding("utf8").on("data", (text: string) => (fault = (fault + text).slice(-MAX_FAULT_CHARS)));
    const lose = (why: string): void => {
      if (!this.#isTold) return;
      this.#isTold = false;
      this.#log.warn("the service manager can't be told how the server is", { fault: oneLine(why) });
    };
    this.#teller.on("error", (error) => lose(error.message));
    this.#teller.on("close", () => lose(fault.trim() || "systemd-notify has ended"));
    // "close" says why.
    stdin?.on("error", () => stdin.destroy());
    for (const end of [stdin, stderr])
      if (end !== null && "unref" in end && typeof end.unref === "function") end.unref();
  }
}
