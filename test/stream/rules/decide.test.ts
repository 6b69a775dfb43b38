import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { formatOf } from "../../../src/protocol/content-type.js";
import { frameJson } from "../../../src/protocol/json/json-frame.js";
import type { ProducerMark, ProducerStamp } from "../../../src/storage/storage.js";
import type { AppendCommand, CreateCommand } from "../../../src/stream/rules/command.js";
import {
  decideAppend,
  framedInTurns,
  frameBody,
  holdsData,
  refuseByHead,
  type AppendDecision,
  type DecisionState,
} from "../../../src/stream/rules/decide.js";
import { configOf } from "../../helpers/engine.js";

const NOW_MS = 1000;
const TEXT_FORMAT = formatOf("text/plain");
const JSON_FORMAT = formatOf("application/json");
const PRODUCER: ProducerStamp = { id: "p", epoch: 0, seq: 3 };

function stateOf(more: Partial<DecisionState> & { marks?: Record<string, ProducerMark> } = {}): DecisionState {
  const { marks = {}, ...rest } = more;
  return {
    tail: 100,
    closed: false,
    closedAtMs: null,
    closedBy: null,
    lastSeq: null,
    markOf: (id) => marks[id],
    producerCount: Object.keys(marks).length,
    oldestProducerAtMs: 0,
    ...rest,
  };
}

function commandOf(body: string, more: Partial<AppendCommand> = {}): AppendCommand {
  return { contentType: "text/plain", body: Buffer.from(body), closes: false, producer: null, seq: null, ifMatch: null, ...more };
}

/** `accept` with the payload, `unchanged`, or the code of the refusal. */
function gist(decision: AppendDecision): string {
  if (decision.kind === "accept") return `accept ${decision.record.payload}`;
  return decision.kind === "unchanged" ? "unchanged" : decision.code;
}

