import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { startProgram, startStreamdir } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";

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
});
