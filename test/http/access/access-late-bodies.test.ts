import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { OPERATIONS, type Operation } from "../../../src/auth/rights/operation.js";
import { Registry } from "../../../src/stream/registry.js";
import { AuthFile } from "../../helpers/auth-file.js";
import { canMakeCertificates, httpsIssuer } from "../../helpers/https-issuer.js";
import { claimsWith, jwtOf, keySet } from "../../helpers/jwt.js";
import { ALL_PATHS, REQUEST_PATHS, takePath } from "../../helpers/request-paths.js";
import { requestBytes, startServer, type TestServer } from "../../helpers/test-server.js";
import { Barrier } from "../../helpers/watched-files.js";

const TEXT = { "Content-Type": "text/plain" };
const START_MS = Date.UTC(2026, 0, 1);
const NEW_STREAM = { ...TEXT, "Stream-Closed": "true" };

const lacksOpenssl = canMakeCertificates() ? false : "openssl is missing";

type Change = (file: AuthFile, server: TestServer) => void;
const NOTHING: Change = () => undefined;

describe("a request whose body comes later than its head", () => {
  for (const path of ALL_PATHS)
    for (const [title, allow, change, method, headers, status] of [
      ["is served while its sender may", ["append"], NOTHING, "POST", TEXT, 204],
      ["is refused when its credential is revoked", ["append"], (file) => file.revoke({ id: "late" }), "POST", TEXT, 401],
      ["is refused when its credential is taken away", ["append"], (file) => file.removeToken("late"), "POST", TEXT, 401],
      ["is refused when its credential is over", ["append"], (_, { clock }) => clock.advance(2000), "POST", TEXT, 401],
      ["is refused when it may no longer", ["append"], grantAgain("read"), "POST", TEXT, 403],
      ["may not close when that is no longer allowed", ["append", "close"], grantAgain("append"), "POST", NEW_STREAM, 403],
      ["creates nothing when it may no longer", ["create", "close"], grantAgain("create"), "PUT", NEW_STREAM, 403],
    ] as const satisfies readonly (readonly [string, readonly Operation[], Change, string, Record<string, string>, number])[])
      test(`${title}: ${path}`, async (context) => {
        takePath(context, path);
        const file = new AuthFile();
        const owner = { Authorization: `Bearer ${file.token("owner", [{ streams: ["**"], allow: OPERATIONS }])}` };
        const late = file.token("late", [{ streams: ["*"], allow }], new Date(START_MS + 1000).toISOString());
        file.write();
        const server = await startServer(context, { auth: file.path });
        assert.equal((await server.send("PUT", "a", { headers: { ...owner, ...TEXT } })).status, 201);
        const name = method === "PUT" ? "b" : "a";
        const slow = await server.connect();
        const whole = requestBytes(method, name, { headers: { ...headers, Authorization: `Bearer ${late}` }, body: "hello" });
        slow.write(whole.subarray(0, -2));
        // An answer on another connection: the head has come by then.
        await server.send("HEAD", "a", { headers: owner });
        change(file, server);
        file.write();
        assert.equal(await server.server.reload(), true);
        slow.write(whole.subarray(-2));
        assert.equal((await slow.answer()).status, status);
        const read = await server.send("GET", `${name}?offset=-1`, { headers: owner });
        assert.equal(read.text, status === 204 ? "hello" : read.status === 404 ? read.text : "");
        assert.equal(read.status, method === "PUT" ? 404 : 200);
      });

  for (const path of REQUEST_PATHS)
    for (const [title, method, name, more, status] of [
      ["is deleted", "POST", "gone", {}, 404],
      ["is closed", "POST", "closed", {}, 409],
      ["has another tail", "POST", "longer", { "If-Match": '"0000000000000000_0000000000000000"' }, 412],
      ["was made since", "PUT", "made", {}, 409],
    ] as const)
      test(`a body whose first byte comes after a revocation learns nothing of a stream that ${title}: ${path}`, async (context) => {
        takePath(context, path);
        const file = new AuthFile();
        const owner = { Authorization: `Bearer ${file.token("owner", [{ streams: ["**"], allow: OPERATIONS }])}` };
        const late = file.token("late", [{ streams: ["*"], allow: ["create", "append"] }]);
        file.write();
        const server = await startServer(context, { auth: file.path });
        for (const there of ["gone", "closed", "longer"]) await server.send("PUT", there, { headers: { ...owner, ...TEXT } });
        const slow = await server.connect();
        const lines = Object.entries({ ...TEXT, ...more, Authorization: `Bearer ${late}` }).map(([key, value]) => `${key}: ${value}\r\n`);
        slow.write(`${method} /v1/stream/${name} HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n${lines.join("")}\r\n`);
        await server.send("HEAD", "longer", { headers: owner });
        file.revoke({ id: "late" });
        file.write();
        assert.equal(await server.server.reload(), true);
        await server.send("DELETE", "gone", { headers: owner });
        await server.send("POST", "closed", { headers: { ...owner, ...NEW_STREAM }, body: "end" });
        await server.send("POST", "longer", { headers: { ...owner, ...TEXT }, body: "more" });
        await server.send("PUT", "made", { headers: { ...owner, "Content-Type": "application/json" } });
        slow.write("1\r\nx\r\n");
        const answer = await slow.answer();
        assert.equal(answer.status, 401, `it would be ${status}: ${answer.text}`);
        assert.equal(answer.headers["stream-next-offset"], undefined);
      });

  for (const path of ALL_PATHS)
    for (const [title, change, status] of [
      ["is stored while its sender may", NOTHING, 204],
      ["is refused when its credential is revoked", (file) => file.revoke({ id: "late" }), 401],
      ["is refused when it may no longer", grantAgain("read"), 403],
    ] as const satisfies readonly (readonly [string, Change, number])[])
      test(`sent without a wait for 100 Continue ${title} while storage is asked: ${path}`, async (context) => {
        takePath(context, path);
        const file = new AuthFile();
        const owner = { Authorization: `Bearer ${file.token("owner", [{ streams: ["**"], allow: OPERATIONS }])}` };
        const late = file.token("late", [{ streams: ["*"], allow: ["append"] }]);
        file.write();
        const server = await startServer(context, { auth: file.path });
        assert.equal((await server.send("PUT", "a", { headers: { ...owner, ...TEXT } })).status, 201);
        const [asked, found] = [new Barrier(), new Barrier()];
        const { find } = Registry.prototype;
        const slowly = async function (this: Registry, name: string) {
          asked.open();
          await found.opened;
          return find.call(this, name);
        };
        context.mock.method(Registry.prototype, "find", slowly, { times: 1 });
        const headers = { ...TEXT, Expect: "100-continue", Authorization: `Bearer ${late}` };
        const hasty = await server.begin("POST", "a", { headers, body: "hello" });
        await asked.opened;
        change(file, server);
        file.write();
        assert.equal(await server.server.reload(), true);
        found.open();
        let answer = await hasty.answer();
        if (answer.status === 100) answer = await hasty.answer();
        assert.equal(answer.status, status);
        const read = await server.send("GET", "a?offset=-1", { headers: owner });
        assert.equal(read.text, status === 204 ? "hello" : "");
      });

  test("is refused when nobody may without a credential any more", async (context) => {
    const file = new AuthFile();
    file.grantPublic([{ streams: ["a"], allow: ["create", "append", "read"] }]);
    file.write();
    const server = await startServer(context, { auth: file.path });
    assert.equal((await server.send("PUT", "a", { headers: TEXT })).status, 201);
    const slow = await server.connect();
    const whole = requestBytes("POST", "a", { headers: TEXT, body: "hello" });
    slow.write(whole.subarray(0, -2));
    await server.send("HEAD", "a");
    file.grantPublic([]);
    file.write();
    assert.equal(await server.server.reload(), true);
    slow.write(whole.subarray(-2));
    const answer = await slow.answer();
    assert.deepEqual([answer.status, (JSON.parse(answer.text) as { code: string }).code], [401, "credential-missing"]);
  });
});