describe("an append", () => {
  const known = { p: { epoch: 0, seq: 2, atMs: 0 } };
  const table: [what: string, state: DecisionState, command: AppendCommand, answer: string][] = [
    ["with data is accepted", stateOf(), commandOf("data"), "accept data"],
    ["with nothing at all is refused", stateOf(), commandOf(""), "empty-body"],
    ["that closes needs no data", stateOf(), commandOf("", { closes: true }), "accept "],
    ["that only closes ignores its content type", stateOf(), commandOf("", { closes: true, contentType: "image/png" }), "accept "],
    ["with data and without a content type is refused", stateOf(), commandOf("x", { contentType: null }), "content-type-missing"],
    ["with another content type is refused", stateOf(), commandOf("x", { contentType: "image/png" }), "content-type-mismatch"],
    [
      "with the content type in other case and with parameters is accepted",
      stateOf(),
      commandOf("x", { contentType: "Text/PLAIN; charset=utf-8" }),
      "accept x",
    ],
    ["with a greater sequence is accepted", stateOf({ lastSeq: "a" }), commandOf("x", { seq: "b" }), "accept x"],
    ["with a longer sequence is accepted", stateOf({ lastSeq: "a" }), commandOf("x", { seq: "aa" }), "accept x"],
    ["with the same sequence is refused", stateOf({ lastSeq: "a" }), commandOf("x", { seq: "a" }), "stream-seq-regression"],
    [
      "with a sequence that is greater only as a number is refused",
      stateOf({ lastSeq: "2" }),
      commandOf("x", { seq: "10" }),
      "stream-seq-regression",
    ],
    ["without a sequence is accepted after one with", stateOf({ lastSeq: "z" }), commandOf("x"), "accept x"],
    ["with a first sequence is accepted", stateOf(), commandOf("x", { seq: "" }), "accept x"],
    ["of a producer's next is accepted", stateOf({ marks: known }), commandOf("x", { producer: PRODUCER }), "accept x"],
    ["of a producer's last is a duplicate", stateOf({ marks: known }), commandOf("x", { producer: { ...PRODUCER, seq: 2 } }), "unchanged"],
    ["that leaves a gap is refused", stateOf({ marks: known }), commandOf("x", { producer: { ...PRODUCER, seq: 5 } }), "producer-gap"],
    // The order of the checks.
    [
      "to a closed stream is refused before its content type is looked at",
      stateOf({ closed: true }),
      commandOf("x", { contentType: null }),
      "stream-closed",
    ],
    [
      "has its content type looked at before its producer",
      stateOf({ marks: known }),
      commandOf("x", { contentType: "a/b", producer: { ...PRODUCER, seq: 9 } }),
      "content-type-mismatch",
    ],
    [
      "has its producer looked at before its sequence",
      stateOf({ marks: known, lastSeq: "z" }),
      commandOf("x", { seq: "a", producer: { ...PRODUCER, seq: 9 } }),
      "producer-gap",
    ],
    [
      "is a duplicate before its sequence is looked at",
      stateOf({ marks: known, lastSeq: "z" }),
      commandOf("x", { seq: "a", producer: { ...PRODUCER, seq: 2 } }),
      "unchanged",
    ],
    [
      "of a producer's next with an old sequence is refused",
      stateOf({ marks: known, lastSeq: "z" }),
      commandOf("x", { seq: "a", producer: PRODUCER }),
      "stream-seq-regression",
    ],
  ];
  for (const [what, state, command, answer] of table)
    test(what, () => assert.equal(gist(decideAppend(state, TEXT_FORMAT, command, NOW_MS)), answer));

  const expecting: [what: string, state: DecisionState, command: AppendCommand, expectedTail: number, answer: string][] = [
    ["where the stream ends is accepted", stateOf(), commandOf("x"), 100, "accept x"],
    ["where it ended before is refused", stateOf(), commandOf("x"), 99, "tail-moved"],
    ["beyond its end is refused", stateOf(), commandOf("x"), 101, "tail-moved"],
    ["of another stream is refused", stateOf({ tail: 0 }), commandOf("x"), -1, "tail-moved"],
    ["that only closes is refused elsewhere", stateOf(), commandOf("", { closes: true }), 99, "tail-moved"],
    ["is looked at after the body", stateOf(), commandOf(""), 99, "empty-body"],
    ["is looked at after the closure", stateOf({ closed: true }), commandOf("x"), 99, "stream-closed"],
    ["lets a closure be repeated", stateOf({ closed: true }), commandOf("", { closes: true }), 99, "unchanged"],
    ["is looked at after the type", stateOf(), commandOf("x", { contentType: "a/b" }), 99, "content-type-mismatch"],
    ["is looked at after the sequence", stateOf({ lastSeq: "b" }), commandOf("x", { seq: "a" }), 99, "stream-seq-regression"],
  ];
  for (const [what, state, command, expectedTail, answer] of expecting)
    test(`that expects a tail ${what}`, () => assert.equal(gist(decideAppend(state, TEXT_FORMAT, command, NOW_MS, expectedTail)), answer));

  test("that expects an earlier tail is refused for its head alone, unless something else may be said of it first", () => {
    const early = (state: DecisionState, more: Partial<AppendCommand>, expectedTail: number, format = TEXT_FORMAT): string | null =>
      refuseByHead(state, format, commandOf("x", more), NOW_MS, expectedTail)?.code ?? null;
    assert.equal(early(stateOf(), {}, 99), "tail-moved");
    assert.equal(early(stateOf(), {}, -1), "tail-moved");
    assert.equal(early(stateOf(), {}, 100), null);
    // What is on its way may bring the stream there.
    assert.equal(early(stateOf(), {}, 101), null);
    assert.equal(early(stateOf({ lastSeq: "b" }), { seq: "a" }, 99), null);
    assert.equal(early(stateOf(), { contentType: "application/json" }, 99, JSON_FORMAT), null);
    assert.equal(early(stateOf(), { contentType: "a/b" }, 99), "content-type-mismatch");
    assert.equal(early(stateOf({ closed: true }), {}, 99), "stream-closed");
  });

  test("carries everything that becomes durable together", () => {
    const decision = decideAppend(
      stateOf({ marks: known }),
      TEXT_FORMAT,
      commandOf("x", { closes: true, producer: PRODUCER, seq: "s" }),
      NOW_MS,
    );
    assert.deepEqual(decision, {
      kind: "accept",
      record: { payload: Buffer.from("x"), messages: 1, closes: true, producer: PRODUCER, seq: "s", atMs: NOW_MS },
    });
  });

  test("that is a duplicate echoes the highest accepted sequence number", () => {
    const decision = decideAppend(stateOf({ marks: known }), TEXT_FORMAT, commandOf("x", { producer: { ...PRODUCER, seq: 0 } }), NOW_MS);
    assert.deepEqual(decision, { kind: "unchanged", producer: known.p });
  });
});

