import assert from "node:assert/strict";
import { test } from "node:test";
import { ID_ENDS } from "../../../src/http/encoding/head.js";
import { givenId, RequestIds } from "../../../src/http/request/request-id.js";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";

test("a request is called as its X-Request-Id says, else by its trace, and by nothing that can't stand in a line", () => {
  const cases: readonly (readonly [string | null, string | null, string | null])[] = [
    ["abc-1.2_~:/+=@", null, "abc-1.2_~:/+=@"],
    ["a", `00-${TRACE}-00f067aa0ba902b7-01`, "a"],
    [null, `00-${TRACE}-00f067aa0ba902b7-01`, TRACE],
    ["with space", `cc-${TRACE}-00f067aa0ba902b7-01-more`, TRACE],
    ["x".repeat(128), null, "x".repeat(128)],
    ["x".repeat(129), null, null],
    ["", null, null],
    ['"', null, null],
    ["\u00e9", null, null],
    [null, `00-${"0".repeat(32)}-00f067aa0ba902b7-01`, null],
    [null, `00-${TRACE.toUpperCase()}-00f067aa0ba902b7-01`, null],
    [null, "nonsense", null],
    [null, null, null],
  ];
  for (const [requestId, traceparent, expected] of cases)
    assert.equal(givenId({ requestId, traceparent }), expected, `${requestId} ${traceparent}`);
});

test("ids are all different, and do not tell how many came between two of them", () => {
  const ids = new RequestIds();
  const count = 2 * ID_ENDS.length;
  const made = Array.from({ length: count }, () => {
    ids.next();
    return `${ids.start}${ids.number}`;
  });
  assert.equal(new Set(made).size, count);
  assert.equal(new Set(made.map((id) => id.split("-")[0])).size, 2);
  const numbers = made.slice(0, ID_ENDS.length).map((id) => Number(id.split("-")[1]));
  const ascending = numbers.filter((number, at) => number === (numbers[at - 1] ?? -1) + 1);
  assert.ok(ascending.length < 20, `${ascending.length} are one more than the one before`);
});
