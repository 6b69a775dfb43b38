import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  EXPECTED_HEADER,
  jsonOf,
  majorityAgoMs,
  messageOfConsumer,
  messageOfHeaders,
  messageOfLeader,
  publishedOf,
  stateOf,
} from "../../../../src/storage/nats/jetstream/answers.js";
import type { NatsHeaders, NatsMessage } from "../../../../src/storage/nats/client/nats-client.js";

function headersWith(entries: Readonly<Record<string, string>>): NatsHeaders {
  return { code: 0, description: "", get: (name) => entries[name] ?? "", append: () => {} };
}

function answerOf(value: unknown): NatsMessage {
  return { subject: "", data: Buffer.from(JSON.stringify(value)) };
}

describe("the acknowledgement of a publish", () => {
  const refusal = (code: number, description = ""): unknown => ({ error: { code: 400, err_code: code, description } });
  const table: readonly (readonly [string, unknown, unknown])[] = [
    ["a sequence", { stream: "SD_b_0", seq: 7 }, { kind: "stored", sequence: 7 }],
    ["no sequence", { stream: "SD_b_0" }, { kind: "unknown" }],
    ["another last sequence", refusal(10_071), { kind: "moved" }],
    ["another publish on its way", refusal(10_164), { kind: "pending" }],
    ["no leader", refusal(10_008), { kind: "untaken" }],
    ["no resources", refusal(10_023), { kind: "full" }],
    ["no storage", refusal(10_047), { kind: "full" }],
    ["the account's limit", refusal(10_002, "resource limits exceeded for account"), { kind: "full" }],
    ["no memory", refusal(10_028), { kind: "full" }],
    ["the stream's limit of bytes", refusal(10_077, "maximum bytes exceeded"), { kind: "full" }],
    ["a disk that fails, which others may not share", refusal(10_077, "no space left on device"), { kind: "unknown" }],
    ["anything else", refusal(10_999), { kind: "unknown" }],
    ["a refusal without a code", { error: {} }, { kind: "unknown" }],
  ];
  for (const [name, answer, published] of table) test(`with ${name}`, () => assert.deepEqual(publishedOf(answerOf(answer)), published));
});

describe("a message of the log", () => {
  test("comes from a leader with its headers as text", () => {
    const hdrs = Buffer.from(`NATS/1.0\r\n${EXPECTED_HEADER}: 4\r\nSd: {"m":"a: ü"}\r\n\r\n`).toString("base64");
    const answer = { message: { subject: "s", seq: 9, hdrs, data: Buffer.from("body").toString("base64") } };
    assert.deepEqual(messageOfLeader(answer), { sequence: 9, previous: 4, head: '{"m":"a: ü"}', body: Buffer.from("body") });
  });

  test("comes from a leader without headers and body", () => {
    assert.deepEqual(messageOfLeader({ message: { seq: 9 } }), { sequence: 9, previous: 0, head: "", body: Buffer.alloc(0) });
    assert.equal(messageOfLeader({}), null);
    assert.equal(messageOfLeader({ message: { seq: "9" } }), null);
  });

  test("comes from any server with its place in its headers, and keeps no foreign memory", () => {
    const data = new Uint8Array([1, 2]);
    const headers = headersWith({ "Nats-Sequence": "9", [EXPECTED_HEADER]: "4", Sd: "{}" });
    const found = messageOfHeaders({ subject: "", data, headers });
    data[0] = 5;
    assert.deepEqual(found, { sequence: 9, previous: 4, head: "{}", body: Buffer.from([1, 2]) });
    assert.equal(messageOfHeaders({ subject: "", data, headers: headersWith({}) }), null);
    assert.equal(messageOfHeaders({ subject: "", data }), null);
  });

  const places = {
    "$JS.ACK.SD_b_0.c.1.9.3.1790000000000000000.5": { sequence: 9, delivered: 3, pending: 5 },
    "$JS.ACK._.h.SD_b_0.c.1.9.3.1790000000000000000.0.t": { sequence: 9, delivered: 3, pending: 0 },
  };
  for (const [reply, place] of Object.entries(places))
    test(`comes from a consumer with the place in ${reply}`, () => {
      const headers = headersWith({ [EXPECTED_HEADER]: "4", Sd: "{}" });
      const found = messageOfConsumer({ subject: "", data: new Uint8Array(), headers, reply });
      assert.deepEqual(found, { ...place, previous: 4, head: "{}" });
    });

  test("does not come from a status", () => {
    assert.equal(messageOfConsumer({ subject: "", data: new Uint8Array(), headers: headersWith({}) }), null);
  });
});

describe("how long ago a majority was behind a leader", () => {
  const replicas = [{ active: 3_000_000 }, { active: 700_000_000 }, { active: 5_000_000_000 }, { active: 0 }];
  const table: readonly (readonly [string, unknown, copies: number, ms: number | null])[] = [
    ["of three copies one follower is enough", { cluster: { leader: "n1", replicas: replicas.slice(0, 2) } }, 3, 3],
    ["of more copies than were known it takes more", { cluster: { leader: "n1", replicas } }, 3, 700],
    ["of five copies two are", { cluster: { leader: "n1", replicas } }, 5, 700],
    ["followers of which nothing was heard do not count", { cluster: { leader: "n1", replicas: replicas.slice(3) } }, 3, null],
    ["a follower that knows no leader counts itself, and says nothing", { cluster: { replicas } }, 3, null],
    ["nor does an empty name", { cluster: { leader: "", replicas } }, 3, null],
    ["one copy has no followers", { cluster: { leader: "n1" } }, 1, 0],
    ["nor, without a leader, an answer", { cluster: {} }, 1, null],
    ["a server alone has no cluster", {}, 1, 0],
    ["and none for three copies", {}, 3, null],
    ["a refusal says nothing", { error: { code: 503, err_code: 10_008 }, cluster: { leader: "n1", replicas } }, 3, null],
  ];
  for (const [name, info, copies, ms] of table) test(name, () => assert.equal(majorityAgoMs(jsonOf(answerOf(info)), copies), ms));
});

describe("what a stream has", () => {
  const created = "2026-11-27T10:00:00Z";
  const table: readonly (readonly [string, unknown, unknown])[] = [
    [
      "with messages of what was asked for",
      { created, state: { first_seq: 3, last_seq: 9, subjects: { a: 2, b: 1 } } },
      [created, 3, 9, 3],
    ],
    ["without a message ever", { created, state: { messages: 0, first_seq: 0, last_seq: 0 } }, [created, 0, 0, 0]],
    ["in an answer without it", { error: { err_code: 10_059 } }, null],
  ];
  for (const [name, info, expected] of table)
    test(name, () => {
      const state = stateOf(jsonOf(answerOf(info)));
      assert.deepEqual(state && [state.created, state.first, state.last, state.reserved], expected);
    });
});
