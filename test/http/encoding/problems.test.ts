import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { STATUS_CODES } from "node:http";
import { describe, test } from "node:test";
import { isProblem, problem, problemBody, problemHeaders, PROBLEMS } from "../../../src/http/encoding/problems.js";
import { refuse } from "../../../src/stream/rules/outcome.js";

describe("docs/errors.md", () => {
  const page = readFileSync(new URL("../../../docs/errors.md", import.meta.url), "utf8");
  const rows = page.split("\n").flatMap((line) => {
    const [, code, status, when, advice] = /^\| `([^`]+)` \| (\d+) \| (.+) \| (.+) \|$/.exec(line) ?? [];
    return code === undefined ? [] : [{ code, status: Number(status), when, advice }];
  });

  test("lists every code with its status, in the order of the table", () => {
    const table = Object.entries(PROBLEMS).map(([code, { status }]) => ({ code, status }));
    assert.deepEqual(
      rows.map(({ code, status }) => ({ code, status })),
      table,
    );
  });

  test("says of each when it comes and what to do", () => {
    for (const { code, when, advice } of rows) assert.ok(when !== "" && advice !== "", code);
  });

  test("is in the order of statuses, and those are HTTP's", () => {
    const statuses = rows.map(({ status }) => status);
    assert.deepEqual(
      statuses,
      [...statuses].sort((a, b) => a - b),
    );
    for (const status of statuses) assert.ok(STATUS_CODES[status] !== undefined, String(status));
  });
});

test("a problem document says what went wrong to people and to programs", () => {
  const document = JSON.parse(problemBody(problem("invalid-ttl", { detail: "More." })).toString());
  assert.deepEqual(document, {
    type: "urn:streamdir:error:invalid-ttl",
    title: PROBLEMS["invalid-ttl"].title,
    status: 400,
    code: "invalid-ttl",
    detail: "More.",
  });
});

test("a problem without a detail has no such field", () => {
  assert.ok(!("detail" in JSON.parse(problemBody(problem("invalid-ttl")).toString())));
});

describe("the headers of a problem", () => {
  const common = ["Content-Type", "application/problem+json", "Cache-Control", "no-store"];
  const cases: readonly (readonly [title: string, refusal: Parameters<typeof problemHeaders>[0], own: readonly string[]])[] = [
    ["nothing of its own", problem("invalid-name"), []],
    ["when to try again", problem("storage-full"), ["Retry-After", "30"]],
    ["when this client may try again", problem("rate-limited", { retryAfterSeconds: 7 }), ["Retry-After", "7"]],
    ["the methods there are", problem("method-not-allowed", { allow: "GET" }), ["Allow", "GET"]],
    [
      "where a closed stream ends",
      refuse("stream-closed", { closed: true, nextOffset: "1_2" }),
      ["Stream-Next-Offset", "1_2", "Stream-Closed", "true"],
    ],
    ["the epoch that took over", refuse("stale-epoch", { producerEpoch: 0 }), ["Producer-Epoch", "0"]],
    [
      "the sequence number that is missing",
      refuse("producer-gap", { expectedSeq: 0, receivedSeq: 2 }),
      ["Producer-Expected-Seq", "0", "Producer-Received-Seq", "2"],
    ],
  ];
  for (const [title, refusal, own] of cases) test(title, () => assert.deepEqual(problemHeaders(refusal), [...common, ...own]));
});

test("a problem is told apart from the result of a parse", () => {
  assert.equal(isProblem(refuse("overloaded")), true);
  assert.equal(isProblem({ kind: "created" }), false);
  assert.equal(isProblem({}), false);
});
