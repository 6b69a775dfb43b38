import assert from "node:assert/strict";
import test, { describe } from "node:test";
import type { Heard } from "../../../../src/cli/client/remote/http-client.js";
import { RemoteServer } from "../../../../src/cli/client/remote/remote-server.js";

const SILENCE: Heard = { kind: "silence", why: "ECONNREFUSED" };
/** A server that takes the request and says nothing, for as long as it may. */
const STALL: Heard = { kind: "silence", why: "nothing came", hasStalled: true };
const answer = (status: number, headers: Readonly<Record<string, string>> = {}): Heard => ({
  kind: "answer",
  status,
  header: (name) => headers[name] ?? null,
  body: Buffer.alloc(0),
  tookMs: 0,
});

/** A server that is heard so, and then always as the last time; its pauses pass at once. */
function serverHeard(heard: readonly Heard[], patienceMs: number | null = null, showsCertificate = false) {
  let nowMs = 0;
  let asked = 0;
  const limits: (number | undefined)[] = [];
  const pauses: number[] = [];
  const said: string[] = [];
  const ending = new AbortController();
  const remote = new RemoteServer({
    client: {
      ask(_, answerMs) {
        limits.push(answerMs);
        const next = heard[Math.min(asked++, heard.length - 1)] ?? SILENCE;
        if (next === STALL) nowMs += answerMs ?? 120_000;
        return Promise.resolve(next);
      },
      close: () => {},
    },
    clock: {
      nowMs: () => nowMs,
      after(delayMs, run) {
        pauses.push(delayMs);
        nowMs += delayMs;
        if (pauses.length === 50) ending.abort(130);
        setImmediate(run);
        return { cancel: () => {} };
      },
    },
    random: () => 1,
    name: "it",
    showsCertificate,
    prefix: "/v1/stream/",
    patienceMs,
    say: (line) => said.push(line),
    signal: ending.signal,
  });
  return { remote, pauses, said, asked: () => asked, limits, nowMs: () => nowMs };
}

const GET = { method: "GET", target: "/" } as const;

