import assert from "node:assert/strict";
import test, { after, describe } from "node:test";
import { runClient, VerbServer } from "../../../helpers/client-verb.js";
import { losingProxy } from "../../../helpers/losing-proxy.js";

const server = new VerbServer({ after });

describe("streamdir bench", () => {
  test("prints a table and a chart, and leaves no stream behind", async () => {
    const text = await server.done(["bench", "--seconds", "1", "--streams", "2", "--size", "100"]);
    const [heading, columns, append, read, chart, ...rest] = text.split("\n");
    assert.match(heading ?? "", /^2 streams, appends of 100 bytes, 1 s, http:/);
    assert.match(columns ?? "", /^ +count +per second +MiB\/s +p50 ms +p90 ms +p99 ms +max ms$/);
    assert.match(append ?? "", /^append +[1-9][\d,]* +[1-9][\d,]* +\d+\.\d( +\d+(\.\d\d)?){4}$/);
    assert.match(read ?? "", /^read +\d/);
    assert.match(chart ?? "", /^appends a second, over time {2}[▁▂▃▄▅▆▇█]{40,60} {2}at most [1-9][\d,]*$/);
    assert.deepEqual(rest, [""]);
    assert.equal(await server.done(["ls"]), "");
  });

  test("leaves no stream behind either where Ctrl-C ends it", async () => {
    let interrupt = (): void => undefined;
    const onStart = (signal: (name: "SIGINT") => void): void => void (interrupt = () => signal("SIGINT"));
    const running = server.run(["bench", "--seconds", "600", "--streams", "3", "--below", "stopped"], { onStart });
    for (let names = ""; names.split("\n").length <= 3;) names = await server.done(["ls", "stopped/"]);
    interrupt();
    const { status, stdout, stderr } = await running;
    assert.deepEqual({ status, stdout, stderr }, { status: 130, stdout: "", stderr: "" });
    assert.equal(await server.done(["ls", "stopped/"]), "");
  });

  test("--json has the same as one line, and what was read is what was appended", async () => {
    const { append, read, ...plan } = JSON.parse(
      await server.done(["bench", "--json", "--seconds", "1", "--streams", "1", "--below", "b"]),
    );
    assert.deepEqual(plan, { streams: 1, size: 1024, seconds: 1, below: "b" });
    assert.equal(append.bytes, append.count * 1024);
    assert.equal(read.bytes, append.bytes);
    assert.ok(append.p50Ms <= append.p99Ms && append.p99Ms <= append.maxMs);
  });

  test("goes on where the answer to the creation of a stream is lost", async (t) => {
    const { origin, pathname } = new URL(await server.url());
    let puts = 0;
    const proxy = await losingProxy(
      t,
      () => origin,
      (method) => method === "PUT" && (puts += 1) === 1,
    );
    const args = ["bench", "--seconds", "1", "--streams", "1", "--size", "10", "--wait", "1m"];
    const { status, stderr } = await runClient(args, { url: `${proxy}${pathname}` });
    assert.equal(status, 0, stderr);
    assert.equal(puts, 2);
    assert.equal(await server.done(["ls"]), "");
  });

  test("shows on a terminal how far it is, and a chart in colour unless NO_COLOR is set", async () => {
    const args = ["bench", "--seconds", "1", "--streams", "1"];
    const shown = await server.run(args, { isTerminal: true, isStdoutTerminal: true });
    assert.match(shown.stderr, /\rappend: \d+\.\d MiB, \d+\.\d MiB\/s, 1 s left/);
    assert.match(shown.stdout, /\u001b\[36m[▁▂▃▄▅▆▇█]+\u001b\[0m/);
    const plain = await server.run(args, { isStdoutTerminal: true, env: { NO_COLOR: "1" } });
    assert.doesNotMatch(plain.stdout, /\u001b/);
  });

  for (const [args, words] of [
    [["--streams", "0"], /--streams must be from 1 to 1000/],
    [["--size", "17MiB"], /--size must be at most 16MiB/],
    [["--seconds", "0"], /--seconds must be from 1 to 3600/],
    [["--below", "../a"], /--below/],
    [["--below", "m\ufffd"], /--below "m\ufffd" is not valid UTF-8, or has U\+FFFD/],
  ] as const)
    test(`${args.join(" ")} ends with 64`, async () => {
      const { status, stderr } = await server.run(["bench", ...args]);
      assert.equal(status, 64);
      assert.match(stderr, words);
    });
});
