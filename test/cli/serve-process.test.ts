import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, writeFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { dirname, join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { AuthFile } from "../helpers/auth-file.js";
import { startProgram, startStreamdir } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";

const { O_RDWR, O_NONBLOCK } = constants;

/** Starts a process whose `output` goes to a pipe that somebody holds open, and never reads. */
function intoFullPipe(t: TestContext, output: 1 | 2): readonly string[] {
  const pipe = join(tempDir(), "pipe");
  execFileSync("mkfifo", [pipe]);
  const held = openSync(pipe, O_RDWR | O_NONBLOCK);
  t.after(() => closeSync(held));
  return ["sh", "-c", `exec "$@" ${output}> '${pipe}'`, "sh"];
}

describe("the process of a server", () => {
  const prefixes: readonly [prefix: string, args: readonly string[], answer: RegExp][] = [
    ["/v1/stream/", [], /^HTTP\/1\.1 20[01] /],
    ["/it's($HOME);&*!/", [], /^HTTP\/1\.1 20[01] /],
    ["/v1/stream/", ["--read-only"], /streamdir/],
    ["/it's($HOME);&*!/", ["--read-only"], /streamdir/],
  ];
  for (const [prefix, args, answer] of prefixes) {
    test(`prints a command that works, and works again: ${prefix} ${args.join(" ")}`, async (t) => {
      const command = startStreamdir(t, ["serve", tempDir(), "--port=0", "--log-format=json", `--prefix=${prefix}`, ...args]);
      const ready = JSON.parse(await command.stdoutLine(/"serving"/));
      for (const time of ["first", "second"]) {
        const { status, stdout } = await startProgram(t, "sh", ["-c", ready.try]).ended;
        assert.equal(status, 0, time);
        assert.match(stdout, answer, time);
      }
      if (args.length === 0) assert.equal(await (await fetch(`${ready.url}hello`)).text(), "hello");
      command.kill("SIGTERM");
      assert.equal((await command.ended).status, 0);
    });
  }

  const zoned = Object.entries(networkInterfaces()).flatMap(([name, addresses = []]) =>
    addresses.filter(({ address }) => address.startsWith("fe80:")).map(({ address }) => `${address}%${name}`),
  )[0];
  test("serves on an address with a zone", { skip: zoned === undefined && "no link-local address" }, async (t) => {
    const command = startStreamdir(t, ["serve", tempDir(), `--listen=[${zoned}]:0`, "--insecure", "--log-format=json"]);
    const ready = JSON.parse(await command.stdoutLine(/"serving"/));
    assert.equal(ready.page, undefined);
    const { stdout } = await startProgram(t, "sh", ["-c", ready.try]).ended;
    assert.match(stdout, /^HTTP\/1\.1 201 /);
    const read = await startStreamdir(t, ["cat", "hello"], { env: { STREAMDIR_URL: ready.url } }).ended;
    assert.deepEqual([read.status, read.stdout], [0, "hello"]);
    command.kill("SIGTERM");
    assert.equal((await command.ended).status, 0);
  });

  test("keeps its own line from an access log on standard output", async (t) => {
    const command = startStreamdir(t, ["serve", tempDir(), "--port=0", "--log-format=json", "--access-log"]);
    const { url } = JSON.parse(await command.stderrLine(/"serving"/));
    assert.equal((await fetch(`${url}none`)).status, 404);
    await command.stdoutLine(/"none"/);
    command.kill("SIGTERM");
    const messages = (await command.ended).stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).msg);
    assert.deepEqual(messages, ["request"]);
  });

  test(
    "lives on at a signal that means nothing to it, and says so",
    { skip: process.platform !== "linux" && "other signals" },
    async (t) => {
      const command = startStreamdir(t, ["serve", tempDir(), "--port=0", "--log-format=json"]);
      const { url } = JSON.parse(await command.stdoutLine(/"serving"/));
      for (const signal of ["SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGXCPU", "SIGIO", "SIGPWR", "SIGSTKFLT"] as const) {
        command.kill(signal);
        const line = JSON.parse(await command.stderrLine(new RegExp(`"${signal}"`)));
        assert.deepEqual([line.level, line.msg], ["warn", "a signal means nothing here"]);
      }
      assert.equal((await fetch(new URL("/health", url))).status, 200);
      command.kill("SIGHUP");
      assert.equal((await command.ended).status, 0);
    },
  );

  test("ends with a line that has a time when a fault of the program is nobody's", async (t) => {
    const module = join(tempDir(), "fault.mjs");
    writeFileSync(module, 'process.on("SIGUSR2", () => { throw new TypeError("planted"); });');
    const command = startStreamdir(t, ["serve", tempDir(), "--port=0", "--log-format=json"], {
      env: { NODE_OPTIONS: `--import=${module}` },
    });
    await command.stdoutLine(/"serving"/);
    command.kill("SIGUSR2");
    const { status, stderr } = await command.ended;
    const lines = stderr
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    assert.equal(status, 70);
    assert.ok(lines.every(({ time, level }) => !Number.isNaN(Date.parse(time)) && typeof level === "string"));
    assert.match(lines.at(-1).fault, /^TypeError: planted/);
  });

  test("says at SIGHUP that systemd's copy of the auth file is another's only after a restart", async (t) => {
    const file = new AuthFile();
    file.write();
    const command = startStreamdir(t, [tempDir(), "--port", "0", "--log-format", "json", "--auth", file.path], {
      env: { CREDENTIALS_DIRECTORY: dirname(file.path) },
    });
    await command.stdoutLine(/"serving"/);
    command.kill("SIGHUP");
    assert.equal(JSON.parse(await command.stderrLine(/systemd copied these files/)).level, "warn");
    command.kill("SIGTERM");
    assert.equal((await command.ended).status, 0);
  });

  test("ends though nobody reads its access log", async (t) => {
    const args = ["serve", tempDir(), "--port=0", "--log-format=json", "--access-log"];
    const command = startStreamdir(t, args, { under: intoFullPipe(t, 1) });
    const { url } = JSON.parse(await command.stderrLine(/"serving"/));
    for (let count = 0; count < 150; count += 1) assert.equal((await fetch(`${url}${"x".repeat(1000)}`)).status, 404);
    command.kill("SIGTERM");
    assert.equal((await command.ended).status, 0);
  });

  for (const [title, signal, ended] of [
    ["at a signal", "SIGTERM", 0],
    ["at a fault", "SIGUSR2", 70],
  ] as const)
    test(`ends though nobody reads its log: ${title}`, async (t) => {
      const module = join(tempDir(), "fault.mjs");
      const plant = 'process.on("SIGUSR2", () => { throw new TypeError("planted"); });';
      writeFileSync(module, `process.stderr.write("x".repeat(1024 * 1024)); ${plant}`);
      const command = startStreamdir(t, ["serve", tempDir(), "--port=0", "--log-format=json"], {
        under: intoFullPipe(t, 2),
        env: { NODE_OPTIONS: `--import=${module}` },
      });
      await command.stdoutLine(/"serving"/);
      command.kill(signal);
      assert.equal((await command.ended).status, ended);
    });
});
