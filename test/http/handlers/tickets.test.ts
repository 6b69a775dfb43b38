import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { OPERATIONS, type Operation } from "../../../src/auth/rights/operation.js";
import { AuthFile } from "../../helpers/auth-file.js";
import type { Answer } from "../../helpers/raw-connection.js";
import { REQUEST_PATHS, takePath } from "../../helpers/request-paths.js";
import { follow, nextPair } from "../../helpers/sse-client.js";
import { requestBytes, startServer, type TestServer } from "../../helpers/test-server.js";

const TEXT = { "Content-Type": "text/plain" };
const START_MS = Date.UTC(2026, 0, 1);
const START_SECONDS = START_MS / 1000;
const DAY_SECONDS = 24 * 3600;
const TICKETS = "/v1/stream/__ds/tickets";

async function start(context: TestContext, file = new AuthFile()): Promise<{ server: TestServer; owner: Record<string, string> }> {
  const owner = { Authorization: `Bearer ${file.token("owner", [{ streams: ["**"], allow: OPERATIONS }])}` };
  file.write();
  const server = await startServer(context, { auth: file.path, sseLifetimeMs: DAY_SECONDS * 1000 });
  for (const name of ["a", "b", "caf%C3%A9/x"])
    assert.equal((await server.send("PUT", name, { headers: { ...owner, ...TEXT }, body: "hello" })).status, 201);
  return { server, owner };
}

function ask(server: TestServer, headers: Record<string, string>, body: unknown): Promise<Answer> {
  return server.send("POST", TICKETS, { headers, body: typeof body === "string" ? body : JSON.stringify(body) });
}

async function issued(
  server: TestServer,
  headers: Record<string, string>,
  body: object,
): Promise<{ ticket: string; url: string; expiresAt: string }> {
  const answer = await ask(server, headers, body);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.headers["cache-control"], "no-store");
  return JSON.parse(answer.text) as { ticket: string; url: string; expiresAt: string }; // as docs/api.md has it
}

describe("one who asks for a ticket", () => {
  test("is looked at again once the request has come: it may have taken long", async (context) => {
    const file = new AuthFile();
    file.grantJwts([{ streams: ["**"], allow: ["read"] }]);
    const { server } = await start(context, file);
    const headers = { Authorization: `Bearer ${file.jwt(START_MS, { sub: "alice" })}` };
    const body = JSON.stringify({ stream: "a" });
    assert.equal((await ask(server, headers, body)).status, 200);
    const slow = await server.connect();
    const whole = requestBytes("POST", TICKETS, { headers, body });
    slow.write(whole.subarray(0, -5));
    // An answer on another connection: the head has come by then.
    await ask(server, headers, body);
    file.revoke({ sub: "alice" });
    file.write();
    assert.equal(await server.server.reload(), true);
    slow.write(whole.subarray(-5));
    const answer = await slow.answer();
    assert.deepEqual([answer.status, (JSON.parse(answer.text) as { code: string }).code], [401, "invalid-token"]);
  });

  test("has no more for it: what one asker's tickets send counts together, as do their live readers", async (context) => {
    const file = new AuthFile();
    file.grantJwts([{ streams: ["**"], allow: ["read"] }]);
    const owner = { Authorization: `Bearer ${file.token("owner", [{ streams: ["**"], allow: OPERATIONS }])}` };
    file.write();
    const server = await startServer(context, { auth: file.path, rateLimit: "6", maxLiveReadersPerClient: 2 });
    await server.send("PUT", "a", { headers: { ...owner, ...TEXT }, body: "hello" });
    const headers = { Authorization: `Bearer ${file.jwt(server.clock.nowMs(), { sub: "alice" })}` };
    const tickets: string[] = [];
    for (let expiresIn = 100; expiresIn < 106; expiresIn += 1)
      tickets.push((await issued(server, headers, { stream: "a", expiresIn })).ticket);
    for (const [from, mode] of ["127.0.0.1", "127.0.0.2"].flatMap(
      (each) =>
        [
          [each, "offset=-1"],
          [each, "offset=-1&live=sse"],
        ] as const,
    )) {
      server.clock.advance(10_000);
      const limit = mode === "offset=-1" ? 6 : 2;
      const statuses: number[] = [];
      for (const ticket of [...tickets, ...tickets].slice(0, limit + 1)) {
        const connection = await server.begin("GET", `a?${mode}&ticket=${ticket}`, { from });
        statuses.push(Number((await connection.until("\r\n\r\n")).slice(9, 12)));
      }
      assert.deepEqual(statuses, [...Array<number>(limit).fill(200), limit === 6 ? 429 : 503], `${from} ${mode}`);
    }
  });
});

