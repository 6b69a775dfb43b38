import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { chmodSync, existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { connect, createServer as createSocketServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { describe, test } from "node:test";
import type { TestContext } from "node:test";
import { serve } from "../../src/cli/serve.js";
import type { Output, StopSignal, Surroundings } from "../../src/cli/command/verb.js";
import { defaultSettings } from "../../src/options.js";
import type { Settings } from "../../src/options.js";
import { StartError } from "../../src/server.js";
import type { RunningServer, ServerOptions } from "../../src/server.js";
import { AuthFile } from "../helpers/auth-file.js";
import { startStreamdir } from "../helpers/process.js";
import type { TestProcess } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";

const STARTED_AT = "2026-01-02T03:04:05.678Z";

/** An output that keeps what is written to it, and calls back when `flush` is called. */
class FakeOutput implements Output {
  text = "";
  #waiting: (() => void)[] = [];

  constructor(readonly isTTY: boolean) {}

  write(text: string | Buffer, written: () => void = () => {}): void {
    this.text += text.toString();
    this.#waiting.push(written);
  }

  flush(): void {
    for (const written of this.#waiting.splice(0)) written();
  }
}

class FakeSurroundings extends EventEmitter implements Surroundings {
  readonly stdout: FakeOutput;
  readonly stderr: FakeOutput;
  readonly exits: number[] = [];

  constructor(
    readonly env: Surroundings["env"] = {},
    isTTY = true,
  ) {
    super();
    this.stdout = new FakeOutput(isTTY);
    this.stderr = new FakeOutput(isTTY);
  }

  exit(status: number): void {
    this.exits.push(status);
  }
}

/** A running `serve` with a server of the test's making, and what happened to it. */
function serveFake({
  settings = {},
  surroundings = new FakeSurroundings(),
  close = () => Promise.resolve(),
}: {
  settings?: Partial<Settings>;
  surroundings?: FakeSurroundings;
  close?: () => Promise<void>;
}) {
  const clock = { ms: Date.parse(STARTED_AT), nowMs: () => clock.ms, after: () => ({ cancel() {} }) };
  const started: ServerOptions[] = [];
  const start = (options: ServerOptions): Promise<RunningServer> => {
    started.push(options);
    return Promise.resolve({
      url: "http://127.0.0.1:4567/v1/stream/",
      port: 4567,
      listening: ["127.0.0.1:4567"],
      adminListening: [],
      reload: () => Promise.resolve(true),
      close,
      closeNow() {},
    });
  };
  const invocation = { dir: "some-dir", settings: { ...defaultSettings(), ...settings }, version: "1.2.3", switches: new Set<string>() };
  return { status: serve(invocation, surroundings, { start, clock }), surroundings, started, clock };
}

const never = (): Promise<void> => new Promise(() => {});

describe("serve", () => {
  test("starts the server with the settings and the absolute directory", async () => {
    const { started, surroundings, status } = serveFake({ settings: { port: 0, readOnly: true } });
    surroundings.emit("SIGTERM", "SIGTERM");
    assert.equal(await status, 0);
    const [{ log, onFault, accessOutput, ...options } = { dir: "" }, ...others] = started;
    assert.deepEqual(options, { ...defaultSettings(), port: 0, readOnly: true, dir: resolve("some-dir"), forceUnlock: false });
    assert.deepEqual(others, []);
    assert.ok(log !== undefined && onFault !== undefined && accessOutput === surroundings.stdout);
  });

  const ready = {
    time: STARTED_AT,
    level: "info",
    msg: "serving",
    version: "1.2.3",
    dir: resolve("some-dir"),
    url: "http://127.0.0.1:4567/v1/stream/",
    page: "http://127.0.0.1:4567/v1/stream/__ds/ui/",
    try: "curl -i -X PUT -H 'Content-Type: text/plain' --data hello http://127.0.0.1:4567/v1/stream/hello",
  };
  const text = `streamdir 1.2.3 serves ${ready.dir} at ${ready.url} - see: ${ready.page} - try: ${ready.try}\n`;
  const json = `${JSON.stringify(ready)}\n`;
  for (const [ui, port, page] of [
    [true, 4567, "http://127.0.0.1:4567/v1/stream/__ds/ui/"],
    ["loopback", 4567, "http://127.0.0.1:4567/v1/stream/__ds/ui/"],
    [false, 4567, undefined],
  ] as const) {
    test(`names the page where there is one: --ui is ${ui}`, async () => {
      const { surroundings, status } = serveFake({ settings: { ui, port, logFormat: "json" } });
      surroundings.emit("SIGTERM", "SIGTERM");
      await status;
      assert.equal(JSON.parse(surroundings.stdout.text).page, page);
    });
  }

  const formats: readonly [isTTY: boolean, logFormat: Settings["logFormat"], line: string][] = [
    [true, "auto", text],
    [false, "auto", json],
    [true, "json", json],
    [false, "text", text],
  ];
  for (const [isTTY, logFormat, line] of formats) {
    test(`says that it is ready in ${logFormat} ${isTTY ? "on a terminal" : "into a pipe"}`, async () => {
      const { surroundings, status } = serveFake({
        settings: { logFormat, logLevel: "silent" },
        surroundings: new FakeSurroundings({}, isTTY),
      });
      surroundings.emit("SIGTERM", "SIGTERM");
      await status;
      assert.equal(surroundings.stdout.text, line);
      assert.equal(surroundings.stderr.text, "");
    });
  }

  test("stops once at the first signal and leaves signals to the platform again", async () => {
    let closings = 0;
    const close = (): Promise<void> => Promise.resolve(void closings++);
    const { surroundings, status } = serveFake({ close });
    surroundings.emit("SIGINT", "SIGINT");
    assert.equal(await status, 0);
    assert.equal(closings, 1);
    assert.equal(surroundings.stderr.text, `${STARTED_AT} info  stopping signal=SIGINT\n`);
    assert.deepEqual(surroundings.eventNames(), []);
    assert.deepEqual(surroundings.exits, []);
  });

  test("ends at the first signal while it still looks for its cluster", async () => {
    const surroundings = new FakeSurroundings();
    const settings = { ...defaultSettings(), storage: "nats://127.0.0.1/b" };
    const invocation = { dir: "some-dir", settings, version: "1.2.3", switches: new Set<string>() };
    const start = (): Promise<RunningServer> => new Promise(() => {});
    const status = serve(invocation, surroundings, { start });
    surroundings.emit("SIGTERM", "SIGTERM");
    assert.equal(await status, 0);
    // The client of NATS goes on connecting: it has to be ended.
    surroundings.stderr.flush();
    assert.deepEqual(surroundings.exits, [0]);
    assert.deepEqual(surroundings.eventNames(), []);
  });

  const seconds: readonly [first: StopSignal, second: StopSignal, afterMs: number, env: Surroundings["env"], exits: number[]][] = [
    ["SIGTERM", "SIGTERM", 0, {}, [143]],
    ["SIGTERM", "SIGHUP", 0, {}, [129]],
    ["SIGHUP", "SIGQUIT", 0, {}, [131]],
    ["SIGTERM", "SIGINT", 0, {}, [130]],
    ["SIGINT", "SIGINT", 0, {}, [130]],
    ["SIGINT", "SIGTERM", 0, {}, [143]],
    ["SIGINT", "SIGINT", 199, { npm_command: "start" }, []],
    ["SIGINT", "SIGINT", 200, { npm_command: "start" }, [130]],
    ["SIGTERM", "SIGTERM", 0, { npm_command: "start" }, [143]],
  ];
  for (const [first, second, afterMs, env, exits] of seconds) {
    const under = env["npm_command"] === undefined ? "" : " under npm";
    test(`exits with ${exits[0] ?? "nothing yet"} at ${second} ${afterMs} ms behind ${first}${under}`, () => {
      const { surroundings, clock } = serveFake({ close: never, surroundings: new FakeSurroundings(env) });
      surroundings.emit(first, first);
      assert.deepEqual(surroundings.exits, []);
      clock.ms += afterMs;
      surroundings.emit(second, second);
      assert.deepEqual(surroundings.exits, exits);
    });
  }

  test("exits with 74 at a storage fault, once, when the log line is out", () => {
    const { surroundings, started } = serveFake({});
    started[0]?.onFault?.(new Error("cannot sync\nthe journal"));
    started[0]?.onFault?.(new Error("another"));
    assert.equal(
      surroundings.stderr.text,
      `${STARTED_AT} error exiting: the storage has failed status=74 fault="cannot sync\\nthe journal"\n`,
    );
    assert.deepEqual(surroundings.exits, []);
    surroundings.stderr.flush();
    assert.deepEqual(surroundings.exits, [74]);
  });

  const thrown: readonly [title: string, thrown: unknown, fault: RegExp][] = [
    ["an error", new TypeError("ours"), /^TypeError: ours\n {4}at /],
    ["anything else", null, /^null$/],
  ];
  for (const [title, fault, text] of thrown) {
    test(`exits with 70 and a line in the log, be it silent, when nobody catches ${title}`, () => {
      const { surroundings } = serveFake({ settings: { logLevel: "silent", logFormat: "json" } });
      surroundings.emit("uncaughtException", fault);
      const { fault: told, ...line } = JSON.parse(surroundings.stderr.text);
      assert.deepEqual(line, { time: STARTED_AT, level: "error", msg: "exiting: the program has a fault", status: 70 });
      assert.match(told, text);
      surroundings.stderr.flush();
      assert.deepEqual(surroundings.exits, [70]);
    });
  }

  test("ends with 74 when a storage fault breaks the stop", async () => {
    const { surroundings, started, status } = serveFake({
      close: () => {
        started[0]?.onFault?.(new Error("cannot sync"));
        return Promise.reject(new Error("not closed"));
      },
    });
    surroundings.emit("SIGTERM", "SIGTERM");
    assert.equal(await status, 74);
  });

  test("ends with 74 when a storage fault breaks the start", async () => {
    const start = ({ onFault }: ServerOptions): Promise<never> => {
      onFault?.(new Error("cannot sync"));
      return Promise.reject(new Error("not started"));
    };
    assert.equal(
      await serve({ dir: "a", settings: defaultSettings(), version: "1.2.3", switches: new Set() }, new FakeSurroundings(), { start }),
      74,
    );
  });

  const refusals: readonly [code: StartError["code"], status: number][] = [
    ["invalid-option", 64],
    ["directory-unusable", 1],
    ["port-unusable", 1],
  ];
  for (const [code, status] of refusals) {
    test(`answers ${code} with ${status} and one line`, async () => {
      const surroundings = new FakeSurroundings();
      const start = (): Promise<never> => Promise.reject(new StartError(code, "cannot\nstart"));
      assert.equal(
        await serve({ dir: "a", settings: defaultSettings(), version: "1.2.3", switches: new Set() }, surroundings, { start }),
        status,
      );
      assert.equal(surroundings.stderr.text, "streamdir: cannot\\u000astart\n");
      assert.deepEqual(surroundings.eventNames(), []);
    });
  }

  test("lets a fault of ours through", async () => {
    const start = (): Promise<never> => Promise.reject(new TypeError("ours"));
    await assert.rejects(
      serve({ dir: "a", settings: defaultSettings(), version: "1.2.3", switches: new Set() }, new FakeSurroundings(), { start }),
      TypeError,
    );
  });
});

/** Starts the real command on a free port; resolves when it is ready. */
async function startReady(t: TestContext, dir: string, args: readonly string[] = []): Promise<{ command: TestProcess; url: URL }> {
  const command = startStreamdir(t, ["serve", dir, "--port=0", "--log-format=json", ...args]);
  const { url } = JSON.parse(await command.stdoutLine(/"serving"/));
  return { command, url: new URL(url) };
}

/** A connection with a request in flight: the head was read, the body is still to come. */
async function halfAppend(t: TestContext, url: URL): Promise<Socket> {
  const created = await fetch(new URL("half", url), { method: "PUT", headers: { "Content-Type": "text/plain", Connection: "close" } });
  assert.equal(created.status, 201);
  const socket = connect(Number(url.port), url.hostname);
  t.after(() => socket.destroy());
  socket.on("error", () => {}); // the server ends it, one way or another
  socket.write(
    `POST ${url.pathname}half HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n`,
  );
  const [answer] = await once(socket, "data");
  assert.match(String(answer), /^HTTP\/1\.1 100 /);
  return socket;
}

describe("the command, serving", () => {
  test("refuses an auth file that it can't take with 64 and one line, and leaves the directory alone", async (t) => {
    const [dir, file] = [join(tempDir(), "streams"), new AuthFile()];
    file.write();
    file.spoil();
    for (const [path, line] of [
      [join(dir, "none.json"), /^streamdir: Cannot start: .*none\.json:1: can't be read: ENOENT[^\n]*\n$/],
      [file.path, /^streamdir: Cannot start: .*auth\.json:2: [^\n]*\n$/],
    ] as const) {
      const { status, stdout, stderr } = await startStreamdir(t, [dir, "--port", "0", "--auth", path]).ended;
      assert.deepEqual([status, stdout], [64, ""]);
      assert.match(stderr, line);
    }
    assert.equal(existsSync(dir), false);
  });

  test("reads the auth file again at SIGHUP, as often as it comes, and goes on", async (t) => {
    const file = new AuthFile();
    file.token("first", [{ streams: ["**"], allow: ["create"] }]);
    file.write();
    const command = startStreamdir(t, [tempDir(), "--port", "0", "--log-format", "json", "--auth", file.path]);
    const { url } = JSON.parse(await command.stdoutLine(/"serving"/)) as { url: string }; // its own line
    const token = file.token("second", [{ streams: ["**"], allow: ["create"] }]);
    const create = (): Promise<Response> =>
      fetch(`${url}a`, { method: "PUT", headers: { Authorization: `Bearer ${token}`, "Content-Type": "text/plain" } });
    assert.equal((await create()).status, 401);
    file.write();
    command.kill("SIGHUP");
    await command.stderrLine(/auth file was taken/);
    assert.equal((await create()).status, 201);
    file.spoil();
    command.kill("SIGHUP");
    assert.match(await command.stderrLine(/auth file is not taken/), /auth\.json:2/);
    assert.equal((await create()).status, 200);
    command.kill("SIGTERM");
    assert.equal((await command.ended).status, 0);
  });

  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"] as const) {
    test(`is ready, serves, and ends with 0 at ${signal}`, async (t) => {
      const dir = tempDir();
      const { command, url } = await startReady(t, dir);
      assert.equal(url.pathname, "/v1/stream/");
      const created = await fetch(new URL("a", url), { method: "PUT", headers: { "Content-Type": "text/plain" }, body: "hello" });
      assert.equal(created.status, 201);
      command.kill(signal);
      const { status, stdout } = await command.ended;
      assert.equal(status, 0);
      assert.equal(stdout.split("\n").length, 2, "one line, and nothing behind it");
      assert.equal(JSON.parse(stdout).dir, dir);
    });
  }

  test("serves ./data, by settings of the environment, when no argument is given", async (t) => {
    const cwd = tempDir();
    const env = { STREAMDIR_PORT: "0", STREAMDIR_LOG_FORMAT: "text", STREAMDIR_PREFIX: "/x/", STREAMDIR_READ_ONLY: "1" };
    const command = startStreamdir(t, [], { cwd, env });
    const line = await command.stdoutLine(/serves/);
    const [, dir, url = "", page, attempt] =
      /^streamdir \d+\.\d+\.\d+ serves (\S+) at (http:\/\/127\.0\.0\.1:[1-9]\d*\/x\/) - see: (\S+) - try: (.*)$/.exec(line) ?? [];
    assert.equal(attempt, `curl ${url}`);
    assert.equal(page, `${url}__ds/ui/`);
    assert.equal(dir, join(cwd, "data"));
    assert.equal((await fetch(`${url}a`, { method: "PUT" })).status, 405);
    command.kill("SIGTERM");
    assert.equal((await command.ended).status, 0);
  });

  test("keeps what was acknowledged from one run to the next", async (t) => {
    const dir = tempDir();
    const first = await startReady(t, dir);
    await fetch(new URL("a", first.url), { method: "PUT", headers: { "Content-Type": "text/plain" }, body: "hello" });
    first.command.kill("SIGTERM");
    assert.equal((await first.command.ended).status, 0);
    const second = await startReady(t, dir);
    assert.equal(await (await fetch(new URL("a", second.url))).text(), "hello");
    second.command.kill("SIGTERM");
    assert.equal((await second.command.ended).status, 0);
  });

  test("lets a request in flight finish when it is stopped", async (t) => {
    const { command, url } = await startReady(t, tempDir());
    const socket = await halfAppend(t, url);
    command.kill("SIGTERM");
    await command.stderrLine(/"stopping"/);
    socket.write("hello");
    const [answer] = await once(socket, "data");
    assert.match(String(answer), /^HTTP\/1\.1 204 /);
    assert.equal((await command.ended).status, 0);
  });

  for (const [first, second, status] of [
    ["SIGTERM", "SIGINT", 130],
    ["SIGINT", "SIGTERM", 143],
  ] as const) {
    test(`ends with ${status} at ${second} while ${first} waits for a request in flight`, async (t) => {
      const { command, url } = await startReady(t, tempDir(), ["--shutdown-timeout=1h"]);
      await halfAppend(t, url);
      command.kill(first);
      await command.stderrLine(/"stopping"/);
      command.kill(second);
      assert.equal((await command.ended).status, status);
    });
  }

  test("goes on when the reader of its log has gone", async (t) => {
    const { command, url } = await startReady(t, tempDir(), ["--log-level=debug"]);
    command.leaveStderr();
    for (const name of ["a", "b"]) {
      assert.equal((await fetch(new URL(name, url), { method: "PUT", headers: { "Content-Type": "text/plain" } })).status, 201);
    }
    command.kill("SIGTERM");
    assert.equal((await command.ended).status, 0);
  });
});

describe("the command, unable to serve", () => {
  /** Runs the command to its end, and gives the one line that it is to leave on standard error. */
  async function refusal(t: TestContext, dir: string, args: readonly string[] = ["--port=0"]): Promise<string> {
    const { status, stdout, stderr } = await startStreamdir(t, [dir, "--log-level=silent", ...args]).ended;
    assert.deepEqual({ status, stdout, lines: stderr.split("\n").length - 1 }, { status: 1, stdout: "", lines: 1 }, stderr);
    return stderr;
  }

  test("ends with 1 when the port is taken", async (t) => {
    const other = createSocketServer().listen(0, "127.0.0.1");
    t.after(() => void other.close());
    await once(other, "listening");
    const { port } = other.address() as AddressInfo; // it listens on a port, not on a pipe
    assert.match(await refusal(t, tempDir(), [`--port=${port}`]), new RegExp(`^streamdir: .*${port}`));
  });

  test("ends with 1 when the address is not this machine's", async (t) => {
    assert.match(await refusal(t, tempDir(), ["--port=0", "--host=192.0.2.1"]), /^streamdir: .*192\.0\.2\.1/);
  });

  test("ends with 1 when the directory is a file", async (t) => {
    const file = join(tempDir(), "file");
    writeFileSync(file, "");
    assert.ok((await refusal(t, file)).includes(file));
  });

  test("ends with 1 when the directory would be inside a file", async (t) => {
    const file = join(tempDir(), "file");
    writeFileSync(file, "");
    assert.ok((await refusal(t, join(file, "dir"))).includes(file));
  });

  test("ends with 1 when the directory is on a disk that is not mounted, and makes nothing there", async (t) => {
    const link = join(tempDir(), "link");
    const target = join(tempDir(), "mounted");
    symlinkSync(target, link);
    assert.match(await refusal(t, link), /link can't be used: it can't be made there, or a symbolic link leads to what is not there$/m);
    assert.equal(existsSync(target), false);
  });

  test("ends with 1 when the directory can't be written", { skip: process.getuid?.() === 0 && "root writes everywhere" }, async (t) => {
    const dir = tempDir();
    chmodSync(dir, 0o555);
    assert.ok((await refusal(t, dir)).includes(dir));
  });

  test("ends with 1 when another process serves the directory", async (t) => {
    const dir = tempDir();
    const { command } = await startReady(t, dir);
    assert.ok((await refusal(t, dir)).includes(dir));
    command.kill("SIGTERM");
    assert.equal((await command.ended).status, 0);
  });

  test("leaves a directory to its server, and takes the lock of another machine by force only", async (t) => {
    const dir = tempDir();
    const { command } = await startReady(t, dir);
    const { pid } = JSON.parse(readFileSync(join(dir, "lock"), "utf8"));
    const inUse = `streamdir: the directory is in use by process ${pid} on ${hostname()} (${join(dir, "lock")})`;
    const second = await startStreamdir(t, ["serve", dir, "--port=0"]).ended;
    assert.deepEqual([second.status, second.stderr], [1, `${inUse}: it runs; stop it first\n`]);
    const forced = await startStreamdir(t, ["serve", dir, "--port=0", "--force-unlock"]).ended;
    assert.deepEqual(
      [forced.status, forced.stderr],
      [1, `${inUse}: it runs on this machine, where --force-unlock overrides nobody; stop it first\n`],
    );

    command.kill("SIGKILL");
    await command.ended;
    const { command: third } = await startReady(t, dir);
    third.kill("SIGTERM");
    assert.equal((await third.ended).status, 0);

    writeFileSync(join(dir, "lock"), JSON.stringify({ pid: 1, host: "elsewhere", startedAt: null }));
    const refused = await startStreamdir(t, ["serve", dir, "--port=0"]).ended;
    assert.equal(refused.status, 1);
    assert.match(refused.stderr, /in use by process 1 on elsewhere .*--force-unlock/);
    const { command: fourth } = await startReady(t, dir, ["--force-unlock"]);
    assert.match(await fourth.stderrLine(/taken away/), /"level":"warn".*"pid":1,"host":"elsewhere"/);
    fourth.kill("SIGTERM");
    assert.equal((await fourth.ended).status, 0);
  });
});
