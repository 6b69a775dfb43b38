import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { OPERATIONS, type Operation } from "../../../src/auth/rights/operation.js";
import { AuthFile } from "../../helpers/auth-file.js";
import type { Answer } from "../../helpers/raw-connection.js";
import { REQUEST_PATHS, takePath, type RequestPath } from "../../helpers/request-paths.js";
import { startServer, type RequestParts, type TestServer } from "../../helpers/test-server.js";

/** A request, everything that it needs, and what it is answered where it may and the stream is open, with text in it. */
interface Row {
  readonly title: string;
  readonly method: string;
  readonly query?: string;
  readonly parts?: RequestParts;
  readonly needs: readonly Operation[];
  readonly status: number;
}

const TEXT = { "Content-Type": "text/plain" };
const CLOSED = { "Stream-Closed": "true" };

const ROWS: readonly Row[] = [
  { title: "a read", method: "GET", query: "?offset=-1", needs: ["read"], status: 200 },
  { title: "a read without an offset", method: "GET", needs: ["read"], status: 200 },
  { title: "a read from now", method: "GET", query: "?offset=now", needs: ["read"], status: 200 },
  { title: "a long-poll", method: "GET", query: "?live=long-poll&offset=-1", needs: ["read"], status: 200 },
  { title: "a read with a wrong query", method: "GET", query: "?live=nonsense", needs: ["read"], status: 400 },
  { title: "a HEAD", method: "HEAD", needs: ["read"], status: 200 },
  { title: "an append", method: "POST", parts: { headers: TEXT, body: "x" }, needs: ["append"], status: 204 },
  {
    title: "an append in chunks",
    method: "POST",
    parts: { headers: { ...TEXT, "Transfer-Encoding": "chunked", "Content-Length": "" } },
    needs: ["append"],
    status: 204,
  },
  {
    title: "an append of another type",
    method: "POST",
    parts: { headers: { "Content-Type": "a/b" }, body: "x" },
    needs: ["append"],
    status: 409,
  },
  { title: "a closure", method: "POST", parts: { headers: CLOSED }, needs: ["close"], status: 204 },
  {
    title: "a last append",
    method: "POST",
    parts: { headers: { ...TEXT, ...CLOSED }, body: "x" },
    needs: ["append", "close"],
    status: 204,
  },
  { title: "a create", method: "PUT", parts: { headers: TEXT }, needs: ["create"], status: 200 },
  { title: "a create that closes", method: "PUT", parts: { headers: { ...TEXT, ...CLOSED } }, needs: ["create", "close"], status: 409 },
  { title: "a fork", method: "PUT", parts: { headers: { "Stream-Forked-From": "/v1/stream/source" } }, needs: ["create"], status: 409 },
  { title: "a deletion", method: "DELETE", needs: ["delete"], status: 204 },
];

/** Each carrier of a credential, with grants on the streams of a test. */
const CARRIERS = ["token", "jwt"] as const;

/** A server with a stream and a missing one, and the header of somebody who may do everything. */
async function start(context: TestContext, file: AuthFile): Promise<{ server: TestServer; owner: Record<string, string> }> {
  const token = file.token("owner", [{ streams: ["**"], allow: OPERATIONS }]);
  file.write();
  const server = await startServer(context, { auth: file.path, insecure: false, corsOrigin: "auto" });
  const owner = { Authorization: `Bearer ${token}` };
  for (const name of ["there", "source"]) {
    const answer = await server.send("PUT", name, { headers: { ...owner, ...TEXT }, body: "hello" });
    assert.equal(answer.status, 201, answer.text);
  }
  return { server, owner };
}

function send(server: TestServer, name: string, row: Row, credential: Record<string, string>): Promise<Answer> {
  const { headers = {}, ...rest } = row.parts ?? {};
  if (headers["Transfer-Encoding"] === undefined)
    return server.send(row.method, `${name}${row.query ?? ""}`, { ...rest, headers: { ...headers, ...credential } });
  return sendChunked(server, name, { ...TEXT, ...credential });
}