describe("a ticket that a backend signed", () => {
  for (const path of REQUEST_PATHS)
    test(`${path}: is for one stream, to read it`, async (context) => {
      takePath(context, path);
      const file = new AuthFile();
      const { server } = await start(context, file);
      const ticket = file.ticket("a", START_SECONDS + 60);
      const answer = await server.send("GET", `a?offset=-1&ticket=${ticket}`);
      assert.deepEqual([answer.status, answer.text], [200, "hello"]);
      assert.match(answer.headers["cache-control"] ?? "", /^private/);
      assert.equal((await server.send("HEAD", `a?ticket=${ticket}`)).status, 200);
      assert.equal((await server.send("GET", `%61?offset=-1&ticket=${ticket}`)).status, 200, "another spelling of the name");
      assert.equal((await server.send("GET", `b?offset=-1&ticket=${ticket}`)).status, 401);
      assert.equal((await server.send("POST", `a?ticket=${ticket}`, { headers: TEXT, body: "x" })).status, 403);
      assert.equal((await server.send("POST", `a?ticket=${ticket}`, { headers: { "Stream-Closed": "true" } })).status, 403);
      assert.equal((await server.send("DELETE", `a?ticket=${ticket}`)).status, 403);
      assert.equal((await server.send("PUT", `a?ticket=${ticket}`, { headers: TEXT })).status, 403);
      server.clock.advance(60_001);
      assert.equal((await server.send("GET", `a?offset=-1&ticket=${ticket}`)).status, 401);
    });

  test("goes on after every token was revoked, and reads what is made anew under the name", async (context) => {
    const file = new AuthFile();
    const { server, owner } = await start(context, file);
    const ticket = file.ticket("a", START_SECONDS + 60);
    const asked = await issued(server, owner, { stream: "a" });
    assert.equal((await server.send("DELETE", "a", { headers: owner })).status, 204);
    assert.equal((await server.send("PUT", "a", { headers: { ...owner, ...TEXT }, body: "anew" })).status, 201);
    file.revoke({ id: "owner" });
    file.write();
    assert.equal(await server.server.reload(), true);
    const answer = await server.send("GET", `a?offset=-1&ticket=${ticket}`);
    assert.deepEqual([answer.status, answer.text], [200, "anew"]);
    assert.equal((await server.send("GET", `a?offset=-1&ticket=${asked.ticket}`)).status, 401, "one that a token asked for");
  });

  test("may close where it says so, and nothing else", async (context) => {
    const file = new AuthFile();
    const { server } = await start(context, file);
    const ticket = file.ticket("a", START_SECONDS + 60, "rc");
    const headers = { ...TEXT, "Stream-Closed": "true" };
    assert.equal((await server.send("POST", `a?ticket=${ticket}`, { headers, body: "x" })).status, 403);
    assert.equal((await server.send("POST", `a?ticket=${ticket}`, { headers: { "Stream-Closed": "true" } })).status, 204);
  });

  test("is not taken with one letter changed, in any place", async (context) => {
    const file = new AuthFile();
    const { server } = await start(context, file);
    const ticket = file.ticket("a", START_SECONDS + 60);
    for (let at = 0; at < ticket.length; at += 1) {
      const letter = ticket[at] === "A" ? "B" : "A";
      const answer = await server.send("GET", `a?offset=-1&ticket=${ticket.slice(0, at)}${letter}${ticket.slice(at + 1)}`);
      assert.equal(answer.status, 401, `letter ${at}`);
    }
    for (const wrong of [
      ticket.slice(0, -1),
      `${ticket}A`,
      `${ticket}.`,
      ` ${ticket}`,
      ticket.replace(".r.", ".rc."),
      ticket.replace("v1", "v2"),
    ])
      assert.equal((await server.send("GET", `a?offset=-1&ticket=${encodeURIComponent(wrong)}`)).status, 401, wrong);
  });

  test("may not last longer than seven days", async (context) => {
    const file = new AuthFile();
    const { server } = await start(context, file);
    assert.equal((await server.send("GET", `a?ticket=${file.ticket("a", START_SECONDS + 7 * DAY_SECONDS)}`)).status, 200);
    assert.equal((await server.send("GET", `a?ticket=${file.ticket("a", START_SECONDS + 8 * DAY_SECONDS)}`)).status, 401);
  });

  test("survives the reconnects of an EventSource, and ends the last connection when it is over", async (context) => {
    const file = new AuthFile();
    const { server, owner } = await start(context, file);
    const target = `a?live=sse&offset=-1&ticket=${file.ticket("a", START_SECONDS + 60)}`;
    const first = await follow(server, target);
    const { id } = await nextPair(first);
    await first.close();
    const second = await follow(server, target, { "Last-Event-ID": id });
    await nextPair(second);
    server.clock.advance(60_000);
    await server.send("POST", "a", { headers: { ...owner, ...TEXT }, body: "late" });
    assert.doesNotMatch(await second.rest(), /late/);
    const third = await server.send("GET", target, { headers: { "Last-Event-ID": id } });
    assert.equal(third.status, 401);
  });
});

