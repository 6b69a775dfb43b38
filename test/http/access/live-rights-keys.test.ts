import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { KEYS_FRESH_MS } from "../../../src/auth/jwt/remote-keys.js";
import { tempDir } from "../../helpers/temp-dir.js";
import { canMakeCertificates, httpsIssuer } from "../../helpers/https-issuer.js";
import { claimsWith, JWT_NOW_MS, jwkOf, jwtOf, keySet, PAIRS } from "../../helpers/jwt.js";
import { follow, nextPair } from "../../helpers/sse-client.js";
import { startServer, type TestServer } from "../../helpers/test-server.js";

const HOUR_MS = 3600 * 1000;
const TEXT = { "Content-Type": "text/plain" };
/** For longer than any test. */
const HEADERS = { Authorization: `Bearer ${jwtOf("EdDSA", claimsWith({ exp: JWT_NOW_MS / 1000 + 7 * 24 * 3600 }))}` };
const WITHOUT_IT = JSON.stringify({ keys: [jwkOf(PAIRS.ES256.publicKey, { kid: "ES256" })] });

/** A server with one stream, whose only issuer has its keys at `place`. */
async function start(context: TestContext, dir: string, place: Record<string, string>): Promise<TestServer> {
  const issuer = { iss: "https://id.example", aud: "streams", algs: ["EdDSA", "ES256"] };
  const grants = [{ streams: ["a"], allow: ["create", "append", "read"] }];
  writeFileSync(join(dir, "auth.json"), JSON.stringify({ issuers: [{ ...issuer, ...place, grants }] }), { mode: 0o600 });
  const lasting = { sseLifetimeMs: 24 * HOUR_MS, sseHeartbeatMs: HOUR_MS, longPollTimeoutMs: HOUR_MS };
  const server = await startServer(context, { auth: join(dir, "auth.json"), ...lasting });
  assert.equal((await server.send("PUT", "a", { headers: { ...HEADERS, ...TEXT } })).status, 201);
  return server;
}

/** A live read by the JWT that ends with `end`, and then its next request is refused: nothing else was sent meanwhile. */
async function assertEnds(server: TestServer, end: () => unknown): Promise<void> {
  const reader = await follow(server, "a?live=sse&offset=-1", HEADERS);
  await nextPair(reader);
  await server.send("POST", "a", { headers: { ...HEADERS, ...TEXT }, body: "before" });
  assert.equal((await nextPair(reader)).data, "before");
  await end();
  assert.equal(await reader.rest(), "", "nothing follows");
  const again = await server.send("GET", "a", { headers: HEADERS });
  assert.deepEqual([again.status, again.headers["www-authenticate"]], [401, 'Bearer error="invalid_token"']);
}

describe("a JWT that is remembered ends when its key leaves the set", () => {
  test("in a file", async (context) => {
    const dir = tempDir();
    writeFileSync(join(dir, "keys.json"), keySet());
    const server = await start(context, dir, { jwks: "keys.json" });
    await assertEnds(server, async () => {
      writeFileSync(join(dir, "keys.json"), WITHOUT_IT);
      assert.equal(await server.server.reload(), true);
    });
  });

  const skip = canMakeCertificates() ? false : "openssl is missing";
  for (const [title, next] of [
    ["at a URL, though nobody shows another", WITHOUT_IT],
    ["at a URL, and it was the last", '{"keys":[]}'],
  ] as const)
    test(title, { skip }, async (context) => {
      let served = keySet();
      const { url, caFile } = await httpsIssuer(context, (_request, response) => response.end(served));
      const server = await start(context, dirname(caFile), { jwks: url, jwksCa: caFile });
      await assertEnds(server, () => {
        served = next;
        server.clock.advance(KEYS_FRESH_MS);
      });
    });
});
