import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ForwardClock, startFrontEnds, startTwo, type Answered, type FrontEnd } from "./front-ends.js";
import { newBucket } from "./buckets.js";
import { NatsCluster } from "./nats-cluster.js";

let cluster: NatsCluster;

before(async () => {
  cluster = await NatsCluster.start({ size: 3 });
});
after(() => cluster.stop());

function nextOffset({ headers }: Answered): string {
  return headers.get("Stream-Next-Offset") ?? "";
}

function codeOf({ text }: Answered): unknown {
  return (JSON.parse(text) as { code?: unknown }).code;
}

describe("streams that two front ends make and delete", () => {
  test("of creations at once exactly one makes the stream", async (t) => {
    const [one, other] = await startTwo(t, cluster);
    for (let round = 0; round < 20; round += 1) {
      const answers = await Promise.all(
        Array.from({ length: 6 }, (_, index) => (index % 2 === 0 ? one : other).send("PUT", `race/${round}`)),
      );
      const statuses = answers.map(({ status }) => status).sort();
      assert.deepEqual(statuses, [200, 200, 200, 200, 200, 201], `round ${round}`);
    }
  });

  test("a deletion ends events at the other, and a stream of the same name is another one", async (t) => {
    const [one, other] = await startTwo(t, cluster);
    const old = nextOffset(await one.expect(201, "PUT", "s", { body: "old bytes" }));
    const events = await other.follow(t, "s?live=sse&offset=-1");
    await events.until(/old bytes[^]*upToDate/);
    await one.expect(204, "DELETE", "s");
    await events.toEnd();
    await other.expect(404, "GET", "s?offset=-1");
    await one.expect(201, "PUT", "s", { body: "new" });
    for (const frontEnd of [other, one]) {
      assert.equal(codeOf(await frontEnd.expect(410, "GET", `s?offset=${old}`)), "offset-gone");
      assert.equal((await frontEnd.expect(200, "GET", "s?offset=-1")).text, "new");
    }
  });

  test("a fork is not made of a source that is deleted at the same time, or has the source's bytes", async (t) => {
    const [one, other] = await startTwo(t, cluster);
    const headersOf = (source: string) => ({ "Stream-Forked-From": `/v1/stream/${source}` });
    const seen = new Set<number>();
    for (let round = 0; round < 20; round += 1) {
      const [source, fork] = [`source/${round}`, `fork/${round}`];
      await one.expect(201, "PUT", source, { body: "the source's bytes" });
      const making = one.send("PUT", fork, { headers: headersOf(source) });
      // The deletion comes sooner and later.
      for (let turn = round % 5; turn > 0; turn -= 1) await other.expect(200, "HEAD", source);
      await other.expect(204, "DELETE", source);
      const made = await making;
      seen.add(made.status);
      if (made.status === 201) {
        for (const frontEnd of [other, one])
          assert.equal((await frontEnd.expect(200, "GET", `${fork}?offset=-1`)).text, "the source's bytes");
        await other.expect(410, "GET", `${source}?offset=-1`);
        await other.expect(204, "DELETE", fork);
      } else assert.ok(made.status === 404 || made.status === 409, `${made.status}: ${made.text}`);
      await other.expect(404, "GET", `${fork}?offset=-1`);
    }
    t.diagnostic(`forks were answered with ${[...seen].join(", ")}`);
  });

  test("a name of 1,024 bytes of UTF-8 is a name like any other", async (t) => {
    const [one, other] = await startTwo(t, cluster);
    const name = encodeURIComponent("ж".repeat(510) + "/日a");
    assert.equal(Buffer.byteLength(decodeURIComponent(name)), 1025);
    const target = name.slice(0, -1).replaceAll("%2F", "/");
    await one.expect(201, "PUT", target, { body: "x" });
    await other.expect(204, "POST", target, { body: "y" });
    assert.equal((await one.expect(200, "GET", `${target}?offset=-1`)).text, "xy");
    await other.expect(204, "DELETE", target);
    await one.expect(404, "HEAD", target);
  });
});

