import assert from "node:assert/strict";
import test from "node:test";
import { refuseContentType } from "../../../src/stream/rules/content-type-refusal.js";

test("names both types", () => {
  assert.deepEqual(refuseContentType("stream", "text/plain", "image/png"), {
    kind: "refused",
    code: "content-type-mismatch",
    detail: "The stream's content type is text/plain, the request's is image/png.",
    facts: { expected: "text/plain", received: "image/png" },
  });
});

test("says what to tell curl, which sends a form", () => {
  const { detail } = refuseContentType("source", "application/json", "application/X-www-form-urlencoded");
  assert.equal(
    detail,
    "The source's content type is application/json, the request's is application/X-www-form-urlencoded, which is curl's default: give it -H 'Content-Type: application/json'.",
  );
});

test("repeats no more of a request than a content type may have", () => {
  const { facts } = refuseContentType("stream", "text/plain", `a/${"b".repeat(10_000)}`);
  assert.equal(String(facts?.["received"]).length, 256);
});