describe("a request", () => {
  test("is not sent again to a server that has never answered", async () => {
    const { remote, asked } = serverHeard([SILENCE]);
    const ended = await remote.ask(GET);
    assert.ok(ended.kind === "failure");
    assert.deepEqual([ended.status, ended.line, asked()], [69, "it does not answer (ECONNREFUSED); --wait 1m waits for it", 1]);
  });

  test("is sent again for a minute to one that has, at growing intervals", async () => {
    const { remote, pauses } = serverHeard([answer(200), SILENCE]);
    await remote.ask(GET);
    const ended = await remote.ask(GET);
    assert.ok(ended.kind === "failure" && ended.status === 69);
    assert.deepEqual(pauses.slice(0, 7), [100, 200, 400, 800, 1600, 2000, 2000]);
    const waitedMs = pauses.reduce((sum, pause) => sum + pause, 0);
    assert.ok(waitedMs >= 60_000 && waitedMs <= 62_000, String(waitedMs));
  });

  test("is sent again as long as it is told to, also at the start", async () => {
    const { remote, said, pauses } = serverHeard([SILENCE, SILENCE, answer(200)], 1000);
    assert.equal((await remote.ask(GET)).kind, "answer");
    assert.equal(pauses.length, 2);
    assert.deepEqual(said, ["it does not answer (ECONNREFUSED); trying again", "it answers again"]);
    assert.equal(remote.repeats, 2);
  });

  test("to a server that takes it and says nothing ends with the patience that was given", async () => {
    const { remote, limits, nowMs } = serverHeard([STALL], 2000);
    const ended = await remote.ask(GET);
    assert.ok(ended.kind === "failure" && ended.status === 69);
    assert.deepEqual([limits, nowMs()], [[2000], 2000]);
  });

  test("has what is left of the patience to be answered in, and a second at least", async () => {
    const { remote, limits, nowMs } = serverHeard([SILENCE, SILENCE, STALL], 2000);
    await remote.ask(GET);
    assert.deepEqual(limits, [2000, 1900, 1700]);
    assert.equal(nowMs(), 2000);
    const last = serverHeard([SILENCE, SILENCE, SILENCE, SILENCE, STALL], 2000);
    await last.remote.ask(GET);
    assert.deepEqual(last.limits, [2000, 1900, 1700, 1300, 1000]);
    assert.equal(last.nowMs(), 2500);
  });

  test("is waited for as ever where no patience is given, or less than a second, or it waits for what is appended", async () => {
    for (const [target, patienceMs] of [
      ["/", null],
      ["/", 999],
      ["/a?live=long-poll&offset=1", 2000],
    ] as const) {
      const { remote, limits } = serverHeard([answer(200)], patienceMs);
      await remote.ask({ method: "GET", target });
      assert.deepEqual(limits, [undefined]);
    }
    const { remote, limits } = serverHeard([answer(200)], 2000);
    await remote.ask(GET, { forEver: true });
    await remote.ask(GET, { forEver: true });
    assert.deepEqual(limits, [2000, undefined]);
  });

  test("for a stream that is not there is sent again where that is asked for, no longer than the patience", async () => {
    const made = serverHeard([answer(404), SILENCE, answer(404), answer(200)], 60_000);
    const found = await made.remote.ask(GET, { awaitsStream: true });
    assert.deepEqual([found.kind, made.asked(), made.said.at(-1), made.remote.repeats], ["answer", 4, "it has it now", 1]);
    const missing = serverHeard([answer(404)], 3000);
    const ended = await missing.remote.ask(GET, { awaitsStream: true });
    assert.ok(ended.kind === "failure" && ended.status === 66);
    assert.equal(missing.nowMs(), 3000);
    const other = serverHeard([answer(404)], 3000);
    assert.deepEqual([(await other.remote.ask(GET)).kind, other.asked()], ["answer", 1]);
  });

  test("is sent for ever where that is asked for, until the verb is to end", async () => {
    const { remote, pauses } = serverHeard([answer(204), SILENCE]);
    await remote.ask(GET);
    const ended = await remote.ask(GET, { forEver: true });
    assert.ok(ended.kind === "failure");
    assert.deepEqual([ended.status, ended.line, pauses.length], [130, "", 50]);
  });

  test("waits as long as the server asks, but not for ever", async () => {
    const { remote, pauses } = serverHeard([answer(503, { "retry-after": "3" }), answer(429, { "retry-after": "999" }), answer(200)]);
    assert.equal((await remote.ask(GET)).kind, "answer");
    assert.deepEqual(pauses, [3000, 30_000]);
  });

  test("that was refused for a while counts as repeated only where it may have been done", async () => {
    const { remote } = serverHeard([408, 429, 503, 429, 502, 200].map((status) => answer(status)));
    assert.equal((await remote.ask(GET)).kind, "answer");
    assert.equal(remote.repeats, 2);
  });

  test("waits no longer than its patience, and is sent once more then", async () => {
    const { remote, pauses, asked } = serverHeard([answer(507, { "retry-after": "30" })], 1000);
    const ended = await remote.ask(GET);
    assert.ok(ended.kind === "failure" && ended.status === 75);
    assert.deepEqual([pauses, asked()], [[1000], 2]);
  });

  for (const [why, hint] of [
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "NODE_EXTRA_CA_CERTS=FILE names a certificate to trust"],
    ["EPROTO", "it may speak no TLS: http://"],
  ] as const)
    test(`that ends with ${why} says what would help`, async () => {
      const ended = await serverHeard([{ kind: "silence", why }]).remote.ask(GET);
      assert.ok(ended.kind === "failure");
      assert.equal(ended.line, `it does not answer (${why}; ${hint})`);
    });

  test("that is broken off before any answer says that the certificate may be why, where one is shown", async () => {
    const reset = { kind: "silence", why: "ECONNRESET" } as const;
    const lineOf = async (...args: Parameters<typeof serverHeard>): Promise<string> => {
      const { remote } = serverHeard(...args);
      for (;;) {
        const ended = await remote.ask(GET);
        if (ended.kind === "failure") return ended.line;
      }
    };
    assert.equal(await lineOf([reset], null, true), "it does not answer (ECONNRESET); it may not take this certificate");
    assert.equal(await lineOf([reset]), "it does not answer (ECONNRESET)");
    assert.equal(await lineOf([answer(200), reset], 0, true), "it does not answer (ECONNRESET)");
  });

  test("that is told to come later until the patience is over fails with 75", async () => {
    const { remote } = serverHeard([answer(503)], 500);
    const ended = await remote.ask(GET);
    assert.ok(ended.kind === "failure");
    assert.deepEqual([ended.status, ended.line], [75, "GET at it: The server answers with 503, and not why: see its /health"]);
  });

  test("with an answer beyond all bounds fails", async () => {
    const ended = await serverHeard([{ kind: "too-long" }]).remote.ask(GET);
    assert.ok(ended.kind === "failure" && ended.status === 65);
  });
});

test("a target is the name percent-encoded, segment by segment", () => {
  const { remote } = serverHeard([SILENCE]);
  assert.equal(remote.target("a b/ü?"), "/v1/stream/a%20b/%C3%BC%3F");
  assert.equal(remote.target("a", { offset: "-1", match: "a/**" }), "/v1/stream/a?match=a%2F**&offset=-1");
  assert.equal(remote.target("a", { offset: "1", live: "long-poll", cursor: "2" }), "/v1/stream/a?cursor=2&live=long-poll&offset=1");
  assert.equal(remote.pathOf("a/b"), "/v1/stream/a/b");
});