describe("what one front end has acknowledged", () => {
  test("is there at once at the other, also under load", async (t) => {
    const [one, other] = await startTwo(t, cluster);
    await one.expect(201, "PUT", "s");
    await one.expect(201, "PUT", "busy");
    let isOver = false;
    const load = Array.from({ length: 8 }, async () => {
      while (!isOver) await one.expect(204, "POST", "busy", { body: "b".repeat(100) });
    });
    try {
      for (let index = 0; index < 200; index += 1) {
        const [writer, reader] = index % 2 === 0 ? [one, other] : [other, one];
        const tail = nextOffset(await writer.expect(204, "POST", "s", { body: `${index};` }));
        const read = await reader.expect(200, "GET", "s?last=1");
        assert.equal(read.text, `${index};`);
        assert.equal(nextOffset(await reader.expect(200, "HEAD", "s")), tail);
      }
    } finally {
      isOver = true;
      await Promise.all(load);
    }
  });

  test("counts for places and conditions at the other", async (t) => {
    const [one, other] = await startTwo(t, cluster);
    await one.expect(201, "PUT", "s", { body: "first " });
    const before = new Date().toISOString();
    const tail = nextOffset(await one.expect(204, "POST", "s", { body: "second " }));
    assert.equal((await other.expect(200, "GET", "s?last=1")).text, "second ");
    assert.equal((await other.expect(200, "GET", `s?since=${before}`)).text, "second ");
    const onTail = { "If-Match": `"${tail}"` };
    await other.expect(204, "POST", "s", { body: "third ", headers: onTail });
    assert.equal(codeOf(await one.expect(412, "POST", "s", { body: "late ", headers: onTail })), "tail-moved");
    assert.equal((await one.expect(200, "GET", "s?offset=-1")).text, "first second third ");
  });

  test("wakes who waits at the other, with bytes and with the end", async (t) => {
    const [one, other] = await startTwo(t, cluster);
    const tail = nextOffset(await one.expect(201, "PUT", "s"));
    const events = await other.follow(t, "s?live=sse&offset=now");
    await events.until(/upToDate/);
    const woken = other.send("GET", `s?live=long-poll&offset=${tail}`);
    await one.expect(204, "POST", "s", { body: "bytes" });
    assert.equal((await woken).text, "bytes");
    await events.until(/data: ?bytes/);
    const ended = other.send("GET", `s?live=long-poll&offset=${nextOffset(await woken)}`);
    await one.expect(204, "POST", "s", { headers: { "Stream-Closed": "true" } });
    const { status, headers } = await ended;
    assert.deepEqual([status, headers.get("Stream-Closed")], [204, "true"]);
    assert.match(await events.toEnd(), /"streamClosed":true/);
    assert.equal(codeOf(await other.expect(409, "POST", "s", { body: "late" })), "stream-closed");
  });

  test("is in the other's list, and in its events", async (t) => {
    const [one, other] = await startTwo(t, cluster);
    const namesAt = async (frontEnd: FrontEnd): Promise<string[]> => {
      const { text } = await frontEnd.expect(200, "GET", "__ds/streams");
      return (JSON.parse(text) as { streams: { name: string }[] }).streams.map(({ name }) => name);
    };
    assert.deepEqual(await namesAt(other), []);
    const events = await other.follow(t, "__ds/streams?live=sse");
    await events.until(/event: control/);
    await one.expect(201, "PUT", "b");
    await one.expect(201, "PUT", "a");
    await events.until(/created[^]*"name":"b"[^]*created[^]*"name":"a"/);
    assert.deepEqual(await namesAt(other), ["a", "b"]);
    await one.expect(204, "POST", "b", { headers: { "Stream-Closed": "true" } });
    await events.until(/closed[^]*"name":"b"/);
    await one.expect(204, "DELETE", "b");
    await events.until(/deleted[^]*"name":"b"/);
    assert.deepEqual(await namesAt(other), ["a"]);
  });
});

