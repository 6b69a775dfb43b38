import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { ServerOptions } from "../../../src/server.js";
import { AuthFile } from "../../helpers/auth-file.js";
import { Random } from "../../helpers/random.js";
import { requestBytes, startServer, type TestServer } from "../../helpers/test-server.js";

type Line = Readonly<Record<string, unknown>>;

const TEXT = { "Content-Type": "text/plain" };

interface Logged {
  readonly server: TestServer;
  lines(): Line[];
  text(): string;
}

/** A server whose access log the test reads. */
async function logged(context: TestContext, auth = "", options: ServerOptions = {}): Promise<Logged> {
  let text = "";
  const accessOutput = {
    write: (bytes: Buffer, written: () => void) => {
      text += bytes.toString();
      written();
    },
  };
  const server = await startServer(context, { accessLog: true, accessOutput, ...(auth === "" ? {} : { auth }), ...options });
  const lines = (): Line[] => {
    server.clock.advance(100);
    const read = text.split("\n").filter((line) => line !== "");
    return read.map((line) => JSON.parse(line) as Line); // each is an object
  };
  return { server, lines, text: () => text };
}

test("a request of either path is a line with its id, which its answer has too", async (context) => {
  const { server, lines } = await logged(context);
  const created = await server.send("PUT", "a%20%22b", { headers: { ...TEXT, "X-Request-Id": "mine-1" }, body: "secret" });
  assert.equal(created.headers["x-request-id"], "mine-1");
  // This one takes the general path.
  const appended = await server.send("POST", "a%20%22b", { headers: { ...TEXT, Connection: "close" }, body: "secret" });
  const refused = await server.send("GET", "none?offset=-1&ticket=x", { headers: { "X-Request-Id": "not an id" } });
  const [first, second, third, ...others] = lines();
  assert.equal(others.length, 0);
  const { time, ms, ...rest } = first ?? {};
  assert.ok(typeof time === "string" && typeof ms === "number");
  assert.deepEqual(rest, {
    level: "info",
    msg: "request",
    id: "mine-1",
    op: "create",
    method: "PUT",
    stream: 'a "b',
    status: 201,
    nextOffset: created.headers["stream-next-offset"],
    bytesIn: 6,
    bytesOut: 0,
    client: "127.0.0.1",
  });
  assert.deepEqual([second?.["op"], second?.["status"], second?.["id"]], ["append", 204, appended.headers["x-request-id"]]);
  assert.deepEqual(
    [third?.["op"], third?.["status"], third?.["code"], third?.["offset"], third?.["stream"]],
    ["read", 404, "stream-not-found", "-1", "none"],
  );
  assert.match(refused.headers["x-request-id"] ?? "", /^[0-9a-f]{16}-\d{3}$/);
});

test("a line has where its request came from, unless it was a read or an append that went well", async (context) => {
  const { server, lines } = await logged(context, "", { trustProxy: "127.0.0.1" });
  const from = { "X-Forwarded-For": "2001:db8:1:2:3::4" };
  for (const [method, target, body] of [
    ["PUT", "a", "x"],
    ["POST", "a", "x"],
    ["GET", "a", ""],
    ["GET", "a?offset=-1&live=long-poll", ""],
    ["HEAD", "a", ""],
    ["POST", "none", "x"],
    ["GET", "none", ""],
    ["DELETE", "a", ""],
  ] as const)
    await server.send(method, target, { headers: { ...from, ...(body === "" ? {} : TEXT) }, ...(body === "" ? {} : { body }) });
  const told = lines().map(({ op, status, client }) => [op, status, client]);
  const client = "2001:db8:1:2::";
  assert.deepEqual(told, [
    ["create", 201, client],
    ["append", 204, undefined],
    ["read", 200, undefined],
    ["long-poll", 200, undefined],
    ["head", 200, client],
    ["append", 404, client],
    ["read", 404, client],
    ["delete", 204, client],
  ]);
});

test("a live read is a line when it begins and one when it ends", async (context) => {
  const { server, lines } = await logged(context);
  await server.send("PUT", "a", { headers: TEXT, body: "x" });
  const reader = await server.begin("GET", "a?live=sse&offset=-1", {
    headers: { traceparent: `00-${"ab".repeat(16)}-${"cd".repeat(8)}-01` },
  });
  const head = await reader.head();
  assert.equal(head.headers["x-request-id"], "ab".repeat(16));
  await reader.until("upToDate");
  await server.send("DELETE", "a");
  await reader.rest();
  const live = lines().filter(({ op }) => op === "sse");
  assert.deepEqual(
    live.map(({ msg, status, id }) => [msg, status, id]),
    [
      ["live read begins", 200, "ab".repeat(16)],
      ["request", 200, "ab".repeat(16)],
    ],
  );
  assert.ok(Number(live[1]?.["bytesOut"]) > 0);
});