async function sendChunked(server: TestServer, name: string, headers: Record<string, string>): Promise<Answer> {
  const connection = await server.connect();
  const lines = Object.entries({ Host: "localhost", "Transfer-Encoding": "chunked", ...headers }).map(
    ([key, value]) => `${key}: ${value}\r\n`,
  );
  connection.write(`POST /v1/stream/${name} HTTP/1.1\r\n${lines.join("")}\r\n1\r\nx\r\n0\r\n\r\n`);
  const answer = await connection.answer();
  await connection.close();
  return answer;
}

/** What a client sees of an answer, without the time of day. */
function seen({ status, headers, text }: Answer): unknown {
  return { status, headers: { ...headers, date: "" }, text };
}

for (const path of REQUEST_PATHS)
  for (const carrier of CARRIERS)
    describe(`${path}, by ${carrier}`, () => {
      for (const row of ROWS) test(`${row.title} needs ${row.needs.join(" and ")}`, (context) => judge(context, path, carrier, row));
    });

async function judge(context: TestContext, path: RequestPath, carrier: (typeof CARRIERS)[number], row: Row): Promise<void> {
  takePath(context, path);
  const file = new AuthFile();
  const all = OPERATIONS.filter((operation) => !row.needs.includes(operation));
  const exact = [
    { streams: ["there", "missing"], allow: row.needs },
    { streams: ["source"], allow: ["read" as const] },
  ];
  const lacking = row.needs.map((lacked) => [
    { streams: ["there", "missing"], allow: [...all, ...row.needs.filter((need) => need !== lacked)] },
  ]);
  const elsewhere = [{ streams: ["ther", "therex", "THERE", "there/x", "source"], allow: OPERATIONS }];
  const headersOf = credentialsFor(file, carrier, [exact, ...lacking, elsewhere]);
  const { server } = await start(context, file);
  const [right, ...wrong] = headersOf(server.clock.nowMs());
  for (const credential of wrong) {
    const existing = await send(server, "there", row, credential);
    assert.deepEqual([existing.status, existing.headers["www-authenticate"]], [403, 'Bearer error="insufficient_scope"'], existing.text);
    if (row.method !== "HEAD") assert.match(existing.text, /"code":"not-allowed"/);
    assert.deepEqual(seen(await send(server, "missing", row, credential)), seen(existing), "existence shows");
  }
  for (const credential of [{}, { Authorization: "Bearer x" }, { Authorization: "Basic b3duZXI6b3duZXI=" }, { Authorization: "" }]) {
    const existing = await send(server, "there", row, credential as Record<string, string>);
    const isBare = !("Authorization" in credential);
    assert.deepEqual(
      [existing.status, existing.headers["www-authenticate"]],
      [401, isBare ? "Bearer" : 'Bearer error="invalid_token"'],
      `${JSON.stringify(credential)}: ${existing.text}`,
    );
    assert.deepEqual(seen(await send(server, "missing", row, credential as Record<string, string>)), seen(existing), "existence shows");
  }
  const answer = await send(server, "there", row, right ?? {});
  assert.equal(answer.status, row.status, answer.text);
  if (row.needs[0] === "read" && row.method === "GET" && row.status === 200 && !(row.query ?? "").includes("now")) {
    assert.match(answer.headers["cache-control"] ?? "", /^private, /);
    assert.match(answer.headers["vary"] ?? "", row.query === undefined ? /\*/ : /Authorization/);
  }
  assert.equal(answer.headers["referrer-policy"], "no-referrer");
}

/** The headers of one credential for each list of grants. */
function credentialsFor(
  file: AuthFile,
  carrier: (typeof CARRIERS)[number],
  lists: readonly (readonly { streams: readonly string[]; allow: readonly Operation[] }[])[],
): (nowMs: number) => Record<string, string>[] {
  if (carrier === "token") {
    const tokens = lists.map((grants, index) => file.token(`t${index}`, grants));
    return () => tokens.map((token) => ({ Authorization: `Bearer ${token}` }));
  }
  file.trustJwtGrants();
  return (nowMs) =>
    lists.map((grants, index) => {
      const details = grants.map((grant) => ({ type: "urn:streamdir:grant", ...grant }));
      return { Authorization: `bearer ${file.jwt(nowMs, { sub: `s${index}`, authorization_details: details })}` };
    });
}

