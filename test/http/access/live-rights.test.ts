import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { OPERATIONS } from "../../../src/auth/rights/operation.js";
import { AuthFile } from "../../helpers/auth-file.js";
import { follow, nextPair } from "../../helpers/sse-client.js";
import { startServer, type TestServer } from "../../helpers/test-server.js";

const TEXT = { "Content-Type": "text/plain" };
const START_MS = Date.UTC(2026, 0, 1);
const DAY_MS = 24 * 3600 * 1000;

/** A server with a stream and somebody who may do everything; live reads last longer than the test. */
async function start(context: TestContext, file: AuthFile): Promise<{ server: TestServer; append: (body: string) => Promise<void> }> {
  const owner = { Authorization: `Bearer ${file.token("owner", [{ streams: ["**"], allow: OPERATIONS }])}` };
  file.write();
  const lasting = { sseLifetimeMs: DAY_MS, longPollTimeoutMs: 3600 * 1000, sseHeartbeatMs: 3600 * 1000 };
  const server = await startServer(context, { auth: file.path, ...lasting });
  await server.send("PUT", "a", { headers: { ...owner, ...TEXT } });
  const append = async (body: string): Promise<void> => {
    assert.equal((await server.send("POST", "a", { headers: { ...owner, ...TEXT }, body })).status, 204);
  };
  return { server, append };
}

const READ = [{ streams: ["a"], allow: ["read" as const] }];

/** Each way in which a right ends. `credential` gives the header; `end` ends the right. */
const ENDS: readonly {
  readonly title: string;
  readonly credential: (file: AuthFile) => Record<string, string>;
  readonly end: (server: TestServer, file: AuthFile) => unknown;
}[] = [
  {
    title: "its token is over",
    credential: (file) => ({ Authorization: `Bearer ${file.token("t", READ, new Date(START_MS + 60_000).toISOString())}` }),
    end: (server) => server.clock.advance(60_000),
  },
  {
    title: "its token is revoked",
    credential: (file) => ({ Authorization: `Bearer ${file.token("t", READ)}` }),
    end: (server, file) => rewrite(server, file, () => file.revoke({ id: "t" })),
  },
  {
    title: "its token is taken out of the file",
    credential: (file) => ({ Authorization: `Bearer ${file.token("t", READ)}` }),
    end: (server, file) => rewrite(server, file, () => file.removeToken("t")),
  },
  {
    title: "its JWT is over, and the leeway too",
    credential: (file) => {
      file.grantJwts(READ);
      return { Authorization: `Bearer ${file.jwt(START_MS, { exp: START_MS / 1000 + 600 })}` };
    },
    end: (server) => server.clock.advance(630_000),
  },
  {
    title: "the sub of its JWT is revoked",
    credential: (file) => {
      file.grantJwts(READ);
      return { Authorization: `Bearer ${file.jwt(START_MS, { exp: START_MS / 1000 + 600 })}` };
    },
    end: (server, file) => rewrite(server, file, () => file.revoke({ sub: "alice" })),
  },
  {
    title: "the grants of its issuer are others",
    credential: (file) => {
      file.grantJwts(READ);
      return { Authorization: `Bearer ${file.jwt(START_MS, { exp: START_MS / 1000 + 600 })}` };
    },
    end: (server, file) => rewrite(server, file, () => file.grantJwts([{ streams: ["b"], allow: ["read"] }])),
  },
  {
    title: "what was public no longer is",
    credential: (file) => {
      file.grantPublic(READ);
      return {};
    },
    end: (server, file) => rewrite(server, file, () => file.grantPublic([{ streams: ["b"], allow: ["read"] }])),
  },
];

async function rewrite(server: TestServer, file: AuthFile, change: () => void): Promise<void> {
  change();
  file.write();
  assert.equal(await server.server.reload(), true);
}

describe("a live read ends when", () => {
  for (const { title, credential, end } of ENDS) {
    test(`${title}: events, between two`, async (context) => {
      const file = new AuthFile();
      const headers = credential(file);
      const { server, append } = await start(context, file);
      const reader = await follow(server, "a?live=sse&offset=-1", headers);
      await nextPair(reader);
      await append("before");
      assert.equal((await nextPair(reader)).data, "before");
      await end(server, file);
      await append("after");
      assert.equal(await reader.rest(), "", "nothing follows");
      const again = await server.send("GET", "a?live=sse&offset=-1", { headers });
      assert.ok(again.status === 401 || again.status === 403, String(again.status));
    });

    test(`${title}: a long-poll is refused`, async (context) => {
      const file = new AuthFile();
      const headers = credential(file);
      const { server } = await start(context, file);
      const reader = await server.begin("GET", "a?live=long-poll&offset=now", { headers });
      await server.clock.armed(3600 * 1000);
      await end(server, file);
      const answer = await reader.answer();
      assert.deepEqual([answer.status, answer.headers["www-authenticate"]], [401, 'Bearer error="invalid_token"']);
    });
  }
});

describe("a live read goes on when", () => {
  const token = (file: AuthFile): Record<string, string> => ({ Authorization: `Bearer ${file.token("t", READ)}` });
  for (const [title, change] of [
    ["another token is revoked", (file: AuthFile) => file.revoke({ id: "other" })],
    ["another token is added", (file: AuthFile) => void file.token("new", READ)],
    ["its token was revoked for before it was made", (file: AuthFile) => file.revoke({ id: "t", before: "2000-01-01T00:00:00Z" })],
  ] as const)
    test(title, async (context) => {
      const file = new AuthFile();
      const headers = token(file);
      const { server, append } = await start(context, file);
      const reader = await follow(server, "a?live=sse&offset=-1", headers);
      await nextPair(reader);
      await rewrite(server, file, () => change(file));
      await append("after");
      assert.equal((await nextPair(reader)).data, "after");
    });

  test("the file is broken: the old one counts", async (context) => {
    const file = new AuthFile();
    const headers = token(file);
    const { server, append } = await start(context, file);
    const reader = await follow(server, "a?live=sse&offset=-1", headers);
    await nextPair(reader);
    file.spoil();
    assert.equal(await server.server.reload(), false);
    assert.match(server.faults.join("\n"), /auth\.json:\d+/);
    await append("after");
    assert.equal((await nextPair(reader)).data, "after");
  });

  test("its right lasts for longer than a timer can", async (context) => {
    const file = new AuthFile();
    const far = new Date(START_MS + 60 * DAY_MS).toISOString();
    const headers = { Authorization: `Bearer ${file.token("t", READ, far)}` };
    const { server } = await start(context, file);
    const reader = await server.begin("GET", "a?live=long-poll&offset=now", { headers });
    await server.clock.armed(3600 * 1000);
    await server.clock.armed(DAY_MS);
    server.clock.advance(3600 * 1000);
    assert.equal((await reader.answer()).status, 204);
  });
});
