import assert from "node:assert/strict";
import { after, before, describe, test, type TestContext } from "node:test";
import { systemClock } from "../../src/ops/clock.js";
import { openBucket, type Bucket } from "../../src/storage/nats/jetstream/bucket.js";
import { ClusterConnection } from "../../src/storage/nats/jetstream/connection.js";
import { JetStreamLog } from "../../src/storage/nats/jetstream/jetstream-log.js";
import { HeaderBlock, headerEncoder, headersOf } from "../../src/storage/nats/client/header-block.js";
import { loadNatsClient, type NatsClient, type NatsMessage } from "../../src/storage/nats/client/nats-client.js";
import { LogUnavailableError, type LogMessage } from "../../src/storage/nats/log/replicated-log.js";
import { keptLog } from "../helpers/engine.js";
import { addressOf, newBucket } from "./buckets.js";
import { NatsCluster } from "./nats-cluster.js";

let cluster: NatsCluster;

before(async () => {
  cluster = await NatsCluster.start({ size: 3 });
});
after(() => cluster.stop());

/** A log on a bucket, one of its own where none is named. */
async function openLog(t: TestContext, bucket = newBucket(), query = "?shards=2"): Promise<{ log: JetStreamLog; bucket: Bucket }> {
  const address = addressOf(cluster, query, bucket);
  const clock = systemClock();
  const client = await loadNatsClient();
  const connection = await ClusterConnection.open({ address, credsFile: "", client, clock, log: keptLog().log });
  const opened = await openBucket(connection.requests, address, clock);
  const log = new JetStreamLog(connection, opened, clock, 5000, keptLog().log);
  t.after(() => log.close());
  return { log, bucket: opened };
}

/** Publishes a message, and gives its sequence. */
async function stored(log: JetStreamLog, subject: string, head: string, body: string | Buffer, expected: number | null): Promise<number> {
  const published = await log.publish(subject, head, Buffer.from(body), expected);
  assert.equal(published.kind, "stored");
  return published.kind === "stored" ? published.sequence : 0;
}

/** Publishes so many messages behind each other, between those of another subject; their sequences. */
async function storedChain(log: JetStreamLog, subject: string, other: string, count: number): Promise<number[]> {
  const sequences: number[] = [];
  for (let index = 0; index < count; index += 1) {
    sequences.push(await stored(log, subject, `head ${index}`, `body ${index}`, sequences.at(-1) ?? 0));
    if (index % 3 === 0) await stored(log, other, "", "", null);
  }
  return sequences;
}

function gist(message: LogMessage | null): unknown {
  return message === null ? null : [message.sequence, message.previous, message.head, message.body.toString()];
}

/** Two subjects of one shard. */
function subjectsOf({ subjects }: Bucket): readonly [string, string] {
  const first = subjects.ofStream("first");
  for (let index = 0; ; index += 1) {
    const other = subjects.ofStream(`other${index}`);
    if (other.split(".")[2] === first.split(".")[2]) return [first, other];
  }
}

