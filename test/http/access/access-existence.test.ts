import assert from "node:assert/strict";
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { describe, test, type TestContext } from "node:test";
import { OPERATIONS } from "../../../src/auth/rights/operation.js";
import { Registry } from "../../../src/stream/registry.js";
import { AuthFile } from "../../helpers/auth-file.js";
import { startServer } from "../../helpers/test-server.js";

const TEXT = { "Content-Type": "text/plain" };
const REQUESTS = [
  { method: "GET", query: "?offset=-1" },
  { method: "GET", query: "?offset=-1&live=sse" },
  { method: "GET", query: "?offset=now&live=long-poll" },
  { method: "GET", query: "?last=3" },
  { method: "HEAD", query: "" },
  { method: "PUT", query: "", body: "x" },
  { method: "PUT", query: "", headers: { "Stream-Forked-From": "/v1/stream/there" } },
  { method: "POST", query: "", body: "x" },
  { method: "POST", query: "", headers: { "Stream-Closed": "true" } },
  { method: "DELETE", query: "" },
] as const;

/** Counts the calls of all that could tell a stream, or a credential, from one that is not there. */
function countCalls(context: TestContext): { readonly ofStreams: () => number; readonly ofSecrets: () => readonly string[] } {
  const names = Object.getOwnPropertyNames(Registry.prototype).filter((name) => {
    const { value } = Object.getOwnPropertyDescriptor(Registry.prototype, name) ?? {};
    return name !== "constructor" && typeof value === "function";
  });
  const registry = names.map((name) => context.mock.method(Registry.prototype, name as "find")); // any of them
  const secrets: string[] = [];
  const { timingSafeEqual, createHash, createHmac } = crypto;
  context.mock.method(crypto, "timingSafeEqual", (a: Buffer, b: Buffer) => {
    secrets.push(`compare ${a.length} ${b.length}`);
    return timingSafeEqual(a, b);
  });
  context.mock.method(crypto, "createHash", (name: string) => (secrets.push(`hash ${name}`), createHash(name)));
  context.mock.method(crypto, "createHmac", (name: string, key: Buffer) => (secrets.push(`mac ${name}`), createHmac(name, key)));
  syncBuiltinESMExports();
  context.after(() => syncBuiltinESMExports());
  return { ofStreams: () => registry.reduce((sum, { mock }) => sum + mock.callCount(), 0), ofSecrets: () => secrets.splice(0) };
}

describe("who may not learn what is there", () => {
  for (const [who, status] of [
    ["nobody", 401],
    ["a wrong token", 401],
    ["a token for others", 403],
  ] as const)
    test(`has no stream looked up: ${who}`, async (context) => {
      const file = new AuthFile();
      const owner = { Authorization: `Bearer ${file.token("owner", [{ streams: ["**"], allow: OPERATIONS }])}` };
      const other = { Authorization: `Bearer ${file.token("other", [{ streams: ["else"], allow: OPERATIONS }])}` };
      file.write();
      const credential = { nobody: {}, "a wrong token": { Authorization: "Bearer x" }, "a token for others": other }[who];
      const server = await startServer(context, { auth: file.path });
      assert.equal((await server.send("PUT", "there", { headers: { ...owner, ...TEXT }, body: "x" })).status, 201);
      const { ofStreams } = countCalls(context);
      for (const request of REQUESTS)
        for (const name of ["there", "gone"]) {
          const headers = { ...TEXT, ...("headers" in request ? request.headers : {}), ...credential };
          const body = "body" in request ? { body: request.body } : {};
          const answer = await server.send(request.method, `${name}${request.query}`, { headers, ...body });
          assert.equal(answer.status, status);
          assert.equal(ofStreams(), 0, `${request.method} ${name}${request.query}`);
        }
      assert.equal((await server.send("GET", "there?offset=-1", { headers: owner })).text, "x");
      assert.ok(ofStreams() > 0, "what is counted is what looks up");
    });

  test("has the same work done for an id that is there and one that is not", async (context) => {
    const file = new AuthFile();
    const ci = file.token("ci", [{ streams: ["**"], allow: OPERATIONS }]);
    file.token("over", [{ streams: ["**"], allow: OPERATIONS }], "2020-01-01T00:00:00Z");
    file.write();
    const server = await startServer(context, { auth: file.path });
    const nowS = Math.floor(server.clock.nowMs() / 1000);
    const wrong = `${ci.slice(0, -1)}${ci.endsWith("A") ? "B" : "A"}`.slice("sd_ci".length);
    // For another stream: its MAC is well-formed, and wrong here.
    const ticket = file.ticket("b", nowS + 60);
    const { ofSecrets } = countCalls(context);
    const workOf = async (headers: Record<string, string>, query = ""): Promise<readonly string[]> => {
      assert.equal((await server.send("GET", `a${query}`, { headers })).status, 401);
      return ofSecrets();
    };
    const known = await workOf({ Authorization: `Bearer sd_ci${wrong}` });
    assert.deepEqual(known, ["hash sha256", "compare 32 32"]);
    for (const id of ["cj", "nobody", "c", "over", "a".repeat(64)])
      assert.deepEqual(await workOf({ Authorization: `Bearer sd_${id}${wrong}` }), known, id);
    const byTicket = await workOf({}, `?ticket=${ticket}`);
    assert.deepEqual(byTicket.slice(0, 2), ["mac sha256", "compare 32 32"]);
    assert.deepEqual(await workOf({}, `?ticket=${ticket.replace(".k1.", ".k9.")}`), byTicket);
  });
});