test("a long-poll that begins has no status, and one whose client leaves is told as left", async (context) => {
  const { server, lines } = await logged(context);
  await server.send("PUT", "a", { headers: TEXT });
  const reader = await server.connect();
  reader.write(requestBytes("GET", "a?live=long-poll&offset=now"));
  while (lines().length < 2) await new Promise((resolve) => setImmediate(resolve));
  reader.socket.resetAndDestroy();
  while (lines().length < 3) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(
    lines()
      .slice(1)
      .map((line) => [line["msg"], "status" in line, line["status"]]),
    [
      ["live read begins", false, undefined],
      ["request", true, "left"],
    ],
  );
});

test("a line has the caller's id, and no secret, ticket or body", async (context) => {
  const file = new AuthFile();
  const token = file.token("writer", [{ streams: ["**"], allow: ["create", "append"] }]);
  file.write();
  const { server, lines, text } = await logged(context, file.path);
  const headers = { ...TEXT, Authorization: `Bearer ${token}` };
  await server.send("PUT", "a", { headers, body: "body-secret" });
  assert.equal((await server.send("GET", "a", { headers })).status, 403);
  const ticket = file.ticket("a", 10 ** 10);
  await server.send("GET", `a?offset=${ticket}&ticket=${ticket}`);
  assert.deepEqual(
    lines().map((line) => line["token"]?.toString().startsWith("token writer") ?? false),
    [true, true, false],
  );
  for (const secret of [token, "body-secret", ticket]) assert.ok(!text().includes(secret));
});

test("a request that is refused before its body is read is a line with the size of its answer", async (context) => {
  const { server, lines } = await logged(context);
  const connection = await server.connect();
  connection.write(requestBytes("POST", "a", { headers: { ...TEXT, "Content-Length": "100000" }, body: "" }));
  await connection.until("stream-not-found");
  assert.deepEqual([lines()[0]?.["status"], Number(lines()[0]?.["bytesOut"]) > 50], [404, true]);
});

test("a request whose client leaves is a line", async (context) => {
  const { server, lines } = await logged(context);
  const connection = await server.connect();
  connection.write(requestBytes("POST", "a", { headers: { ...TEXT, "Content-Length": "10" }, body: "half" }));
  connection.socket.destroySoon();
  let found: Line[] = [];
  while ((found = lines()).length === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(found[0]?.["op"], "append");
});

test("a line says what its own request was, whatever the ones before it had in common with it", async (context) => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = new Random(seed);
  const { server, lines } = await logged(context);
  const expected: unknown[][] = [];
  const ids = new Set<unknown>();
  const ask = async (method: string, name: string, op: string, offset?: string, body = "", id?: string): Promise<void> => {
    const target = offset === undefined ? name : `${name}?offset=${offset}`;
    const headers = { ...(body === "" ? {} : TEXT), ...(id === undefined ? {} : { "X-Request-Id": id }) };
    const answer = await server.send(method, target, { headers, ...(body === "" ? {} : { body }) });
    const given = answer.headers["x-request-id"];
    assert.ok(id === undefined ? !ids.has(given) : given === id);
    ids.add(given);
    const next = answer.headers["stream-next-offset"];
    expected.push([given, op, name, answer.status, offset, next, body.length, answer.body.length]);
  };
  for (const name of ["a", "b"]) await ask("PUT", name, "create", undefined, `${name}${name}`);
  // Runs of the same, cut by others: each part of a line may be that of the line before.
  for (let run = 0; run < 150; run += 1) {
    const name = random.pick(["a", "a", "b", "none", "gone"]);
    const id = random.chance(0.2) ? `given-${run}` : undefined;
    const kind = random.pick(["append", "read", "read", "head"]);
    const offset = random.pick(["-1", "now", ""]) || undefined;
    const body = random.pick(["x", "yyy"]);
    for (let times = random.integer(1, 4); times > 0; times -= 1) {
      if (kind === "append") await ask("POST", name, kind, undefined, body, id);
      else await ask(kind === "head" ? "HEAD" : "GET", name, kind, kind === "read" ? offset : undefined, "", id);
    }
  }
  const found = lines().map((line) =>
    ["id", "op", "stream", "status", "offset", "nextOffset", "bytesIn", "bytesOut"].map((member) => line[member]),
  );
  assert.deepEqual(found, expected, `seed ${seed}`);
});