describe("messages of a subject", () => {
  test("are stored behind the one that they expect, and no other", async (t) => {
    const { log, bucket } = await openLog(t);
    const [subject] = subjectsOf(bucket);
    assert.equal(await log.last(subject), null);
    const first = await stored(log, subject, "one", "a", 0);
    const second = await stored(log, subject, '{"ж":"✓"}', "b", first);
    for (const expected of [0, first, second + 1]) {
      const published = await log.publish(subject, "late", Buffer.from("x"), expected);
      assert.equal(published.kind, "moved", `expected ${expected}`);
    }
    assert.deepEqual(gist(await log.last(subject)), [second, first, '{"ж":"✓"}', "b"]);
  });

  test("of many at once that expect the same, one is stored", async (t) => {
    const { log, bucket } = await openLog(t);
    const [subject] = subjectsOf(bucket);
    let last = 0;
    for (let round = 0; round < 20; round += 1) {
      const all = await Promise.all(
        Array.from({ length: 8 }, (_, index) => log.publish(subject, `${round} ${index}`, Buffer.alloc(0), last)),
      );
      const won = all.flatMap((published) => (published.kind === "stored" ? [published.sequence] : []));
      assert.equal(won.length, 1, `round ${round}`);
      assert.ok(all.every(({ kind }) => kind === "stored" || kind === "moved" || kind === "pending"));
      last = won[0] ?? 0;
    }
  });

  test("are found from any sequence on, one and many, with their predecessors, and without other subjects", async (t) => {
    const { log, bucket } = await openLog(t);
    const [subject, other] = subjectsOf(bucket);
    const sequences = await storedChain(log, subject, other, 20);
    const expected = sequences.map((sequence, index) => [sequence, sequences[index - 1] ?? 0, `head ${index}`, `body ${index}`]);
    for (let sequence = 1; sequence <= (sequences.at(-1) ?? 0); sequence += 1) {
      const from = expected.filter(([at]) => Number(at) >= sequence);
      assert.deepEqual(gist(await log.next(subject, sequence)), from[0]);
      assert.deepEqual(gist(await log.find(subject, sequence)), from[0]);
      assert.deepEqual((await log.range(subject, sequence, 2 ** 20)).map(gist), from);
    }
    const beyond = (sequences.at(-1) ?? 0) + 1;
    assert.deepEqual([await log.next(subject, beyond), await log.find(subject, beyond)], [null, null]);
    assert.deepEqual(await log.range(subject, beyond, 2 ** 20), []);
  });

  test("come about as many bytes at a time as are asked for, and at least one", async (t) => {
    const { log, bucket } = await openLog(t);
    const [subject] = subjectsOf(bucket);
    let last = 0;
    for (let index = 0; index < 40; index += 1) last = await stored(log, subject, "", Buffer.alloc(10_000, index), last);
    assert.equal((await log.range(subject, 1, 1)).length, 1);
    const some = (await log.range(subject, 1, 100_000)).length;
    assert.ok(some >= 5 && some <= 11, `${some} messages`);
    assert.equal((await log.range(subject, 1, 2 ** 20)).length, 40);
  });

  test("without a body, and with as much as there may be, are like any other", async (t) => {
    const { log, bucket } = await openLog(t);
    const [subject] = subjectsOf(bucket);
    const longest = Buffer.alloc(log.maxBodyBytes, "x");
    const head = "h".repeat(60 * 1024);
    let last = 0;
    for (const body of ["", "", "a", "", longest, ""]) last = await stored(log, subject, head, body, last);
    const lengths = (messages: readonly LogMessage[]): number[] => messages.map(({ body }) => body.length);
    assert.deepEqual(lengths(await log.range(subject, 1, 2 ** 24)), [0, 0, 1, 0, longest.length, 0]);
    const found = await log.next(subject, last - 1);
    assert.equal(found?.body.equals(longest), true);
    assert.equal(found?.head, head);
    const tooLong = Buffer.alloc(2 ** 20 + 1);
    const published = await log.publish(subject, "", tooLong, last);
    assert.notEqual(published.kind, "stored");
    assert.equal((await log.last(subject))?.sequence, last);
  });

  test("are gone before the sequence of a purge, or all of them, and never come back", async (t) => {
    const { log, bucket } = await openLog(t);
    const [subject, other] = subjectsOf(bucket);
    const sequences = await storedChain(log, subject, other, 9);
    await log.purge(subject, sequences[4] ?? 0);
    assert.equal((await log.next(subject, 1))?.sequence, sequences[4]);
    assert.equal((await log.range(subject, 1, 2 ** 20)).length, 5);
    await log.purge(subject, null);
    assert.equal(await log.last(subject), null);
    assert.ok((await log.last(other)) !== null);
    assert.ok((await stored(log, subject, "new", "", 0)) > (sequences.at(-1) ?? 0));
  });
});

describe("subjects of a bucket", () => {
  test("with a last token for any are counted", async (t) => {
    const { log, bucket } = await openLog(t);
    const { subjects } = bucket;
    assert.equal(await log.count(subjects.ofEdges("source", "id")), 0);
    for (let index = 0; index < 12; index += 1) {
      await stored(log, subjects.ofEdge("source", "id", `fork${index}`), "", "", null);
      await stored(log, subjects.ofEdge("source", "another", `fork${index}`), "", "", null);
    }
    assert.equal(await log.count(subjects.ofEdges("source", "id")), 12);
    await log.purge(subjects.ofEdge("source", "id", "fork3"), null);
    assert.equal(await log.count(subjects.ofEdges("source", "id")), 11);
  });

  test("touches have the last alone", async (t) => {
    const { log, bucket } = await openLog(t);
    const subject = bucket.subjects.ofTouch("s");
    for (const time of ["1", "2", "3"]) await stored(log, subject, "id", time, null);
    assert.equal((await log.last(subject))?.body.toString(), "3");
    assert.equal((await log.next(subject, 1))?.body.toString(), "3");
  });

  test("have their heads listed, of several thousand streams, each once and the last", async (t) => {
    const { log, bucket } = await openLog(t);
    const count = 3500;
    let next = 0;
    const work = async (): Promise<void> => {
      while (next < count) {
        const index = next++;
        const subject = bucket.subjects.ofStream(`stream/${index}`);
        const first = await stored(log, subject, `first ${index}`, "body", 0);
        if (index % 2 === 0) await stored(log, subject, `last ${index}`, "", first);
      }
    };
    await Promise.all(Array.from({ length: 64 }, work));
    await stored(log, bucket.subjects.ofEdge("source", "id", "fork"), "no stream's", "", null);
    const heads: string[] = [];
    for await (const { head } of log.heads("streams")) heads.push(head);
    const expected = Array.from({ length: count }, (_, index) => `${index % 2 === 0 ? "last" : "first"} ${index}`);
    assert.deepEqual(heads.sort(), expected.sort());
  });

  test("have no heads where nothing is stored, and a list can be left early", async (t) => {
    const { log, bucket } = await openLog(t);
    for await (const { head } of log.heads("streams")) assert.fail(head);
    for (const name of ["a", "b", "c"]) await stored(log, bucket.subjects.ofStream(name), name, "", 0);
    for await (const { head } of log.heads("streams")) {
      assert.match(head, /^[abc]$/);
      break;
    }
  });
});

