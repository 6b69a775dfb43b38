import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { gunzipSync } from "node:zlib";
import { AuthFile } from "../../helpers/auth-file.js";
import { startServer, type TestServer } from "../../helpers/test-server.js";

const TEXT = { "Content-Type": "text/plain" };
const GZIP = { "Accept-Encoding": "gzip, deflate, br" };
const LOG = "2026-01-31 a line of a log\n".repeat(400);

async function withLog(scope: TestContext, contentType = "text/plain", body = LOG): Promise<TestServer> {
  const server = await startServer(scope, { compress: true });
  await server.send("PUT", "a", { headers: { "Content-Type": contentType }, body });
  return server;
}

describe("GET with --compress", () => {
  test("answers with gzip who asks for it, and tells the codings apart", async (context) => {
    const server = await withLog(context);
    const plain = await server.send("GET", "a?offset=-1");
    assert.deepEqual([plain.text, plain.headers["content-encoding"], plain.headers["vary"]], [LOG, undefined, "Accept-Encoding"]);
    const coded = await server.send("GET", "a?offset=-1", { headers: GZIP });
    assert.deepEqual([coded.headers["content-encoding"], coded.headers["vary"]], ["gzip", "Accept-Encoding"]);
    assert.equal(gunzipSync(coded.body).toString(), LOG);
    assert.equal(coded.headers["content-length"], String(coded.body.length));
    assert.ok(coded.body.length < LOG.length / 10);
    for (const same of ["stream-next-offset", "stream-up-to-date", "content-type", "cache-control"])
      assert.equal(coded.headers[same], plain.headers[same], same);
    assert.equal(coded.headers["etag"], `${plain.headers["etag"]?.slice(0, -1)}:gzip"`);
  });

  test("answers 304 to the ETag of the coding that is asked for, and only to that", async (context) => {
    const server = await withLog(context);
    const plain = String((await server.send("GET", "a?offset=-1")).headers["etag"]);
    const coded = String((await server.send("GET", "a?offset=-1", { headers: GZIP })).headers["etag"]);
    for (const [asks, etag, status] of [
      [GZIP, coded, 304],
      [GZIP, `W/${coded}`, 304],
      [GZIP, plain, 200],
      [{}, coded, 200],
      [{}, plain, 304],
    ] as const) {
      const answer = await server.send("GET", "a?offset=-1", { headers: { ...asks, "If-None-Match": etag } });
      assert.deepEqual([answer.status, answer.headers["vary"]], [status, "Accept-Encoding"], etag);
      if (status === 304) assert.deepEqual([answer.headers["content-encoding"], answer.text], [undefined, ""]);
    }
  });

  test("leaves alone what is short, what is no text, live reads, and who does not ask", async (context) => {
    const server = await withLog(context);
    await server.send("PUT", "short", { headers: TEXT, body: "a".repeat(1023) });
    await server.send("PUT", "long-enough", { headers: TEXT, body: "a".repeat(1024) });
    await server.send("PUT", "bytes", { body: LOG });
    for (const [target, coding] of [
      ["a?offset=-1", "gzip"],
      ["long-enough?offset=-1", "gzip"],
      ["short?offset=-1", undefined],
      ["bytes?offset=-1", undefined],
      ["a?offset=-1&live=long-poll", undefined],
    ] as const)
      assert.equal((await server.send("GET", target, { headers: GZIP })).headers["content-encoding"], coding, target);
    assert.equal((await server.send("GET", "bytes?offset=-1", { headers: GZIP })).headers["vary"], undefined);
    const refused = { "Accept-Encoding": "gzip;q=0, *" };
    assert.equal((await server.send("GET", "a?offset=-1", { headers: refused })).text, LOG);
  });

  test("compresses a whole JSON array, also of several chunks", async (context) => {
    const server = await withLog(context, "application/json", "[1]");
    const messages = Array.from({ length: 500 }, (_, at) => ({ at, text: "tick" }));
    const body = JSON.stringify(messages);
    await server.send("POST", "a", { headers: { "Content-Type": "application/json" }, body });
    const answer = await server.send("GET", "a?last=500", { headers: GZIP });
    assert.deepEqual([answer.headers["content-encoding"], answer.headers["etag"]], ["gzip", undefined]);
    assert.deepEqual(JSON.parse(gunzipSync(answer.body).toString()), messages);
  });

  test("never takes a place that moves for one that the client has", async (context) => {
    const server = await withLog(context);
    const headers = { ...GZIP, "If-None-Match": "*" };
    const answer = await server.send("GET", "a?last=1", { headers });
    assert.deepEqual([answer.status, gunzipSync(answer.body).toString()], [200, LOG]);
    assert.equal((await server.send("GET", "a?offset=-1", { headers })).status, 304);
  });

  test("of the stream alone, and with a credential, depends on that too", async (context) => {
    const server = await withLog(context);
    assert.equal((await server.send("GET", "a", { headers: GZIP })).headers["vary"], "*");
    const auth = new AuthFile();
    const token = auth.token("t", [{ streams: ["**"], allow: ["create", "read"] }]);
    auth.write();
    const bearer = { Authorization: `Bearer ${token}` };
    const guarded = await startServer(context, { compress: true, auth: auth.path });
    await guarded.send("PUT", "a", { headers: { ...TEXT, ...bearer }, body: LOG });
    const answer = await guarded.send("GET", "a?offset=-1", { headers: { ...GZIP, ...bearer } });
    assert.deepEqual([answer.headers["content-encoding"], answer.headers["vary"]], ["gzip", "Authorization, Accept-Encoding"]);
  });

  test("is off without it", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: TEXT, body: LOG });
    const answer = await server.send("GET", "a?offset=-1", { headers: GZIP });
    assert.deepEqual([answer.text, answer.headers["vary"]], [LOG, undefined]);
  });

  test("serves many at once, and large chunks whose memory is used again", async (context) => {
    const server = await withLog(context, "text/plain", "x");
    const parts = Array.from({ length: 8 }, (_, at) => `${at} `.repeat(400_000));
    for (const body of parts) await server.send("POST", "a", { headers: TEXT, body });
    const whole = `x${parts.join("")}`;
    const readWhole = async (headers: Readonly<Record<string, string>>): Promise<string> => {
      let text = "";
      for (let offset = "-1"; ;) {
        const answer = await server.send("GET", `a?offset=${offset}`, { headers });
        const isCoded = answer.headers["content-encoding"] === "gzip";
        text += (isCoded ? gunzipSync(answer.body) : answer.body).toString();
        if (answer.headers["stream-up-to-date"] === "true") return text;
        offset = String(answer.headers["stream-next-offset"]);
      }
    };
    const read = await Promise.all([GZIP, GZIP, {}, GZIP, GZIP, {}, GZIP].map((headers) => readWhole(headers)));
    for (const text of read) assert.ok(text === whole);
  });
});