function grantAgain(...allow: Operation[]): Change {
  return (file) => file.regrant("late", [{ streams: ["*"], allow }]);
}

describe("a request whose client left while its credential was verified", { skip: lacksOpenssl }, () => {
  for (const path of ALL_PATHS)
    test(`leaves nothing behind: ${path}`, async (context) => {
      takePath(context, path);
      const asked = new Barrier();
      const keys = new Barrier();
      const { url, caFile } = await httpsIssuer(context, (_request, response) => {
        asked.open();
        void keys.opened.then(() => response.end(keySet()));
      });
      const file = new AuthFile();
      const grants = [{ streams: ["*"], allow: ["create"] }];
      const issuer = { iss: "https://far.example", aud: "streams", algs: ["EdDSA"], jwks: url, jwksCa: caFile, grants };
      writeFileSync(file.path, JSON.stringify({ issuers: [issuer] }), { mode: 0o600 });
      const server = await startServer(context, { auth: file.path });
      const token = jwtOf("EdDSA", claimsWith({ iss: "https://far.example", exp: server.clock.nowMs() / 1000 + 600 }));
      const slow = await server.connect();
      slow.write(requestBytes("PUT", "a", { headers: { ...TEXT, Authorization: `Bearer ${token}` }, body: "hello" }).subarray(0, -2));
      await asked.opened;
      await slow.close();
      await server.send("HEAD", "b");
      keys.open();
      // Nothing is in flight, or a stop would wait for it until its time is over, which never comes here.
      await server.stop();
    });
});
