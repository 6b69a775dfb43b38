import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import type { Registry } from "../../src/stream/registry.js";
import type { CreateCommand } from "../../src/stream/rules/command.js";
import { appendByName } from "../helpers/append.js";
import { diskError, WatchedFiles, type Gate } from "../helpers/watched-files.js";
import { crashAndRecover, openEngine, reopen } from "../helpers/engine.js";
import { appendOf, createOf, find, gist, registryOf, registryOn, textOf, type TestRegistry } from "../helpers/registries.js";

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

  test("is free once the last fork of a row was deleted, as are those of all that the row has kept", async (t) => {
    for (const places of [1, 2, 3, 0]) {
      const { registry } = await registryOf(t);
      const row = ["source", "one", "two", "three", "four"];
      assert.equal(gist(await registry.create("source", createOf({ text: "old" }))), "created");
      for (const [at, name] of row.entries())
        if (at > 0) assert.equal(gist(await registry.create(name, forkOf(row[at - 1] ?? ""))), "created");
      for (const name of row) assert.equal(gist(await registry.delete(name)), "deleted");
      const name = row[places] ?? "";
      assert.equal(await codeOf(registry, name), "stream-not-found", name);
      assert.equal(gist(await registry.create(name, createOf())), "created", name);
    }
  });

  test("is free once all that was forked from its forks was deleted at a time", async (t) => {
    const { registry } = await withFork(t);
    const leaves = ["a", "b", "c"];
    for (const name of leaves) assert.equal(gist(await registry.create(name, forkOf("fork"))), "created");
    assert.equal(gist(await registry.delete("fork")), "deleted");
    assert.equal(await codeOf(registry, "source"), "stream-gone");
    assert.deepEqual((await Promise.all(leaves.map((name) => registry.delete(name)))).map(gist), ["deleted", "deleted", "deleted"]);
    assert.equal(gist(await registry.create("source", createOf())), "created");
  });

  test("stays held while one of its forks has another, whatever goes", async (t) => {
    const { registry } = await withFork(t);
    for (const name of ["a", "b"]) assert.equal(gist(await registry.create(name, forkOf("fork"))), "created");
    assert.equal(gist(await registry.delete("fork")), "deleted");
    assert.equal(gist(await registry.delete("a")), "deleted");
    assert.equal(gist(await registry.create("source", createOf())), "name-held-by-forks");
    assert.equal(await codeOf(registry, "fork"), "stream-gone");
    assert.equal(await textOf(registry, "b"), "old");
  });

  test("stays held where the source can't be removed yet", async (t) => {
    const { engine, registry } = await withFork(t);
    engine.files.gate = failingAfter(1);
    assert.equal(gist(await registry.delete("fork")), "deleted");
    assert.equal(await codeOf(registry, "source"), "stream-gone");
    assert.equal(gist(await registry.create("source", createOf())), "name-held-by-forks");
  });
});

/** The first deleted once the second was forked from it, the second once the third was. */
const ROW = ["first", "second", "third"] as const;

/** A row of forks, of which all but the last are deleted. */
async function rowOfForks(t: TestContext): Promise<TestRegistry> {
  return withRow(await registryOf(t));
}

/** The same on an engine that the test itself ends. */
async function rowToEnd(): Promise<TestRegistry> {
  return withRow(registryOn(await openEngine()));
}

async function withRow(made: TestRegistry): Promise<TestRegistry> {
  const { registry } = made;
  for (const [index, name] of ROW.entries()) {
    const before = ROW[index - 1];
    const command = before === undefined ? createOf({ text: name }) : forkOf(before, ` ${name}`);
    assert.equal(gist(await registry.create(name, command)), "created");
    if (before !== undefined) assert.equal(gist(await registry.delete(before)), "deleted");
  }
  return made;
}

/** Takes all names of the row at once, the first first: it is the last that is freed. */
async function taken(registry: Registry): Promise<string[]> {
  return Promise.all(ROW.map(async (name) => gist(await registry.create(name, createOf({ contentType: "a/b" })))));
}

