import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { startServer, type TestServer } from "../../helpers/test-server.js";
import type { Answer } from "../../helpers/raw-connection.js";

const TEXT = { "Content-Type": "text/plain" };
const START = "0000000000000000_0000000000000000";

function appendAt(server: TestServer, token: string | undefined, body: string, more = {}, name = "a"): Promise<Answer> {
  return server.send("POST", name, { headers: { ...TEXT, "If-Match": `"${token}"`, ...more }, body });
}

/** Status, and the code of a refusal. */
function gist({ status, text }: Answer): string {
  return status < 400 ? String(status) : `${status} ${JSON.parse(text).code}`;
}

async function tailOf(server: TestServer, name = "a"): Promise<string | undefined> {
  return (await server.send("HEAD", name)).headers["stream-next-offset"];
}

describe("POST with If-Match", () => {
  test("is stored where the stream ends there, and else refused with where it ends", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: TEXT });
    const first = await appendAt(server, START, "one");
    assert.equal(gist(first), "204");
    const tail = first.headers["stream-next-offset"];
    const late = await appendAt(server, START, "two");
    assert.equal(gist(late), "412 tail-moved");
    assert.equal(late.headers["stream-next-offset"], tail);
    assert.equal(late.headers["cache-control"], "no-store");
    assert.equal(gist(await appendAt(server, tail, "two")), "204");
    assert.equal((await server.send("GET", "a")).text, "onetwo");
  });

  test("of many at once exactly one is stored", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: TEXT, body: "start;" });
    for (let round = 0; round < 5; round += 1) {
      const tail = await tailOf(server);
      const answers = await Promise.all(Array.from({ length: 8 }, (_, at) => appendAt(server, tail, `${round}.${at};`)));
      assert.equal(answers.filter((answer) => gist(answer) === "204").length, 1);
      const winner = answers.find(({ status }) => status === 204)?.headers["stream-next-offset"];
      for (const answer of answers.filter(({ status }) => status !== 204)) {
        assert.equal(gist(answer), "412 tail-moved");
        assert.equal(answer.headers["stream-next-offset"], winner);
      }
    }
    assert.match((await server.send("GET", "a")).text, /^start;0\.\d;1\.\d;2\.\d;3\.\d;4\.\d;$/);
  });

  test("holds after a restart", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: TEXT });
    const tail = (await appendAt(server, START, "one")).headers["stream-next-offset"];
    await server.server.close();
    const again = await startServer(context, { dir: server.dir });
    assert.equal(gist(await appendAt(again, START, "two")), "412 tail-moved");
    assert.equal(gist(await appendAt(again, tail, "two")), "204");
  });

  test("of a stream that had the name before is refused", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: TEXT, body: "12345" });
    const old = await tailOf(server);
    await server.send("DELETE", "a");
    await server.send("PUT", "a", { headers: TEXT, body: "abcde" });
    assert.equal(gist(await appendAt(server, old, "x")), "412 tail-moved");
    assert.equal(gist(await appendAt(server, await tailOf(server), "x")), "204");
  });

  test("knows the end that a fork shares with its source, and not the source's later ones", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: TEXT, body: "12345" });
    const point = await tailOf(server);
    await server.send("PUT", "f", { headers: { "Stream-Forked-From": "/v1/stream/a" } });
    const later = (await appendAt(server, point, "678")).headers["stream-next-offset"];
    assert.equal(gist(await appendAt(server, later, "x", {}, "f")), "412 tail-moved");
    assert.equal(gist(await appendAt(server, point, "abc", {}, "f")), "204");
    assert.equal(gist(await appendAt(server, later, "x", {}, "f")), "412 tail-moved");
    assert.equal((await server.send("GET", "f")).text, "12345abc");
  });

  test("leaves the usual answers as they are", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: TEXT, body: "12345" });
    assert.equal(gist(await appendAt(server, START, "x", {}, "nothing")), "404 stream-not-found");
    assert.equal(gist(await appendAt(server, START, "x", { "Content-Type": "image/png" })), "409 content-type-mismatch");
    assert.equal(gist(await appendAt(server, START, "", { "Stream-Closed": "true" })), "412 tail-moved");
    assert.equal(gist(await appendAt(server, await tailOf(server), "", { "Stream-Closed": "true" })), "204");
    assert.equal(gist(await appendAt(server, START, "x")), "409 stream-closed");
    assert.equal(gist(await appendAt(server, START, "", { "Stream-Closed": "true" })), "204");
    const producer = { "Producer-Id": "p", "Producer-Epoch": "0", "Producer-Seq": "0" };
    assert.equal(gist(await appendAt(server, START, "x", producer)), "400 invalid-header");
  });
});