describe("times, limits and producers of two front ends", () => {
  test("a sliding time to live is kept up by reads at either, and is over for both", async (t) => {
    const clock = new ForwardClock();
    const [one, other] = await startTwo(t, cluster, { clock });
    await one.expect(201, "PUT", "s", { headers: { "Stream-TTL": "60" }, body: "x" });
    for (let round = 0; round < 4; round += 1) {
      clock.aheadMs += 45_000;
      await (round % 2 === 0 ? other : one).expect(200, "GET", "s?offset=-1");
    }
    clock.aheadMs += 61_000;
    await other.expect(404, "GET", "s?offset=-1");
    await one.expect(404, "GET", "s?offset=-1");
    await one.expect(201, "PUT", "s", { headers: { "Stream-TTL": "60" }, body: "new" });
    assert.equal((await other.expect(200, "GET", "s?offset=-1")).text, "new");
  });

  test("retention drops the beginning under a reader at the other", async (t) => {
    const [one, other] = await startTwo(t, cluster, { retentionBytes: 64 * 1024 });
    const start = nextOffset(await one.expect(201, "PUT", "s", { body: "the first bytes" }));
    await other.expect(200, "GET", `s?offset=${start}`);
    let earliest = "";
    for (let index = 0; earliest === ""; index += 1) {
      assert.ok(index < 100, "nothing is dropped");
      await one.expect(204, "POST", "s", { body: String(index % 10).repeat(8192) });
      earliest = (await other.expect(200, "HEAD", "s")).headers.get("Stream-Earliest-Offset") ?? "";
    }
    const refused = await other.expect(410, "GET", `s?offset=${start}`);
    assert.equal(codeOf(refused), "offset-gone");
    const from = refused.headers.get("Stream-Earliest-Offset") ?? "";
    const whole = await other.expect(200, "GET", `s?offset=${from}`);
    assert.ok(whole.text.length >= 48 * 1024 && whole.text.length <= 80 * 1024, `${whole.text.length} bytes are kept`);
    assert.equal((await one.expect(200, "GET", "s?offset=-1")).text, whole.text);
  });

  test("a front end that has just started answers the duplicate of each of 4,096 producers", async (t) => {
    const bucket = newBucket();
    const [one, other] = await startTwo(t, cluster, { bucket });
    await one.expect(201, "PUT", "s");
    const headersOf = (index: number) => ({ "Producer-Id": `producer-${index}`, "Producer-Epoch": "0", "Producer-Seq": "0" });
    const each = async (count: number, send: (index: number) => Promise<unknown>): Promise<void> => {
      let next = 0;
      const work = async (): Promise<void> => {
        while (next < count) await send(next++);
      };
      await Promise.all(Array.from({ length: 64 }, work));
    };
    await each(4096, (index) => one.expect(200, "POST", "s", { headers: headersOf(index), body: "x" }));
    const [fresh] = await startFrontEnds(t, cluster, 1, { bucket });
    assert.ok(fresh !== undefined);
    await each(4096, (index) => fresh.expect(204, "POST", "s", { headers: headersOf(index), body: "x" }));
    const extra = await other.expect(409, "POST", "s", { headers: headersOf(4096), body: "x" });
    assert.equal(codeOf(extra), "too-many-producers");
    assert.equal((await other.expect(200, "GET", "s?offset=-1")).text.length, 4096);
  });

  test("an append is as long as a message may be, and no longer", async (t) => {
    const [one, other] = await startTwo(t, cluster);
    const limit = 960 * 1024;
    await one.expect(201, "PUT", "s");
    await one.expect(204, "POST", "s", { body: "a".repeat(limit) });
    assert.equal((await other.expect(200, "GET", "s?offset=-1")).text.length, limit);
    assert.equal(codeOf(await one.expect(413, "POST", "s", { body: "a".repeat(limit + 1) })), "body-too-large");
    const json = { "Content-Type": "application/json" };
    await one.expect(201, "PUT", "json", { headers: json });
    const longest = `"${"a".repeat(limit - 4)}"`;
    await one.expect(204, "POST", "json", { headers: json, body: longest });
    assert.equal((await other.expect(200, "GET", "json?last=1")).text, `[${longest}]`);
    // It is stored with what ends it, of two bytes, which is one too many.
    const grows = await other.expect(413, "POST", "json", { headers: json, body: `"${"a".repeat(limit - 3)}"` });
    assert.equal(codeOf(grows), "body-too-large");
    const fits = `["${"a".repeat(limit - 4)}"]`;
    assert.equal(fits.length, limit);
    await other.expect(204, "POST", "json", { headers: json, body: fits });
    assert.equal((await one.expect(200, "GET", "json?last=1")).text, fits);
  });
});