describe("a JSON append", () => {
  const json = { contentType: "application/json; charset=utf-8" };
  for (const [body, answer] of [
    ['{"a":1}', 'accept {"a":1},\n'],
    ["[1,2]", "accept 1,\n2,\n"],
    ["[[1]]", "accept [1],\n"],
    ["null", "accept null,\n"],
    ["12345678901234567890", "accept 12345678901234567890,\n"],
    ["[]", "empty-json-array"],
    ["{", "invalid-json"],
    [" ", "invalid-json"],
  ] as const) {
    test(`of ${JSON.stringify(body)} is: ${JSON.stringify(answer)}`, () =>
      assert.equal(gist(decideAppend(stateOf(), JSON_FORMAT, commandOf(body, json), NOW_MS)), answer));
  }

  test("that is invalid changes nothing, also of a producer", () => {
    assert.equal(
      gist(
        decideAppend(stateOf(), JSON_FORMAT, commandOf("{", { ...json, producer: { id: "p", epoch: 0, seq: 0 }, closes: true }), NOW_MS),
      ),
      "invalid-json",
    );
  });
});

describe("a closed stream", () => {
  const closedBy: ProducerStamp = { id: "p", epoch: 1, seq: 4 };
  const marks = { p: { epoch: 1, seq: 4, atMs: 0 }, q: { epoch: 0, seq: 2, atMs: 0 } };
  const closed = stateOf({ closed: true, closedBy, marks });

  for (const [what, command, answer] of [
    ["refuses data", commandOf("x"), { kind: "refused", code: "stream-closed", closed: true }],
    ["refuses data that closes again", commandOf("x", { closes: true }), { kind: "refused", code: "stream-closed", closed: true }],
    [
      "refuses another producer's retry",
      commandOf("x", { producer: { id: "q", epoch: 0, seq: 2 } }),
      { kind: "refused", code: "stream-closed", closed: true, producerEpoch: 0, producerSeq: 2 },
    ],
    [
      "refuses a producer that it does not know",
      commandOf("x", { producer: { id: "z", epoch: 0, seq: 0 } }),
      { kind: "refused", code: "stream-closed", closed: true },
    ],
    [
      "refuses an earlier append of the producer that closed it",
      commandOf("x", { producer: { ...closedBy, seq: 3 } }),
      { kind: "refused", code: "stream-closed", closed: true, producerEpoch: 1, producerSeq: 4 },
    ],
    [
      "refuses the same sequence number of another epoch",
      commandOf("x", { producer: { ...closedBy, epoch: 2 } }),
      { kind: "refused", code: "stream-closed", closed: true, producerEpoch: 1, producerSeq: 4 },
    ],
    [
      "answers its closing producer's retry, whatever its body is now",
      commandOf("other", { producer: closedBy, closes: true }),
      { kind: "unchanged", producer: marks.p },
    ],
    ["may be closed again by anybody", commandOf("", { closes: true }), { kind: "unchanged", producer: null }],
    [
      "may be closed again by a producer that it knows",
      commandOf("", { closes: true, producer: { id: "q", epoch: 0, seq: 9 } }),
      { kind: "unchanged", producer: marks.q },
    ],
    [
      "may be closed again by a producer that it does not know",
      commandOf("", { closes: true, producer: { id: "z", epoch: 0, seq: 0 } }),
      { kind: "unchanged", producer: { id: "z", epoch: 0, seq: 0 } },
    ],
  ] as const) {
    test(what, () => assert.deepEqual(decideAppend(closed, TEXT_FORMAT, command, NOW_MS), answer));
  }

  test("says since when, where that is known", () => {
    const refusal = decideAppend(stateOf({ closed: true, closedAtMs: 1000 }), TEXT_FORMAT, commandOf("x"), NOW_MS);
    const closedAt = "1970-01-01T00:00:01.000Z";
    assert.deepEqual(refusal, {
      kind: "refused",
      code: "stream-closed",
      closed: true,
      detail: `It was closed at ${closedAt}.`,
      facts: { closedAt },
    });
  });

  test("that nobody in particular closed refuses every producer's data", () => {
    assert.equal(
      gist(decideAppend(stateOf({ closed: true, marks }), TEXT_FORMAT, commandOf("x", { producer: closedBy }), NOW_MS)),
      "stream-closed",
    );
  });
});

describe("a body", () => {
  test("is kept as it is where the stream is not JSON", () => {
    const body = Buffer.from("[1,\n2]");
    assert.deepEqual(frameBody(TEXT_FORMAT, body, "append"), { kind: "framed", bytes: body, messages: 1 });
  });

  test("of an empty array makes an empty JSON stream, but is no append", () => {
    assert.deepEqual(frameBody(JSON_FORMAT, Buffer.from("[]"), "create"), { kind: "framed", bytes: Buffer.alloc(0), messages: 1 });
    assert.deepEqual(frameBody(JSON_FORMAT, Buffer.from("[]"), "append"), { kind: "refused", code: "empty-json-array" });
    assert.deepEqual(frameBody(JSON_FORMAT, Buffer.alloc(0), "create"), { kind: "framed", bytes: Buffer.alloc(0), messages: 1 });
  });
});

