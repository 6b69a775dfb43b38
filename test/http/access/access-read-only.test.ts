import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { OPERATIONS } from "../../../src/auth/rights/operation.js";
import { AuthFile } from "../../helpers/auth-file.js";
import { ALL_PATHS, takePath } from "../../helpers/request-paths.js";
import { startServer, type TestServer } from "../../helpers/test-server.js";
import { tempDir } from "../../helpers/temp-dir.js";

const VERSIONS = ["1.0", "1.1"] as const;
const TARGETS = ["there", "absent"] as const;

interface Asked {
  readonly method: string;
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** All that a connection says to one request of this version, without the time of day. */
async function say(server: TestServer, version: string, { method, target, headers = {}, body = "" }: Asked): Promise<string> {
  const connection = await server.connect();
  const lines = { Host: "localhost", Connection: "close", ...(body === "" ? {} : { "Content-Length": String(body.length) }), ...headers };
  const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`);
  connection.write(`${method} /v1/stream/${target} HTTP/${version}\r\n${head.join("")}\r\n${body}`);
  const said = await connection.rest();
  await connection.close();
  return said.replace(/^date: .*$/im, "").replaceAll(target, "NAME");
}

function statusOf(said: string): number {
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(said)?.[1]);
}

const CHANGES: readonly Omit<Asked, "target">[] = [
  { method: "PUT", headers: { "Content-Type": "text/plain" }, body: "x" },
  { method: "PUT", headers: { "Content-Type": "text/plain", "Stream-Forked-From": "/v1/stream/there" } },
  { method: "POST", headers: { "Content-Type": "text/plain" }, body: "x" },
  { method: "POST", headers: { "Stream-Closed": "true" } },
  { method: "DELETE" },
];

for (const path of ALL_PATHS)
  for (const version of VERSIONS)
    describe(`with --auth, HTTP/${version}, ${path}`, () => {
      for (const readOnly of [true, false])
        test(`${readOnly ? "and --read-only " : ""}nobody learns or changes what they may not`, async (context) => {
          takePath(context, path);
          const dir = tempDir();
          const file = new AuthFile();
          const owner = { Authorization: `Bearer ${file.token("owner", [{ streams: ["**"], allow: OPERATIONS }])}` };
          const other = { Authorization: `Bearer ${file.token("other", [{ streams: ["else/**"], allow: OPERATIONS }])}` };
          file.write();
          const first = await startServer(context, { dir, auth: file.path });
          const made = await first.send("PUT", "there", { headers: { ...owner, "Content-Type": "text/plain" }, body: "hello" });
          assert.equal(made.status, 201);
          await first.stop();
          const server = await startServer(context, { dir, auth: file.path, readOnly });
          for (const [credential, refusal] of [
            [{}, 401],
            [{ Authorization: "Bearer x" }, 401],
            [other, 403],
          ] as const)
            for (const asked of [...CHANGES, { method: "GET" }, { method: "HEAD" }]) {
              const answers = [];
              for (const target of TARGETS)
                answers.push(await say(server, version, { ...asked, target, headers: { ...asked.headers, ...credential } }));
              const isChange = asked.method !== "GET" && asked.method !== "HEAD";
              assert.equal(statusOf(answers[0] ?? ""), readOnly && isChange ? 405 : refusal, `${asked.method} ${answers[0]}`);
              assert.equal(answers[0], answers[1], "there or not");
            }
          if (readOnly)
            for (const asked of CHANGES)
              for (const target of TARGETS)
                assert.equal(
                  statusOf(await say(server, version, { ...asked, target, headers: { ...asked.headers, ...owner } })),
                  405,
                  asked.method,
                );
          const read = await say(server, version, { method: "GET", target: "there?offset=-1", headers: owner });
          assert.equal(statusOf(read), 200);
          assert.ok(read.endsWith("\r\n\r\nhello") || read.includes("hello"), read);
          assert.match(read, /^cache-control: .*private/im);
          assert.equal(statusOf(await say(server, version, { method: "GET", target: "absent", headers: owner })), 404);
        });

      test("a live read ends with its right", async (context) => {
        takePath(context, path);
        const file = new AuthFile();
        const owner = { Authorization: `Bearer ${file.token("owner", [{ streams: ["**"], allow: OPERATIONS }])}` };
        const reader = { Authorization: `Bearer ${file.token("reader", [{ streams: ["a"], allow: ["read"] }])}` };
        file.write();
        const server = await startServer(context, { auth: file.path, sseLifetimeMs: 86_400_000, sseHeartbeatMs: 3_600_000 });
        assert.equal((await server.send("PUT", "a", { headers: { ...owner, "Content-Type": "text/plain" }, body: "x" })).status, 201);
        const connection = await server.connect();
        connection.write(
          `GET /v1/stream/a?offset=-1&live=sse HTTP/${version}\r\nHost: a\r\nAuthorization: ${reader.Authorization}\r\n\r\n`,
        );
        assert.equal((await connection.head()).status, 200);
        await connection.until("event: control");
        file.removeToken("reader");
        file.write();
        assert.equal(await server.server.reload(), true);
        assert.ok(!(await connection.rest()).includes("event: data"));
      });
    });