/** A full disk after so many of the journal's frames. */
function failingAfter(count: number): Gate {
  let frames = 0;
  return ({ kind }) => (kind === "writeThen" && (frames += 1) > count ? diskError("ENOSPC") : undefined);
}

describe("the names of a row of deleted forks", () => {
  /** What is left of the row has gone; then all its names are free. */
  async function assertFree({ registry, engine }: TestRegistry): Promise<void> {
    await engine.files.idle();
    assert.deepEqual(await taken(registry), ["created", "created", "created"]);
  }

  test("are free soon after the deletion of the last fork", async (t) => {
    const made = await rowOfForks(t);
    assert.equal(await textOf(made.registry, "third"), "first second third");
    assert.equal(gist(await made.registry.delete("third")), "deleted");
    await assertFree(made);
  });

  test("are free soon after its time was over", async (t) => {
    const made = await rowOfForks(t);
    const { registry, engine } = made;
    const fork = { source: "third", offset: null, place: null, subOffset: 0 };
    await registry.create("fourth", createOf({ contentType: null, fork, ttlSeconds: 1 }));
    assert.equal(gist(await registry.delete("third")), "deleted");
    engine.clock.advance(1001);
    assert.equal(await codeOf(registry, "fourth"), "stream-not-found");
    await assertFree(made);
  });

  for (const [end, again] of [
    ["a clean end", reopen],
    ["a crash", crashAndRecover],
  ] as const) {
    test(`are free soon after the deletion also where ${end} was before it`, async (t) => {
      const made = await registryOf(t, {}, await again((await rowToEnd()).engine));
      assert.equal(gist(await made.registry.delete("third")), "deleted");
      await assertFree(made);
    });

    test(`are free soon after the deletion also where ${end} is after it`, async (t) => {
      const made = await rowToEnd();
      assert.equal(gist(await made.registry.delete("third")), "deleted");
      await assertFree(await registryOf(t, {}, await again(made.engine)));
    });
  }

  test("are free soon after the last two forks of one of them are deleted at the same time", async (t) => {
    const made = await rowOfForks(t);
    const { registry } = made;
    assert.equal(gist(await registry.create("left", forkOf("third"))), "created");
    assert.equal(gist(await registry.create("right", forkOf("third"))), "created");
    const outcomes = await Promise.all(["third", "left", "right"].map((name) => registry.delete(name)));
    assert.deepEqual(outcomes.map(gist), ["deleted", "deleted", "deleted"]);
    await assertFree(made);
  });

  test("stay held, and what they share is there, where the deletion finds no room", async (t) => {
    const { registry, engine } = await rowToEnd();
    engine.files.gate = failingAfter(0);
    assert.equal(gist(await registry.delete("third")), "storage-full");
    engine.files.gate = null;
    engine.clock.advance(1000);
    await engine.files.idle();
    assert.deepEqual(await taken(registry), ["name-held-by-forks", "name-held-by-forks", "config-mismatch"]);
    const after = await registryOf(t, {}, await crashAndRecover(engine));
    assert.equal(await textOf(after.registry, "third"), "first second third");
    assert.equal(gist(await after.registry.delete("third")), "deleted");
    await assertFree(after);
  });
});

test("a damaged source is deleted when its forks are, and says so", async (t) => {
  const { engine } = await registryOf(t);
  const sound = registryOn(engine).registry;
  await sound.create("source", createOf({ text: "old" }));
  await sound.create("fork", forkOf("source"));
  const files = new WatchedFiles();
  files.gate = ({ kind, path }) => (kind === "read" && path.endsWith("/source/meta.json") ? diskError("EIO") : undefined);
  const { registry } = await registryOf(t, {}, await reopen(engine, { files }));
  const refused = await registry.delete("source");
  assert.equal(gist(refused), "stream-damaged");
  assert.match(refused.kind === "refused" ? (refused.detail ?? "") : "", /Delete them first/);
  for (const name of ["fork", "source"]) assert.equal(gist(await registry.delete(name)), "deleted");
  assert.equal(gist(await registry.create("source", createOf())), "created");
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
