import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import test from "node:test";
import { Layout, segmentPath } from "../../src/storage/file/format/layout.js";
import { startServer, type TestServer } from "../helpers/test-server.js";

const JSON_TYPE = { "Content-Type": "application/json" };
const SMALL_SEGMENTS = { segmentBytes: 4096, journalBytes: 65_536, journalBypassBytes: 4096 };
/** Two of them make a segment. */
const MESSAGE = JSON.stringify("x".repeat(1500));

/** All that can be read of a stream, when each refusal is followed to the offset that it names; and how many there were. */
async function readPastDamage(server: TestServer, name: string): Promise<{ messages: number; refusals: number }> {
  const found = { messages: 0, refusals: 0 };
  for (let offset = "-1"; ;) {
    const { status, headers, text } = await server.send("GET", `${name}?offset=${offset}`);
    const next = String(headers["stream-next-offset"]);
    assert.notEqual(next, offset, "it goes on");
    if (status === 500) {
      const { code, detail } = JSON.parse(text);
      assert.deepEqual([code, detail], ["stream-damaged", `It can be read again from the offset ${next} on.`]);
      found.refusals += 1;
    } else {
      assert.equal(status, 200);
      found.messages += JSON.parse(text).length;
      if (headers["stream-up-to-date"] === "true") return found;
    }
    offset = next;
  }
}

test("a reader of messages gets past a damaged segment by the offset that it is given, also in a fork", async (context) => {
  const before = await startServer(context, SMALL_SEGMENTS);
  await before.send("PUT", "s", { headers: JSON_TYPE });
  for (let count = 0; count < 7; count += 1)
    assert.equal((await before.send("POST", "s", { headers: JSON_TYPE, body: MESSAGE })).status, 204);
  const fork = { "Stream-Forked-From": "/v1/stream/s", "Stream-Fork-Offset": "-1", "Stream-Fork-Sub-Offset": "3" };
  assert.equal((await before.send("PUT", "fork", { headers: { ...JSON_TYPE, ...fork }, body: "[1,2]" })).status, 201);
  await before.stop();

  const segmentBytes = 2 * (MESSAGE.length + 2);
  // The second segment: the fork's point is in its middle.
  writeFileSync(segmentPath(new Layout(before.dir).streamDirectory("s"), segmentBytes), "spoilt");
  const server = await startServer(context, { ...SMALL_SEGMENTS, dir: before.dir });
  assert.deepEqual(await readPastDamage(server, "s"), { messages: 5, refusals: 1 });
  assert.deepEqual(await readPastDamage(server, "fork"), { messages: 4, refusals: 1 });
  await server.send("POST", "s", { headers: JSON_TYPE, body: "[3]" });
  assert.deepEqual(await readPastDamage(server, "s"), { messages: 6, refusals: 1 });
});