describe("what others are told", () => {
  test("each message of a subject is told with all that it has, until nobody wants to know", async (t) => {
    const name = newBucket();
    const [{ log, bucket }, { log: other }] = [await openLog(t, name), await openLog(t, name)];
    const [subject, elsewhere] = subjectsOf(bucket);
    const told: LogMessage[] = [];
    let onTold = (): void => {};
    const leave = other.watch(
      subject,
      () => true,
      (message) => {
        told.push(message);
        onTold();
      },
    );
    // The server has the subscription once it has answered what came behind.
    await other.last(subject);
    const first = await stored(log, subject, "one", "a", 0);
    await stored(log, elsewhere, "elsewhere", "", 0);
    const second = await stored(log, subject, "two", "", first);
    while (told.length < 2) await new Promise<void>((resolve) => (onTold = resolve));
    assert.deepEqual(told.map(gist), [
      [first, 0, "one", "a"],
      [second, first, "two", ""],
    ]);
    leave();
    await other.last(subject);
    await stored(log, subject, "three", "", second);
    await other.last(subject);
    assert.equal(told.length, 2);
  });

  test("an announcement comes to all, also to who made it", async (t) => {
    const name = newBucket();
    const logs = [(await openLog(t, name)).log, (await openLog(t, name)).log];
    const heard = logs.map((log) => new Promise<string>((resolve) => log.listen(resolve, () => undefined)));
    await Promise.all(logs.map((log) => log.last(`sd.${name}.0.s.x`)));
    logs[0]?.announce("news");
    assert.deepEqual(await Promise.all(heard), ["news", "news"]);
  });
});

test("the client shows headers as bytes, and takes them so", async (t) => {
  const client = await loadNatsClient();
  const connection = await client.connect({ servers: [...cluster.servers], name: "test" } as unknown as Parameters<
    NatsClient["connect"]
  >[0]);
  t.after(() => connection.close());
  const fields = [
    ["Sd", '{"m":"ü: \\r\\n"}'],
    ["Nats-Sequence", "7"],
  ] as const;
  const own = client.headers();
  for (const [name, value] of fields) own.append(name, value);
  const headers = headerEncoder(client)(fields);
  assert.notEqual(own.encode, undefined);
  assert.deepEqual(Buffer.from(headers.encode?.() ?? []), Buffer.from(own.encode?.() ?? []));
  const [arrived] = await new Promise<NatsMessage[]>((resolve) => {
    connection.subscribe("headers", { callback: (_error, message) => resolve([message]) });
    connection.publish("headers", "data", { headers });
  });
  assert.ok(arrived !== undefined && headersOf(arrived) instanceof HeaderBlock);
  for (const [name, value] of fields) {
    assert.equal(headersOf(arrived)?.get(name), value);
    assert.equal(arrived.headers?.get(name), value);
  }
});

test("a log that is closed has no answer", async (t) => {
  const { log, bucket } = await openLog(t);
  const [subject] = subjectsOf(bucket);
  assert.deepEqual(log.health(), { writable: true, reason: null });
  await log.close();
  await assert.rejects(log.last(subject), LogUnavailableError);
  await assert.rejects(log.range(subject, 1, 1), LogUnavailableError);
  assert.equal((await log.publish(subject, "", Buffer.alloc(0), 0)).kind, "untaken");
});
