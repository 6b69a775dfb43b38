import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { serviceNotifierOf, watchdogIntervalMs } from "../../src/ops/notify.js";
import { NO_LOG } from "../helpers/closed-directory.js";
import { unless } from "../helpers/machine.js";
import { ManualClock } from "../helpers/manual-clock.js";
import { startProgram, startStreamdir, type TestProcess } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";
import { until } from "../helpers/until.js";

const lacksNotify =
  unless(["systemd-notify", "--version"], "run systemd-notify (the package systemd)") ||
  unless(["python3", "--version"], "listen to datagrams of Unix, which Node can't (python3)");
const TIMEOUT_MS = 60_000;

/** Prints what comes to a socket, a message a line. It takes no descriptors, which is what systemd-notify waits for. */
const LISTEN = `
import socket, sys
heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
heard.bind(sys.argv[1])
print("listens", flush=True)
while True: print(heard.recv(4096).decode(), flush=True)
`;

/** A service manager's socket, and what comes to it. */
class Manager {
  readonly socket = join(tempDir(), "notify");
  readonly #heard: TestProcess;

  private constructor(t: TestContext) {
    this.#heard = startProgram(t, "python3", ["-c", LISTEN, this.socket]);
  }

  static async open(t: TestContext): Promise<Manager> {
    const manager = new Manager(t);
    await manager.hears("listens");
    return manager;
  }

  /** Resolves when it was told `message`. */
  async hears(message: string): Promise<void> {
    const line = await this.#heard.stdoutLine(new RegExp(`^${message.slice(0, message.indexOf("=") + 1)}`));
    if (message.includes("=")) assert.equal(line, message);
  }

  /** All that it was told. `BARRIER=1` is what systemd-notify waits behind. */
  async told(): Promise<string[]> {
    this.#heard.kill("SIGTERM");
    const [, ...messages] = (await this.#heard.ended).stdout.trimEnd().split("\n");
    return messages.filter((message) => message !== "BARRIER=1");
  }
}

describe("a server that a service manager started", { skip: lacksNotify, timeout: TIMEOUT_MS }, () => {
  test("says that it is ready once it serves, and that it is stopping when it does", async (t) => {
    const manager = await Manager.open(t);
    const dir = tempDir();
    const server = startStreamdir(t, ["serve", dir, "--port=0", "--log-format=json"], { env: { NOTIFY_SOCKET: manager.socket } });
    const { url } = JSON.parse(await server.stdoutLine(/"serving"/));
    await manager.hears("READY=1");
    assert.equal((await fetch(new URL("/health", url))).status, 200);
    server.kill("SIGTERM");
    await manager.hears("STOPPING=1");
    const { status, stderr } = await server.ended;
    assert.equal(status, 0);
    assert.doesNotMatch(stderr, /service manager/);
    assert.deepEqual(await manager.told(), [`STATUS=serves ${dir} at ${url}`, "READY=1", "STOPPING=1"]);
  });

  test("gives a sign of life each half of the watchdog's time, from when it is ready", async (t) => {
    const manager = await Manager.open(t);
    const clock = new ManualClock();
    const env = { PATH: process.env["PATH"], NOTIFY_SOCKET: manager.socket, WATCHDOG_USEC: "10000000", WATCHDOG_PID: String(process.pid) };
    const notifier = serviceNotifierOf(env, clock, NO_LOG);
    t.after(() => notifier.close());
    assert.equal(clock.pendingCount, 0);
    notifier.ready("two\nlines");
    await manager.hears("STATUS=two\\u000alines");
    clock.advance(4999);
    notifier.stopping();
    await manager.hears("STOPPING=1");
    clock.advance(1);
    await manager.hears("WATCHDOG=1");
    notifier.close();
    assert.deepEqual((await manager.told()).slice(1), ["READY=1", "STOPPING=1", "WATCHDOG=1"]);
    assert.equal(clock.pendingCount, 0);
  });
});

test("a service manager that can't be told is told of in the log, once", async () => {
  const warned: unknown[] = [];
  const log = { ...NO_LOG, warn: (...line: unknown[]) => void warned.push(line) };
  const notifier = serviceNotifierOf({ PATH: tempDir(), NOTIFY_SOCKET: "/nowhere" }, new ManualClock(), log);
  notifier.ready("");
  notifier.stopping();
  await until(() => warned.length > 0);
  notifier.stopping();
  notifier.close();
  assert.equal(warned.length, 1);
  assert.match(JSON.stringify(warned), /systemd-notify: not found/);
});

test("nobody is told without a socket", () => {
  const clock = new ManualClock();
  const notifier = serviceNotifierOf({ WATCHDOG_USEC: "1000" }, clock, NO_LOG);
  notifier.ready("");
  notifier.stopping();
  notifier.close();
  assert.equal(clock.pendingCount, 0);
});

describe("half of the time of a watchdog", () => {
  const cases: readonly [env: Record<string, string>, intervalMs: number | null][] = [
    [{}, null],
    [{ WATCHDOG_USEC: "60000000" }, 30_000],
    [{ WATCHDOG_USEC: "60000000", WATCHDOG_PID: "7" }, 30_000],
    [{ WATCHDOG_USEC: "60000000", WATCHDOG_PID: "8" }, null],
    [{ WATCHDOG_USEC: "1" }, 1],
    [{ WATCHDOG_USEC: "0" }, null],
    [{ WATCHDOG_USEC: "x" }, null],
  ];
  for (const [env, intervalMs] of cases) {
    test(`is ${intervalMs} ms for ${JSON.stringify(env)}`, () => assert.equal(watchdogIntervalMs(env, 7), intervalMs));
  }
});
