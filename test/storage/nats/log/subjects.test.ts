import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Subjects, tokenOf } from "../../../../src/storage/nats/log/subjects.js";

describe("subjects", () => {
  test("a name is one token of letters, digits, - and _HH", () => {
    for (const [name, token] of [
      ["jobs", "jobs"],
      ["Jobs-42", "Jobs-42"],
      ["a/b.c", "a_2Fb_2Ec"],
      ["a_b", "a_5Fb"],
      ["* >", "_2A_20_3E"],
      ["ä", "_C3_A4"],
    ] as const)
      assert.equal(tokenOf(name), token);
    assert.equal(tokenOf("€".repeat(341)).length, 3 * 1023);
  });

  test("a stream, its edges and its touch stand where every server looks for them", () => {
    const subjects = new Subjects("b", 6);
    assert.match(subjects.ofStream("jobs/1"), /^sd\.b\.[0-5]\.s\.jobs_2F1$/);
    assert.equal(subjects.ofStream("jobs/1"), new Subjects("b", 6).ofStream("jobs/1"));
    assert.equal(subjects.ofTouch("jobs/1"), "sdt.b.jobs_2F1");
    assert.match(subjects.ofEdges("jobs/1", "id"), /^sd\.b\.[0-5]\.f\.[\w-]{22}\.id\.\*$/);
    assert.equal(subjects.ofEdge("jobs/1", "id", "fork"), subjects.ofEdges("jobs/1", "id").replace("*", "fork"));
    const shards = new Set(Array.from({ length: 200 }, (_, index) => subjects.ofStream(`s${index}`).split(".")[2]));
    assert.equal(shards.size, 6);
  });
});
