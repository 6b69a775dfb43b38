import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { AuthFile } from "../../helpers/auth-file.js";
import { losingProxy } from "../../helpers/losing-proxy.js";
import { unless } from "../../helpers/machine.js";
import { servePage } from "../../helpers/page-examples.js";
import { Gateway, passingProxy } from "../../helpers/passing-proxy.js";
import { startProgram, type TestProcess, type TestScope } from "../../helpers/process.js";
import { tempDir } from "../../helpers/temp-dir.js";

const PROGRAM = fileURLToPath(new URL("../../../docs/recipes/agent-history.py", import.meta.url));
const lacksPython = unless(["python3", "--version"], "run Python (the package python3)");
const TIMEOUT_MS = 300_000;

/** Runs the program; what stands in `input` is its standard input, to the end. */
function run(scope: TestScope, streams: string, args: readonly string[], input?: string, more = {}): TestProcess {
  const env = { STREAMS: streams, PYTHONDONTWRITEBYTECODE: "1", no_proxy: "127.0.0.1", ...more };
  const process = startProgram(scope, "python3", [PROGRAM, ...args], { env, hasInput: input !== undefined });
  if (input !== undefined) process.stdin?.end(input);
  return process;
}

function lines(from: number, to: number): string {
  return Array.from({ length: to - from }, (_, at) => `{"step":${from + at}}\n`).join("");
}

async function stored(streams: string): Promise<unknown> {
  return (await fetch(`${streams}agents/7`)).json();
}

function steps(count: number): unknown {
  return Array.from({ length: count }, (_, step) => ({ step }));
}

describe("the recipe of an agent's history", { skip: lacksPython, timeout: TIMEOUT_MS }, () => {
  test("several writers append, a reader sees each message when it comes, and the end", async (t) => {
    const streams = await servePage(t);
    const dir = tempDir();
    const first = run(t, streams, ["append", "agents/7", join(dir, "a")], '{"role":"user","text":"Grüße"}\n[1,[2]]\n');
    assert.equal((await first.ended).stderr, "");
    const reader = run(t, streams, ["follow", "agents/7"]);
    await reader.stdoutLine(/^\[1, \[2\]\]$/);
    await run(t, streams, ["append", "agents/7", join(dir, "b")], '"from another"\n').ended;
    await reader.stdoutLine(/^"from another"$/);
    assert.equal((await run(t, streams, ["close", "agents/7"]).ended).status, 0);
    const { status, stdout, stderr } = await reader.ended;
    assert.deepEqual([status, stderr], [0, ""]);
    assert.equal(stdout, '{"role": "user", "text": "Grüße"}\n[1, [2]]\n"from another"\n');
    const late = await run(t, streams, ["append", "agents/7", join(dir, "b")], '"late"\n').ended;
    assert.match(late.stderr, /HTTPError: HTTP Error 409/);
  });

  test("each message is stored once where answers get lost", async (t) => {
    const streams = await servePage(t);
    let asked = 0;
    const origin = await losingProxy(
      t,
      () => streams,
      (method) => method === "POST" && (asked += 1) % 2 === 1,
    );
    const { status } = await run(t, `${origin}/v1/stream/`, ["append", "agents/7", join(tempDir(), "s")], lines(0, 4)).ended;
    assert.equal(status, 0);
    assert.equal(asked, 8);
    assert.deepEqual(await stored(streams), steps(4));
  });

  test("a writer that was killed goes on where it was, before and after its message was stored", async (t) => {
    const streams = await servePage(t);
    for (const [at, isStored] of [false, true].entries()) {
      const state = join(tempDir(), "state");
      writeFileSync(state, JSON.stringify({ producer: `p${at}`, seq: -1, message: null }));
      let came = (): void => undefined;
      const posted = new Promise<void>((resolve) => (came = resolve));
      const isAppend = (method: string | undefined): boolean => {
        if (method === "POST") came();
        return method === "POST";
      };
      // No append is answered; in one case it is stored all the same.
      const origin = isStored
        ? await losingProxy(t, () => streams, isAppend)
        : await passingProxy(t, streams, ({ method }) => isAppend(method));
      const killed = run(t, `${origin}/v1/stream/`, ["append", "agents/7", state], lines(at * 2, at * 2 + 1));
      await posted;
      killed.kill("SIGKILL");
      await killed.ended;
      assert.equal((JSON.parse(readFileSync(state, "utf8")) as { seq: number }).seq, 0);
      assert.equal((await run(t, streams, ["append", "agents/7", state], lines(at * 2 + 1, at * 2 + 2)).ended).status, 0);
      assert.ok(!existsSync(`${state}.new`));
    }
    assert.deepEqual(await stored(streams), steps(4));
  });

  test("a reader goes on where it was when the server is away for a while", async (t) => {
    const streams = await servePage(t);
    const dir = tempDir();
    const gateway = await Gateway.start(t, streams);
    await run(t, streams, ["append", "agents/7", join(dir, "s")], lines(0, 2)).ended;
    const reader = run(t, gateway.streams, ["follow", "agents/7"]);
    await reader.stdoutLine(/1/);
    await gateway.loseServer();
    await run(t, streams, ["append", "agents/7", join(dir, "s")], lines(2, 3)).ended;
    gateway.findServer();
    await reader.stdoutLine(/2/);
    await run(t, streams, ["close", "agents/7"]).ended;
    assert.equal((await reader.ended).stdout, '{"step": 0}\n{"step": 1}\n{"step": 2}\n');
  });

  test("shows its token", async (t) => {
    const auth = new AuthFile();
    const token = auth.token("agent", [{ streams: ["agents/**"], allow: ["create", "append", "read", "close"] }]);
    auth.write();
    const streams = await servePage(t, { auth: auth.path });
    const state = join(tempDir(), "state");
    assert.match((await run(t, streams, ["append", "agents/7", state], lines(0, 1)).ended).stderr, /HTTPError: HTTP Error 401/);
    const env = { STREAMDIR_TOKEN: token };
    assert.equal((await run(t, streams, ["append", "agents/7", state], lines(0, 1), env).ended).status, 0);
    assert.equal((await run(t, streams, ["close", "agents/7"], "", env).ended).status, 0);
    assert.equal((await run(t, streams, ["follow", "agents/7"], "", env).ended).stdout, '{"step": 0}\n');
  });

  test("says how it is used", async (t) => {
    for (const args of [[], ["read", "a"], ["append", "a"], ["follow"]]) {
      const { status, stderr } = await run(t, "http://127.0.0.1:1/", args).ended;
      assert.equal(status, 1);
      assert.match(stderr, /agent-history\.py append NAME STATE/);
    }
  });
});
