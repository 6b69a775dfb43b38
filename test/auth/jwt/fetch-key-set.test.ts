import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fetchKeySet, FETCH_TIMEOUT_MS } from "../../../src/auth/jwt/fetch-key-set.js";
import { MAX_KEY_SET_BYTES } from "../../../src/auth/jwt/key-set.js";
import { canMakeCertificates, httpsIssuer } from "../../helpers/https-issuer.js";
import { keySet } from "../../helpers/jwt.js";
import { ManualClock } from "../../helpers/manual-clock.js";

const NEVER = new AbortController().signal;

describe("a fetch of keys", { skip: canMakeCertificates() ? false : "openssl is missing" }, () => {
  test("gives what the issuer answers, and asks for it once", async (context) => {
    let requests = 0;
    const clock = new ManualClock();
    const issuer = await httpsIssuer(context, (request, response) => {
      requests++;
      assert.equal(request.method, "GET");
      response.end(keySet());
    });
    assert.equal(await fetchKeySet(issuer, clock, NEVER), keySet());
    assert.equal(requests, 1);
  });

  for (const [title, status, body, fault] of [
    ["another status", 404, "", /the answer is 404, not 200/],
    ["a redirect", 302, "", /the answer is 302, not 200/],
    ["a body that is too long", 200, "x".repeat(MAX_KEY_SET_BYTES + 1), /more than 262144 bytes/],
    ["a body that is not UTF-8", 200, Buffer.from([0xff]), /not UTF-8/],
  ] as const)
    test(`refuses ${title}`, async (context) => {
      const issuer = await httpsIssuer(context, (_request, response) => {
        response.writeHead(status, status === 302 ? { location: "https://localhost:1/" } : {});
        response.end(body);
      });
      await assert.rejects(fetchKeySet(issuer, new ManualClock(), NEVER), fault);
    });

  test("trusts no certificate of another CA", async (context) => {
    const issuer = await httpsIssuer(context, (_request, response) => void response.end(keySet()));
    await assert.rejects(fetchKeySet({ ...issuer, ca: null }, new ManualClock(), NEVER), /self-signed|certificate/);
  });

  test("trusts no certificate for another name", async (context) => {
    const issuer = await httpsIssuer(context, (_request, response) => void response.end(keySet()));
    const url = issuer.url.replace("localhost", "127.0.0.1");
    await assert.rejects(fetchKeySet({ ...issuer, url }, new ManualClock(), NEVER), /altnames|IP|ECONNREFUSED/);
  });

  for (const [title, begins] of [
    ["says nothing", false],
    ["stops in its answer", true],
  ] as const)
    test(`gives up an issuer that ${title}`, async (context) => {
      const clock = new ManualClock();
      const issuer = await httpsIssuer(context, (_request, response) => {
        if (begins) response.write("{");
        setImmediate(() => clock.advance(FETCH_TIMEOUT_MS));
      });
      await assert.rejects(fetchKeySet(issuer, clock, NEVER));
      assert.equal(clock.pendingCount, 0);
    });

  test("refuses a change of the protocol", async (context) => {
    const clock = new ManualClock();
    const issuer = await httpsIssuer(context, ({ socket }) => {
      socket.end("HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\n");
    });
    await assert.rejects(fetchKeySet(issuer, clock, NEVER), /ended without an answer/);
    assert.equal(clock.pendingCount, 0);
  });

  test("can be broken off", async (context) => {
    const closing = new AbortController();
    const issuer = await httpsIssuer(context, () => closing.abort());
    await assert.rejects(fetchKeySet(issuer, new ManualClock(), closing.signal), { name: "AbortError" });
    assert.equal(closing.signal.aborted, true);
  });
});
