import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import type { Bucket } from "../../../../src/storage/nats/jetstream/bucket.js";
import type { ClusterConnection } from "../../../../src/storage/nats/jetstream/connection.js";
import { JetStreamLog } from "../../../../src/storage/nats/jetstream/jetstream-log.js";
import type { Answer, Requests } from "../../../../src/storage/nats/jetstream/requests.js";
import { LogUnavailableError } from "../../../../src/storage/nats/log/replicated-log.js";
import { Subjects } from "../../../../src/storage/nats/log/subjects.js";
import { keptLog } from "../../../helpers/engine.js";
import { ManualClock } from "../../../helpers/manual-clock.js";

const OLD = { message: { seq: 1, data: "b2xk" } };
const NEW = { message: { seq: 2, data: "bmV3" } };

/** What a leader says of itself that heard of a majority so long ago; the bucket has three copies. */
function infoOf(agoMs: number): object {
  return { cluster: { leader: "n1", replicas: [{ active: agoMs * 1e6 }, { active: agoMs * 1e6 }] } };
}

/** A log whose questions are answered in turn with the given, and what was asked. */
function logOf(t: TestContext, answers: readonly object[]): { readonly log: JetStreamLog; readonly asked: readonly string[] } {
  const asked: string[] = [];
  const ask = (subject: string): Promise<Answer> => {
    const data = Buffer.from(JSON.stringify(answers[asked.length]));
    asked.push(subject);
    return Promise.resolve({ kind: "reply", message: { subject: "", data } });
  };
  const connection = { requests: { ask }, maxPayloadBytes: 1024 * 1024, fault: null, close: () => Promise.resolve() };
  const bucket = { shards: ["SD_b_0"], touches: "SD_b_touch", replicas: 3, subjects: new Subjects("b", 1) };
  // It uses no more of them.
  const given = [connection as unknown as ClusterConnection, bucket as unknown as Bucket, new ManualClock()] as const;
  const log = new JetStreamLog(...given, 5000, keptLog().log);
  t.after(() => log.close());
  return { log, asked };
}

describe("what a leader is asked for", () => {
  const read = "$JS.API.STREAM.MSG.GET.SD_b_0";
  const info = "$JS.API.STREAM.INFO.SD_b_0";

  test("is asked for again where it is only known since then that there is a leader: another may have answered", async (t) => {
    const { log, asked } = logOf(t, [OLD, infoOf(10), NEW, NEW]);
    assert.equal(String((await log.last("sd.b.0.s.x"))?.body), "new");
    assert.deepEqual(asked, [read, info, read]);
    await log.last("sd.b.0.s.x");
    assert.equal(asked.length, 4, "once that is known, one question is enough");
  });

  test("is not to be had from one that has heard of no majority for long", async (t) => {
    const { log, asked } = logOf(t, [OLD, infoOf(5000), infoOf(5000)]);
    await assert.rejects(log.last("sd.b.0.s.x"), LogUnavailableError);
    assert.deepEqual(asked, [read, info, info]);
  });
});

