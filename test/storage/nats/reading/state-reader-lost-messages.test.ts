import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Subjects } from "../../../../src/storage/nats/log/subjects.js";
import { appendByName } from "../../../helpers/append.js";
import { frontEnds, type FrontEnd, type FrontEnds } from "../../../helpers/front-ends.js";
import { Random } from "../../../helpers/random.js";
import { appendOf, createOf, find, gist, textOf } from "../../../helpers/registries.js";

const PIECES = ["first ", "second ", "third "];

describe("a log that has lost the last message of a stream", () => {
  test("takes the next append behind the one that is left, and all read the same", async () => {
    await withTwo(async (all, one) => {
      await written(all, one);
      const stream = await find(one.registry, "s");
      const ended = new Promise<void>((resolve) => void stream.follow(() => undefined, resolve));
      loseLast(all);
      assert.equal(gist(await appendByName(one.registry, "s", appendOf("fourth"))), "appended");
      await ended;
      assert.equal(await textOf(one.registry, "s"), "first second fourth");
      assert.equal(await textOf(all.begin().registry, "s"), "first second fourth");
      const [line] = one.log.filter(({ level }) => level === "error");
      assert.equal(line?.message, "the log has lost messages of a stream");
      assert.equal(line.fields["stream"], "s");
    });
  });

  test("is read as it is, also by who has it in memory", async () => {
    await withTwo(async (all, one) => {
      await written(all, one);
      loseLast(all);
      assert.equal(await textOf(one.registry, "s"), "first second ");
    });
  });

  test("is read as it is where another has appended since", async () => {
    await withTwo(async (all, one, other) => {
      await written(all, one);
      loseLast(all);
      for (const text of ["4", "5"]) assert.equal(gist(await appendByName(other.registry, "s", appendOf(text))), "appended");
      assert.equal(await textOf(one.registry, "s"), "first second 45");
      assert.equal(one.log.filter(({ level }) => level === "error").length, 1);
      assert.deepEqual(other.log, []);
    });
  });
});

async function written({ clock }: FrontEnds, { registry }: FrontEnd): Promise<void> {
  assert.equal(gist(await registry.create("s", createOf())), "created");
  for (const text of PIECES) assert.equal(gist(await appendByName(registry, "s", appendOf(text))), "appended");
  await clock.pause(100);
  assert.equal(await textOf(registry, "s"), PIECES.join(""));
}

function loseLast({ cluster }: FrontEnds): void {
  assert.ok(cluster.subjects.get(new Subjects("test", 2).ofStream("s"))?.pop() !== undefined);
}

async function withTwo(run: (all: FrontEnds, one: FrontEnd, other: FrontEnd) => Promise<void>): Promise<void> {
  const all = frontEnds(2, new Random(1));
  const [one, other] = all.all;
  assert.ok(one !== undefined && other !== undefined);
  await all.clock.through(run(all, one, other)).finally(() => all.stop());
}
