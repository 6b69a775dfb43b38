import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { rangesOfPattern } from "../../../src/protocol/names/name-range.js";
import { Grants, type Grant } from "../../../src/auth/rights/grant.js";
import { OPERATIONS } from "../../../src/auth/rights/operation.js";

const RATE = { requests: 5, bytes: null };
const GRANTS: readonly Grant[] = [
  { streams: ["chat/42", "users/{sub}/**"], allow: ["read", "append"], rate: RATE },
  { streams: ["chat/**"], allow: ["read", "list"], rate: null },
];

describe("grants", () => {
  const grants = new Grants(GRANTS, "alice");

  for (const [operation, name, grant] of [
    ["read", "chat/42", 0],
    ["append", "chat/42", 0],
    ["read", "chat/43", 1],
    ["append", "chat/43", null],
    ["list", "chat/42", 1],
    ["read", "users/alice", 0],
    ["append", "users/alice/a/b", 0],
    ["read", "users/bob", null],
    ["read", "users/{sub}", null],
    ["read", "other", null],
    ["delete", "chat/42", null],
  ] as const)
    test(`${grant === null ? "none allows" : `number ${grant} allows`} ${operation} on ${name}`, () =>
      assert.equal(grants.rightTo(operation, name)?.grant ?? null, grant));

  test("bring the rate of the one that allows", () => {
    assert.equal(grants.rightTo("read", "chat/42")?.rate, RATE);
    assert.equal(grants.rightTo("read", "chat/1")?.rate, null);
  });

  test("for {sub} match nothing for one who has no name", () => {
    const nameless = new Grants(GRANTS, null);
    assert.equal(nameless.rightTo("read", "users/{sub}"), null);
    assert.equal(nameless.rightTo("read", "chat/42")?.grant, 0);
  });

  test("are for all streams by the pattern of all names alone", () => {
    const grantsOf = (...streams: string[]) => new Grants([{ streams, allow: ["admin"], rate: null }], "bob");
    for (const pattern of ["*/**", "*", "*/*", "__ds/**", "{sub}/**"]) assert.ok(!grantsOf(pattern).mayEverywhere("admin"), pattern);
    assert.ok(grantsOf("a", "**").mayEverywhere("admin"));
    assert.ok(!grantsOf("**").mayEverywhere("read"));
  });

  test("say where the names are that they are for", () => {
    const listing = (...streams: string[]) => ({ streams, allow: ["list"] as const, rate: null });
    const grants = new Grants([listing("a/**", "b*", "{sub}/x"), { ...listing("c"), allow: ["read"] }, listing("d/*/e", "**")], "bob");
    assert.deepEqual(grants.rangesOf("list"), ["a/**", "b*", "bob/x", "d/*/e", "**"].flatMap(rangesOfPattern));
    assert.deepEqual(grants.rangesOf("read"), rangesOfPattern("c"));
  });

  test("allow nothing where there are none", () => {
    for (const operation of OPERATIONS) assert.equal(new Grants([], null).rightTo(operation, "a"), null);
  });

  test("weigh more the more there is to match", () => {
    const weight = (...streams: string[]): number => new Grants([{ streams, allow: ["read"], rate: null }], null).weight;
    assert.equal(new Grants([], null).weight, 0);
    assert.equal(weight("{sub}"), 0, "they match nothing");
    assert.ok(weight("a") < weight("aa") && weight("aaa") < weight("a/a") && weight("a", "b") === 2 * weight("a"));
  });
});