describe("a fork needs the right to read its source", () => {
  for (const path of REQUEST_PATHS)
    test(path, async (context) => {
      takePath(context, path);
      const file = new AuthFile();
      const blind = file.token("blind", [{ streams: ["mine/**"], allow: OPERATIONS }]);
      const { server } = await start(context, file);
      const fork = (source: string): Promise<Answer> =>
        server.send("PUT", "mine/fork", { headers: { Authorization: `Bearer ${blind}`, "Stream-Forked-From": `/v1/stream/${source}` } });
      const refused = await fork("source");
      assert.equal(refused.status, 403);
      assert.deepEqual(seen(await fork("missing")), seen(refused));
      assert.equal((await fork("mine/missing")).status, 404);
    });
});

describe("public grants", () => {
  const file = (): AuthFile => {
    const made = new AuthFile();
    made.grantPublic([{ streams: ["there"], allow: ["read"] }]);
    return made;
  };

  for (const path of REQUEST_PATHS)
    test(`${path}: a reader without a credential may read, and caches may keep it`, async (context) => {
      takePath(context, path);
      const { server } = await start(context, file());
      const answer = await server.send("GET", "there?offset=-1");
      assert.deepEqual([answer.status, answer.text], [200, "hello"]);
      assert.match(answer.headers["cache-control"] ?? "", /^public, /);
      assert.equal((await server.send("POST", "there", { headers: TEXT, body: "x" })).headers["www-authenticate"], "Bearer");
      assert.equal((await server.send("GET", "source?offset=-1")).status, 401);
    });

  test("a wrong credential never counts as none", async (context) => {
    const auth = file();
    const { server, owner } = await start(context, auth);
    for (const Authorization of ["Bearer x", "", "Basic eDp5", `Bearer sd_owner_${"A".repeat(43)}`])
      assert.equal((await server.send("GET", "there?offset=-1", { headers: { Authorization } })).status, 401, Authorization);
    for (const ticket of ["", "x", auth.ticket("source", server.clock.nowMs() / 1000 + 60)])
      assert.equal((await server.send("GET", `there?offset=-1&ticket=${ticket}`)).status, 401, ticket);
    assert.match((await server.send("GET", "there?offset=-1", { headers: owner })).headers["cache-control"] ?? "", /^private/);
  });

  test("two Authorization headers are refused", async (context) => {
    const { server, owner } = await start(context, file());
    const connection = await server.connect();
    connection.write(
      `GET /v1/stream/there HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${owner["Authorization"] ?? ""}\r\nAuthorization: x\r\n\r\n`,
    );
    assert.equal((await connection.answer()).status, 400);
  });
});

describe("what is open to all, with an auth file", () => {
  for (const [method, target, status] of [
    ["GET", "/health", 200],
    ["GET", "/", 200],
    ["OPTIONS", "there", 204],
    ["PATCH", "there", 405],
    ["GET", "/elsewhere", 404],
  ] as const)
    test(`${method} ${target}`, async (context) => {
      const { server } = await start(context, new AuthFile());
      assert.equal((await server.send(method, target)).status, status);
    });

  test("the page's first request has a token in it", async (context) => {
    const { server } = await start(context, new AuthFile());
    assert.match((await server.send("GET", "/")).text, /-H "Authorization: Bearer \$STREAMDIR_TOKEN"/);
  });

  test("a page of any origin may ask, with a credential of its own", async (context) => {
    const { server, owner } = await start(context, new AuthFile());
    const answer = await server.send("POST", "there", { headers: { ...owner, ...TEXT, Origin: "https://example.com" }, body: "x" });
    assert.deepEqual([answer.status, answer.headers["access-control-allow-origin"]], [204, "*"]);
    assert.equal(answer.headers["access-control-allow-credentials"], undefined);
  });
});
