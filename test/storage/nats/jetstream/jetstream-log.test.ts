import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import type { Bucket } from "../../../../src/storage/nats/jetstream/bucket.js";
import type { ClusterConnection } from "../../../../src/storage/nats/jetstream/connection.js";
import { JetStreamLog } from "../../../../src/storage/nats/jetstream/jetstream-log.js";
import type { Answer } from "../../../../src/storage/nats/jetstream/requests.js";
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

  /** A log on a server that refuses some subjects, and what was said of those that it takes again. */
  function refusing(t: TestContext) {
    const refused = new Set<string>();
    const again: unknown[] = [];
    const ask = (subject: string): Promise<Answer> => {
      if (refused.has(subject)) return Promise.resolve({ kind: "refused", why: `not ${subject}` });
      const data = Buffer.from(JSON.stringify(subject.includes("INFO") ? infoOf(10) : NEW));
      return Promise.resolve({ kind: "reply", message: { subject: "", data } });
    };
    const allowed = (...what: unknown[]): void => void again.push(what);
    const connection = { requests: { ask }, maxPayloadBytes: 1024 * 1024, fault: null as string | null, allowed, close: async () => {} };
    const bucket = { shards: ["SD_b_0"], touches: "SD_b_touch", replicas: 3, subjects: new Subjects("b", 1) };
    // It uses no more of them.
    const given = [connection as unknown as ClusterConnection, bucket as unknown as Bucket, new ManualClock()] as const;
    const log = new JetStreamLog(...given, 5000, keptLog().log);
    t.after(() => log.close());
    return { log, connection, refused, again };
  }

  test("is named by the read and by the health, until it may", async (t) => {
    const { log, refused, again } = refusing(t);
    refused.add(read);
    await assert.rejects(log.last("sd.b.0.s.x"), /may not do what streamdir needs: not \$JS\.API\.STREAM\.MSG\.GET\.SD_b_0/);
    assert.match(log.health().reason ?? "", /not \$JS\.API\.STREAM\.MSG\.GET\.SD_b_0/);
    assert.equal(log.health().writable, false);
    refused.clear();
    assert.equal((await log.last("sd.b.0.s.x"))?.sequence, 2);
    assert.deepEqual(log.health(), { writable: true, reason: null });
    assert.deepEqual(again, [["publish", read]]);
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