describe("a body that was framed as it came", () => {
  const json = { contentType: "application/json" };

  for (const text of ["[1,2]", "[]", "{"]) {
    test(`${text} is what it would be otherwise`, () => {
      const body = frameJson(Buffer.from(text));
      assert.ok(holdsData(body));
      assert.deepEqual(
        decideAppend(stateOf(), JSON_FORMAT, commandOf("", { ...json, body }), NOW_MS),
        decideAppend(stateOf(), JSON_FORMAT, commandOf(text, json), NOW_MS),
      );
      assert.deepEqual(frameBody(JSON_FORMAT, body, "create"), frameBody(JSON_FORMAT, Buffer.from(text), "create"));
    });
  }

  test("is for JSON streams alone", () => {
    assert.throws(() => frameBody(TEXT_FORMAT, frameJson(Buffer.from("1")), "create"), TypeError);
    assert.equal(
      gist(decideAppend(stateOf(), TEXT_FORMAT, commandOf("", { ...json, body: frameJson(Buffer.from("1")) }), NOW_MS)),
      "content-type-mismatch",
    );
  });

  test("a create that inherits its content type is framed between turns of the event loop where it is large", async () => {
    const config = configOf({ contentType: "application/json" });
    const command: CreateCommand = {
      contentType: null,
      ttlSeconds: null,
      expiresAtMs: null,
      closed: false,
      fork: null,
      body: Buffer.from(`[${"1,".repeat(500_000)}1]`),
    };
    let turns = 0;
    const count = (): void => {
      turns += 1;
      counting = setImmediate(count);
    };
    let counting = setImmediate(count);
    const framed = await framedInTurns(config, command);
    clearImmediate(counting);
    assert.ok(turns >= 3, `${turns} turns for a million bytes`);
    assert.deepEqual(framed, { ...command, body: frameJson(Buffer.isBuffer(command.body) ? command.body : Buffer.alloc(0)) });
    const small = { ...command, body: Buffer.from("[1]") };
    assert.equal(await framedInTurns(config, small), small);
    assert.equal(await framedInTurns(configOf({ contentType: "text/plain" }), command), command);
  });
});

describe("a head alone", () => {
  const marks = { p: { epoch: 1, seq: 2, atMs: 0 } };
  const closed = stateOf({ closed: true, closedBy: { id: "p", epoch: 1, seq: 2 }, marks });
  const producer = (epoch: number, seq: number): Partial<AppendCommand> => ({ producer: { id: "p", epoch, seq } });
  const table: [what: string, state: DecisionState, more: Partial<AppendCommand>, code: string | null][] = [
    ["of data for an open stream", stateOf(), {}, null],
    ["of data for a closed stream", closed, {}, "stream-closed"],
    ["of the append that closed it", closed, producer(1, 2), null],
    ["of another append of its producer", closed, producer(1, 1), "stream-closed"],
    ["without a content type", stateOf(), { contentType: null }, "content-type-missing"],
    ["with another content type", stateOf({ marks }), { contentType: "a/b", ...producer(0, 0) }, "content-type-mismatch"],
    ["of an epoch that is over", stateOf({ marks }), producer(0, 0), "stale-epoch"],
    ["of a sequence number behind a gap", stateOf({ marks }), producer(1, 9), null],
    ["of a duplicate", stateOf({ marks }), producer(1, 1), null],
    ["of a new epoch that begins too late", stateOf({ marks }), producer(2, 1), null],
    ["of a sequence that is over", stateOf({ lastSeq: "z" }), { seq: "a" }, null],
  ];
  for (const [what, state, more, code] of table) {
    test(`${what} is ${code === null ? "not refused" : `refused: ${code}`}`, () => {
      const command = commandOf("x", more);
      const refusal = refuseByHead(state, TEXT_FORMAT, command, NOW_MS);
      assert.equal(refusal?.code ?? null, code);
      if (refusal !== null) assert.deepEqual(refusal, decideAppend(state, TEXT_FORMAT, command, NOW_MS));
    });
  }

  test("of an epoch that is over is not refused where the body is JSON, which is looked at first", () => {
    assert.equal(
      refuseByHead(stateOf({ marks }), JSON_FORMAT, commandOf("", { contentType: "application/json", ...producer(0, 0) }), NOW_MS),
      null,
    );
  });
});