describe("a ticket that the server issued", () => {
  test("reads its stream, by the URL that comes with it", async (context) => {
    const { server, owner } = await start(context);
    const { url, expiresAt } = await issued(server, owner, { stream: "café/x" });
    const { pathname, search } = new URL(url);
    assert.equal((await server.send("GET", `${pathname}${search}`)).text, "hello");
    assert.equal(Date.parse(expiresAt), START_MS + 3600_000);
  });

  test("never lasts longer than who asked for it", async (context) => {
    const file = new AuthFile();
    const short = file.token("short", [{ streams: ["a"], allow: ["read"] }], new Date(START_MS + 90_000).toISOString());
    const { server } = await start(context, file);
    const { expiresAt } = await issued(server, { Authorization: `Bearer ${short}` }, { stream: "a", expiresIn: 600 });
    assert.equal(Date.parse(expiresAt), START_MS + 90_000);
  });

  for (const [title, change] of [
    ["revoked", (file: AuthFile) => file.revoke({ id: "asker" })],
    ["taken out of the file", (file: AuthFile) => file.removeToken("asker")],
  ] as const)
    test(`ends when the token that asked for it is ${title}`, async (context) => {
      const file = new AuthFile();
      const asker = file.token("asker", [{ streams: ["a"], allow: ["read"] }]);
      const { server } = await start(context, file);
      const { ticket } = await issued(server, { Authorization: `Bearer ${asker}` }, { stream: "a" });
      const reader = await follow(server, `a?live=sse&offset=-1&ticket=${ticket}`);
      await nextPair(reader);
      change(file);
      file.write();
      assert.equal(await server.server.reload(), true);
      await reader.rest();
      assert.equal((await server.send("GET", `a?offset=-1&ticket=${ticket}`)).status, 401);
    });

  const refusals: readonly [title: string, allow: readonly Operation[] | null, body: unknown, status: number, code: string][] = [
    ["for another stream", ["read"], { stream: "b" }, 403, "not-allowed"],
    ["for a stream that is not there", ["read"], { stream: "missing" }, 403, "not-allowed"],
    ["to close, without the right", ["read"], { stream: "a", close: true }, 403, "not-allowed"],
    ["without the right to read", ["append", "close"], { stream: "a" }, 403, "not-allowed"],
    ["without a credential", null, { stream: "a" }, 401, "credential-missing"],
    ["for no stream", ["read"], {}, 400, "invalid-ticket-request"],
    ["for a wrong name", ["read"], { stream: "a//b" }, 400, "invalid-ticket-request"],
    ["for half a character", ["read"], '{"stream":"\\ud800"}', 400, "invalid-ticket-request"],
    ["for a number", ["read"], { stream: 7 }, 400, "invalid-ticket-request"],
    ["with a member too many", ["read"], { stream: "a", forever: true }, 400, "invalid-ticket-request"],
    ["with a wrong close", ["read"], { stream: "a", close: "yes" }, 400, "invalid-ticket-request"],
    ["for no time", ["read"], { stream: "a", expiresIn: 0 }, 400, "invalid-ticket-request"],
    ["for too long", ["read"], { stream: "a", expiresIn: 7 * DAY_SECONDS + 1 }, 400, "invalid-ticket-request"],
    ["for part of a second", ["read"], { stream: "a", expiresIn: 1.5 }, 400, "invalid-ticket-request"],
    ["with no JSON", ["read"], "stream=a", 400, "invalid-ticket-request"],
    ["with an array", ["read"], "[]", 400, "invalid-ticket-request"],
    ["with too much", ["read"], `{"stream":"${"a".repeat(9000)}"}`, 400, "invalid-ticket-request"],
  ];
  for (const path of REQUEST_PATHS)
    test(`${path}: is refused where it must be`, async (context) => {
      takePath(context, path);
      const file = new AuthFile();
      const tokens = new Map<readonly Operation[], string>();
      for (const [title, allow] of refusals)
        if (allow !== null) tokens.set(allow, file.token(title.replaceAll(/\W/g, "-"), [{ streams: ["a"], allow }]));
      const { server } = await start(context, file);
      for (const [title, allow, body, status, code] of refusals) {
        const token = allow === null ? undefined : tokens.get(allow);
        const answer = await ask(server, token === undefined ? {} : { Authorization: `Bearer ${token}` }, body);
        assert.equal(answer.status, status, `${title}: ${answer.text}`);
        assert.ok(answer.text.includes(`"code":"${code}"`), `${title}: ${answer.text}`);
      }
    });

  for (const path of REQUEST_PATHS)
    test(`${path}: is asked for with a short body: the rest of a longer one is not waited for`, async (context) => {
      takePath(context, path);
      const file = new AuthFile();
      const token = file.token("asker", [{ streams: ["a"], allow: ["read"] }]);
      const { server } = await start(context, file);
      const head = `POST ${TICKETS} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\n`;
      for (const rest of ["Content-Length: 8193\r\n\r\n", `Transfer-Encoding: chunked\r\n\r\n2001\r\n${" ".repeat(8193)}`]) {
        const slow = await server.connect();
        slow.write(head + rest);
        const answer = await slow.answer();
        assert.deepEqual([answer.status, answer.text.includes('"code":"invalid-ticket-request"')], [400, true]);
      }
    });

  test("is no credential for another one", async (context) => {
    const file = new AuthFile();
    const { server } = await start(context, file);
    const ticket = file.ticket("a", START_SECONDS + 60);
    assert.equal((await server.send("POST", `${TICKETS}?ticket=${ticket}`, { body: '{"stream":"a"}' })).status, 401);
  });

  test("needs a key in the file", async (context) => {
    const file = new AuthFile();
    file.withoutTicketKey();
    const { server, owner } = await start(context, file);
    assert.equal((await ask(server, owner, { stream: "a" })).status, 409);
  });

  test("is asked for by POST, and only where there is an auth file", async (context) => {
    const { server } = await start(context);
    const answer = await server.send("GET", TICKETS);
    assert.deepEqual([answer.status, answer.headers["allow"]], [405, "POST, OPTIONS"]);
    assert.equal((await server.send("OPTIONS", TICKETS)).status, 204);
    const open = await startServer(context);
    assert.equal((await ask(open, {}, { stream: "a" })).status, 400, "the name is reserved");
  });
});
