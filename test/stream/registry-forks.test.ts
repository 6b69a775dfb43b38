import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import type { Registry } from "../../src/stream/registry.js";
import type { CreateCommand } from "../../src/stream/rules/command.js";
import { appendByName } from "../helpers/append.js";
import { diskError } from "../helpers/watched-files.js";
import { reopen } from "../helpers/engine.js";
import { appendOf, createOf, find, gist, registryOf, textOf, type TestRegistry } from "../helpers/registries.js";

function forkOf(source: string, text: string | Buffer = ""): CreateCommand {
  return createOf({ contentType: null, text, fork: { source, offset: null, place: null, subOffset: 0 } });
}

/** A deleted source, and its only fork. */
async function withFork(t: TestContext): Promise<TestRegistry> {
  const made = await registryOf(t);
  assert.equal(gist(await made.registry.create("source", createOf({ text: "old" }))), "created");
  assert.equal(gist(await made.registry.create("fork", forkOf("source"))), "created");
  assert.equal(gist(await made.registry.delete("source")), "deleted");
  return made;
}

async function codeOf(registry: Registry, name: string): Promise<string> {
  const found = await registry.find(name);
  return "code" in found ? found.code : "there";
}

describe("the name of a deleted source", () => {
  const uses: readonly [what: string, use: (registry: Registry) => Promise<string>, answer: string, before: string][] = [
    ["a creation", async (registry) => gist(await registry.create("source", createOf())), "created", "name-held-by-forks"],
    ["a deletion", async (registry) => gist(await registry.delete("source")), "stream-not-found", "stream-gone"],
    ["an append", async (registry) => gist(await appendByName(registry, "source", appendOf("x"))), "stream-not-found", "stream-gone"],
    ["a read", (registry) => codeOf(registry, "source"), "stream-not-found", "stream-gone"],
    ["a fork", async (registry) => gist(await registry.create("second", forkOf("source"))), "stream-not-found", "fork-source-gone"],
  ];
  for (const [what, use, answer, before] of uses)
    test(`is free for ${what} once the deletion of its last fork was answered`, async (t) => {
      const { registry } = await withFork(t);
      assert.equal(await use(registry), before);
      assert.equal(gist(await registry.delete("fork")), "deleted");
      assert.equal(await use(registry), answer);
    });

  test("goes to the first of those who wait for it", async (t) => {
    const { registry } = await withFork(t);
    assert.equal(gist(await registry.delete("fork")), "deleted");
    const outcomes = await Promise.all([
      registry.create("source", createOf({ text: "new" })),
      registry.create("source", createOf({ contentType: "a/b" })),
      appendByName(registry, "source", appendOf("!")),
    ]);
    assert.deepEqual(outcomes.map(gist), ["created", "config-mismatch", "appended"]);
    assert.equal(await textOf(registry, "source"), "new!");
  });

  test("is free after the last fork also where the source was not in memory", async (t) => {
    const { engine } = await withFork(t);
    const { registry } = await registryOf(t, {}, await reopen(engine));
    assert.equal(gist(await registry.delete("fork")), "deleted");
    assert.equal(gist(await registry.create("source", createOf())), "created");
  });

  test("stays held where the source can't be removed yet", async (t) => {
    const { engine, registry } = await withFork(t);
    let frames = 0;
    engine.files.gate = ({ kind }) => (kind === "writeThen" && (frames += 1) > 1 ? diskError("ENOSPC") : undefined);
    assert.equal(gist(await registry.delete("fork")), "deleted");
    assert.equal(await codeOf(registry, "source"), "stream-gone");
    assert.equal(gist(await registry.create("source", createOf())), "name-held-by-forks");
  });
});

describe("a fork", () => {
  test("is framed as its source is by then, which was made anew meanwhile", async (t) => {
    const { registry } = await registryOf(t);
    await registry.create("source", createOf({ contentType: "application/json", text: "[1]" }));
    const source = await find(registry, "source");
    const others: Promise<unknown>[] = [];
    const retain = source.retain.bind(source);
    // The source has been found; the body of the fork is framed next.
    t.mock.method(source, "retain", () => {
      retain();
      if (others.length > 0) return;
      others.push(registry.delete("source"), registry.create("source", createOf({ text: "text " })));
    });
    const body = JSON.stringify("x".repeat(300_000));
    assert.equal(gist(await registry.create("fork", forkOf("source", body))), "created");
    await Promise.all(others);
    const fork = await find(registry, "fork");
    assert.equal(fork.config.contentType, "text/plain");
    assert.equal((await fork.read(0, 1_000_000)).bytes.toString(), `text ${body}`);
  });
});