describe("what the user may not ask of a leader", () => {
  const read = "$JS.API.STREAM.MSG.GET.SD_b_0";
  const info = "$JS.API.STREAM.INFO.SD_b_0";

  /** A log on a server that refuses some subjects and leaves others unanswered, and what it takes again. */
  function refusing(t: TestContext) {
    const refused = new Set<string>();
    const silent = new Set<string>();
    const asked: string[] = [];
    const again: unknown[] = [];
    const clock = new ManualClock();
    const ask = (subject: string): Promise<Answer> => {
      asked.push(subject);
      if (refused.has(subject)) return Promise.resolve({ kind: "refused", why: `not ${subject}` });
      if (silent.has(subject)) return Promise.resolve({ kind: "silence" });
      const data = Buffer.from(JSON.stringify(subject.includes("INFO") ? infoOf(10) : subject.startsWith("sd.") ? { seq: 3 } : NEW));
      return Promise.resolve({ kind: "reply", message: { subject: "", data } });
    };
    const askFor = (...[subject, , , , read]: Parameters<Requests["askFor"]>) => ask(subject).then(read);
    const allowed = (...what: unknown[]): void => void again.push(what);
    const left: unknown[] = [];
    const leaveServer = (...how: unknown[]): boolean => left.push(how) > 0;
    const requests = { ask, askFor, deafness: null };
    const connection = {
      ...{ requests, maxPayloadBytes: 1024 * 1024, fault: null as string | null, allowed, leaveServer, onMoved: () => {} },
      close: async () => {},
    };
    const bucket = { shards: ["SD_b_0"], touches: "SD_b_touch", replicas: 3, subjects: new Subjects("b", 1) };
    // It uses no more of them.
    const given = [connection as unknown as ClusterConnection, bucket as unknown as Bucket, clock] as const;
    const { log: notices, lines } = keptLog();
    const log = new JetStreamLog(...given, 5000, notices, () => clock.nowMs());
    t.after(() => log.close());
    /** Seconds pass, in each of which the shard is looked at. */
    const pass = async (seconds: number): Promise<void> => {
      for (let second = 0; second < seconds; second += 1) {
        clock.advance(1000);
        await new Promise(setImmediate);
      }
    };
    return { log, lines, connection, refused, silent, asked, again, left, pass };
  }

  test("is named by the read and by the health, until it may", async (t) => {
    const { log, refused, again, pass } = refusing(t);
    refused.add(read);
    await assert.rejects(log.last("sd.b.0.s.x"), /may not do what streamdir needs: not \$JS\.API\.STREAM\.MSG\.GET\.SD_b_0/);
    assert.match(log.health().reason ?? "", /not \$JS\.API\.STREAM\.MSG\.GET\.SD_b_0/);
    assert.equal(log.health().writable, false);
    refused.clear();
    await pass(1);
    assert.deepEqual(log.health(), { writable: true, reason: null });
    assert.deepEqual(again, [["publish", read]]);
    assert.equal((await log.last("sd.b.0.s.x"))?.sequence, 2);
  });

  test("is known again while appends go on, which say that there is a leader", async (t) => {
    const { log, refused, pass } = refusing(t);
    refused.add(read);
    await assert.rejects(log.last("sd.b.0.s.x"), LogUnavailableError);
    refused.clear();
    for (let second = 0; second < 2; second += 1) {
      await log.publish("sd.b.0.s.x", "{}", Buffer.from("a"), null);
      await pass(1);
    }
    assert.deepEqual(log.health(), { writable: true, reason: null });
  });

  test("is not asked for again within the second: a server logs each question that it refuses", async (t) => {
    const { log, refused, asked, pass } = refusing(t);
    refused.add(read);
    for (let times = 0; times < 3; times += 1) await assert.rejects(log.last("sd.b.0.s.x"), /not \$JS\.API\.STREAM\.MSG\.GET\.SD_b_0/);
    assert.deepEqual(asked, [read]);
    await pass(5);
    assert.equal(asked.filter((subject) => subject === read).length, 6);
  });

  test("is told of each time that it may again, also of what is published", async (t) => {
    const { log, refused, again, pass } = refusing(t);
    const publish = () => log.publish("sd.b.0.s.x", "{}", Buffer.from("a"), null);
    for (const subject of ["sd.b.0.s.x", "sd.b.0.r"]) {
      refused.add("sd.b.0.s.x");
      assert.deepEqual(await publish(), { kind: "refused", why: "not sd.b.0.s.x" });
      assert.match(log.health().reason ?? "", /not sd\.b\.0\.s\.x/);
      refused.clear();
      if (subject === "sd.b.0.r") await pass(1);
      else await publish();
      assert.deepEqual(again.splice(0), [["publish", subject]]);
      assert.deepEqual(log.health(), { writable: true, reason: null });
    }
  });

  test("is forgotten once a server leaves that without an answer: one that is cut off from the others is left", async (t) => {
    const { log, connection, refused, silent, left, pass } = refusing(t);
    refused.add(info);
    await pass(7);
    assert.match(log.health().reason ?? "", /not \$JS\.API\.STREAM\.INFO\.SD_b_0/);
    // Silence of which the connection is the reason says nothing.
    refused.clear();
    silent.add(info);
    connection.fault = "nobody is connected";
    await pass(2);
    connection.fault = null;
    assert.match(log.health().reason ?? "", /not \$JS\.API\.STREAM\.INFO\.SD_b_0/);
    left.length = 0;
    await pass(1);
    assert.equal(log.health().reason, "no leader answers for SD_b_0");
    await pass(8);
    assert.deepEqual(left, [["silent", true]]);
  });

  test("of a stream of touches without a leader the health says so, and takes writes", async (t) => {
    const { log, lines, silent, left, pass } = refusing(t);
    const told = () => lines.splice(0).map(({ level, message }) => `${level} ${message}`);
    silent.add("$JS.API.STREAM.INFO.SD_b_touch");
    await pass(4);
    assert.deepEqual([log.health(), told()], [{ writable: true, reason: null }, []]);
    await pass(10);
    assert.deepEqual(log.health(), { writable: true, reason: "no leader answers for SD_b_touch" });
    assert.deepEqual([told(), left], [["error no leader answers for SD_b_touch"], []]);
    silent.clear();
    await pass(2);
    assert.deepEqual([log.health(), told()], [{ writable: true, reason: null }, ["info SD_b_touch has a leader again"]]);
  });

  test("is asked for at once where another server is connected, and what is not asked for by itself is forgotten", async (t) => {
    const { log, connection, refused, asked } = refusing(t);
    const consumer = /CONSUMER\.CREATE/;
    const list = async (): Promise<void> => {
      for await (const head of log.heads("streams")) assert.fail(`${head.sequence}`);
    };
    const { has } = refused;
    t.mock.method(refused, "has", (subject: string) => consumer.test(subject) || has.call(refused, subject));
    refused.add(read);
    await assert.rejects(list(), /not \$JS\.API\.CONSUMER\.CREATE/);
    await assert.rejects(log.last("sd.b.0.s.x"), /not \$JS\.API\.STREAM\.MSG\.GET/);
    connection.onMoved();
    asked.length = 0;
    assert.match(log.health().reason ?? "", /not \$JS\.API\.STREAM\.MSG\.GET/, "until that server has answered");
    await assert.rejects(list(), /not \$JS\.API\.CONSUMER\.CREATE/);
    await assert.rejects(log.last("sd.b.0.s.x"), /not \$JS\.API\.STREAM\.MSG\.GET/);
    assert.deepEqual(asked.filter((subject) => consumer.test(subject) || subject === read).length, 2);
  });

  test("is not known while it may have no answers", async (t) => {
    const { log, connection, refused } = refusing(t);
    refused.add(read);
    connection.fault = "no answers";
    await assert.rejects(log.last("sd.b.0.s.x"), /no answers/);
    connection.fault = null;
    assert.deepEqual(log.health(), { writable: true, reason: null });
  });

  test("of a list keeps its reads", async (t) => {
    const { log, refused } = refusing(t);
    const all = async (): Promise<void> => {
      for await (const head of log.heads("streams")) assert.fail(`${head.sequence}`);
    };
    t.mock.method(refused, "has", (subject: string) => subject.includes("CONSUMER"));
    await assert.rejects(all(), /not \$JS\.API\.CONSUMER\.CREATE\.SD_b_0\.sd_\w+/);
    assert.deepEqual(log.health(), { writable: true, reason: null });
    assert.equal((await log.last("sd.b.0.s.x"))?.sequence, 2);
  });
});
