import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ForkRelations, neededBy } from "../../../../src/storage/file/survey/fork-relations.js";
import { Layout } from "../../../../src/storage/file/format/layout.js";
import type { FoundStream, StreamFacts } from "../../../../src/storage/file/survey/stream-facts.js";

interface Shape {
  readonly of?: string;
  readonly point?: number;
  readonly earliest?: number;
  readonly tail?: number;
  readonly forks?: Readonly<Record<string, number>>;
}

/** A stream whose id is its name in upper case. */
function facts(name: string, { of, point = 10, earliest = 0, tail = 100, forks = {} }: Shape): StreamFacts {
  const forkedFrom =
    of === undefined
      ? null
      : { name: of, id: of.toUpperCase(), point, earliest: { position: 0, segmentStart: 0 }, offset: null, subOffset: 0 };
  return { id: name.toUpperCase(), name, forkedFrom, earliest, tail, forks: new Map(Object.entries(forks)) };
}

function relationsOf(streams: Readonly<Record<string, Shape>>): ForkRelations {
  const relations = new ForkRelations(new Layout("/data"));
  for (const [name, shape] of Object.entries(streams)) relations.note(facts(name, shape));
  return relations;
}

async function problemsIn(relations: ForkRelations, found: FoundStream = "missing"): Promise<string[]> {
  const problems: string[] = [];
  for await (const { finding, change } of relations.problems(() => Promise.resolve(found))) {
    problems.push(`${finding.stream}: ${finding.problem}${change === null ? "" : ` -> ${change.neededBefore}`}`);
  }
  return problems;
}

describe("the relations of forks", () => {
  const CASES: readonly [what: string, streams: Readonly<Record<string, Shape>>, problems: readonly RegExp[]][] = [
    ["nothing", { a: {} }, []],
    ["a chain", { a: { forks: { B: 10 } }, b: { of: "a", forks: { C: 5 } }, c: { of: "b", point: 5 } }, []],
    ["a fork at the very beginning", { a: { forks: { B: 0 } }, b: { of: "a", point: 0 } }, []],
    ["a fork that keeps nothing it inherited", { a: { forks: { B: 0 } }, b: { of: "a", earliest: 10 } }, []],
    ["a fork that never shared a byte that is kept", { a: { earliest: 10, forks: { B: 10 } }, b: { of: "a", earliest: 10 } }, []],
    [
      "a fork that is kept too much for",
      { a: { forks: { B: 10 } }, b: { of: "a", earliest: 10 } },
      [/^a: it keeps its bytes before 10 for its fork "b" \(B\), which needs only those before 0 -> 0$/],
    ],
    ["a missing source", { b: { of: "a" } }, [/^b: its source "a" \(A\) is missing$/]],
    [
      "a missing reference",
      { a: { forks: { C: 10 } }, b: { of: "a" }, c: { of: "a" } },
      [/^a: it does not know its fork "b" \(B\).* -> 10$/],
    ],
    [
      "a leaked reference",
      { a: { forks: { B: 10 } } },
      [/^a: it lists the fork B, which is nowhere: its bytes before 10 are kept for nobody -> null$/],
    ],
    ["a leaked reference to nothing", { a: { forks: { B: 0 } } }, [/^a: it lists the fork B, which is nowhere -> null$/]],
    [
      "a reference to another's fork",
      { a: { forks: { B: 10, C: 10 } }, b: { of: "c", forks: {} }, c: { of: "a", forks: { B: 10 } } },
      [/^a: it lists the fork B, which is nowhere/],
    ],
    [
      "a point behind the source's end",
      { a: { tail: 9, forks: { B: 10 } }, b: { of: "a" } },
      [/^b: it begins at 10 of its source "a", which ends at 9$/],
    ],
    [
      "a source that begins too late",
      { a: { earliest: 3, forks: { B: 10 } }, b: { of: "a", earliest: 2 } },
      [/^b: it needs the bytes of its source "a" from 2 on, which begins at 3$/],
    ],
    [
      "a circle",
      { a: { of: "c", forks: { B: 10 } }, b: { of: "a", forks: { C: 10 } }, c: { of: "b", forks: { A: 10 } }, d: { of: "c" } },
      [/^c: it does not know its fork "d"/, /^a: it was forked from itself, by way of "c", "b", "a"$/],
    ],
  ];
  for (const [what, streams, problems] of CASES) {
    test(`with ${what}: ${problems.length === 0 ? "no problem" : "named"}`, async () => {
      const found = await problemsIn(relationsOf(streams));
      assert.equal(found.length, problems.length, found.join("\n"));
      for (const [index, problem] of problems.entries()) assert.match(found[index] ?? "", problem);
    });
  }

  test("ask for a source that lists no forks, and say when it is damaged or another", async () => {
    const relations = relationsOf({ b: { of: "a" }, c: { of: "a" } });
    assert.equal((await problemsIn(relations, facts("a", {}))).length, 2);
    assert.deepEqual(await problemsIn(relations, "damaged"), ['a: its forks can\'t be read without it: "b", "c"']);
    assert.match(
      (await problemsIn(relations, { ...facts("a", {}), id: "Z" })).join(),
      /its source "a" \(A\) is gone, and another stream \(Z\) has its name/,
    );
  });

  test("say nothing of a reference that may be to a stream that can't be read", async () => {
    const one = relationsOf({ a: { forks: { B: 10, C: 10 } } });
    one.noteUnsound(["B"]);
    assert.match((await problemsIn(one)).join(), /^a: it lists the fork C/);
    one.noteUnsound([]);
    assert.deepEqual(await problemsIn(one), []);
  });

  test("tell who shares which bytes, also round a circle", () => {
    const relations = relationsOf({
      a: {},
      b: { of: "a", point: 50, earliest: 20 },
      c: { of: "b", point: 30 },
      d: { of: "c", point: 90 },
      e: { of: "a", point: 10 },
    });
    assert.deepEqual(relations.sharersOf("A", 40, 60), ["b"]);
    assert.deepEqual(relations.sharersOf("A", 0, 20).sort(), ["c", "d", "e"]);
    assert.deepEqual(relations.sharersOf("A", 50, 60), []);
    assert.deepEqual(relationsOf({ a: { of: "b" }, b: { of: "a" } }).sharersOf("A", 0, 5), ["b"]);
  });

  test("know what is left of streams that are lost", () => {
    const relations = relationsOf({ a: { forks: { B: 10, X: 7 } }, b: { of: "a" }, c: { of: "z" } });
    assert.deepEqual(relations.idsOf("a"), ["A"]);
    assert.equal(relations.referenceTo("X")?.source.name, "a");
    assert.equal(relations.referenceTo("Y"), null);
    assert.deepEqual(
      [...relations.unmatched()].map(({ id }) => id),
      ["X"],
    );
    assert.deepEqual(
      [relations.isSource("A"), relations.isSource("B"), relations.isEmpty, relationsOf({ a: {} }).isEmpty],
      [true, false, false, true],
    );
  });

  test("need nothing where nothing inherited is kept", () => {
    assert.deepEqual([neededBy({ point: 5, earliest: 4 }), neededBy({ point: 5, earliest: 5 })], [5, 0]);
  });
});
