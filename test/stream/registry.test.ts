import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { describe, test, type TestContext } from "node:test";
import { Layout } from "../../src/storage/file/format/layout.js";
import type { AppendCommand, CreateCommand } from "../../src/stream/rules/command.js";
import { TOUCH_INTERVAL_MS, type TtlMode } from "../../src/stream/rules/expiry.js";
import type { AppendOutcome, CreateOutcome, DeleteOutcome, Refused } from "../../src/stream/rules/outcome.js";
import { Registry } from "../../src/stream/registry.js";
import { Stream } from "../../src/stream/loaded/stream.js";
import { appendByName } from "../helpers/append.js";
import { bytesOf, crashAndRecover, keptLog, openEngine, reopen, type Engine, type LogLine } from "../helpers/engine.js";
import { Random } from "../helpers/random.js";
import { tokenIn } from "../helpers/tokens.js";
import { Barrier, diskError } from "../helpers/watched-files.js";

interface TestRegistry {
  readonly engine: Engine;
  readonly registry: Registry;
  readonly log: readonly LogLine[];
}

interface Limits {
  readonly maxLoadedStreams?: number;
  readonly maxLoadedProducers?: number;
  readonly ttlMode?: TtlMode;
}

/** A registry on an engine that the test itself ends. */
function registryOn(
  engine: Engine,
  { maxLoadedStreams = 1000, maxLoadedProducers = 1000, ttlMode = "sliding" }: Limits = {},
): TestRegistry {
  const { log, lines } = keptLog();
  const registry = new Registry({ storage: engine.storage, clock: engine.clock, log, ttlMode, maxLoadedStreams, maxLoadedProducers });
  return { engine, registry, log: lines };
}

/** A registry on an engine; both are ended when the test is over. */
async function registryOf(t: TestContext, limits?: Limits, engine?: Engine): Promise<TestRegistry> {
  const made = registryOn(engine ?? (await openEngine()), limits);
  t.after(() => {
    made.registry.stop();
    return made.engine.storage.close();
  });
  return made;
}

function createOf(more: Partial<CreateCommand> & { text?: string | Buffer } = {}): CreateCommand {
  const { text = "", ...rest } = more;
  return { contentType: "text/plain", ttlSeconds: null, expiresAtMs: null, closed: false, fork: null, body: Buffer.from(text), ...rest };
}

function appendOf(text: string, more: Partial<AppendCommand> = {}): AppendCommand {
  return { contentType: "text/plain", body: Buffer.from(text), closes: false, producer: null, seq: null, ...more };
}

function gist(outcome: CreateOutcome | AppendOutcome | DeleteOutcome): string {
  if (outcome.kind === "refused") return outcome.code;
  if (outcome.kind === "created") return outcome.created ? "created" : "there";
  return outcome.kind;
}

async function find(registry: Registry, name: string): Promise<Stream> {
  const found = await registry.find(name);
  assert.ok(found instanceof Stream, `${name}: ${JSON.stringify(found)}`);
  return found;
}

async function isThere(registry: Registry, name: string): Promise<boolean> {
  return (await registry.find(name)) instanceof Stream;
}

async function textOf(registry: Registry, name: string): Promise<string> {
  const stream = await find(registry, name);
  return (await stream.read(0, 100_000)).bytes.toString();
}

/** What has settled so far; the rest is "waiting". */
async function soFar(
  engine: Engine,
  outcomes: readonly (CreateOutcome | AppendOutcome | DeleteOutcome | Promise<CreateOutcome | AppendOutcome | DeleteOutcome>)[],
): Promise<string[]> {
  const gists = outcomes.map(() => "waiting");
  outcomes.forEach((outcome, index) => void Promise.resolve(outcome).then((done) => (gists[index] = gist(done))));
  await engine.files.idle();
  return gists;
}

async function tokenAt(registry: Registry, name: string, position: number): Promise<string> {
  const stream = await registry.find(name);
  assert.ok(stream instanceof Stream);
  return tokenIn(stream.id, position);
}

describe("creating", () => {
  test("makes a stream, with the default content type where none is asked for", async (t) => {
    const { registry } = await registryOf(t);
    assert.deepEqual(await registry.create("s", createOf({ text: "hello" })), {
      kind: "created",
      created: true,
      contentType: "text/plain",
      nextOffset: await tokenAt(registry, "s", 5),
      closed: false,
    });
    const bare = await registry.create("t", createOf({ contentType: null }));
    assert.ok(bare.kind === "created");
    assert.deepEqual([bare.contentType, bare.nextOffset], ["application/octet-stream", "0000000000000000_0000000000000000"]);
    assert.equal(await textOf(registry, "s"), "hello");
  });

  test("the same again finds it there and appends nothing; anything else is a conflict", async (t) => {
    const { registry } = await registryOf(t);
    await registry.create("s", createOf({ text: "hello", ttlSeconds: 60 }));
    const again = await registry.create("s", createOf({ text: "other", ttlSeconds: 60 }));
    assert.deepEqual(again, {
      kind: "created",
      created: false,
      contentType: "text/plain",
      nextOffset: await tokenAt(registry, "s", 5),
      closed: false,
    });
    for (const other of [
      createOf(),
      createOf({ ttlSeconds: 61 }),
      createOf({ ttlSeconds: 60, closed: true }),
      createOf({ ttlSeconds: 60, contentType: "a/b" }),
    ]) {
      assert.equal(gist(await registry.create("s", other)), "config-mismatch");
    }
    assert.equal(await textOf(registry, "s"), "hello");
  });

  test("by many at once makes one stream, and all wait until it is durable", async (t) => {
    const { engine, registry } = await registryOf(t);
    const disk = engine.files.holdJournal();
    const outcomes = [1, 2, 3].map(() => registry.create("s", createOf({ text: "x" })));
    assert.deepEqual(await soFar(engine, outcomes), ["waiting", "waiting", "waiting"]);
    disk.open();
    assert.deepEqual(await soFar(engine, outcomes), ["created", "there", "there"]);
    assert.equal(await textOf(registry, "s"), "x");
  });

  test("refuses a JSON body that is none, and takes an empty array for an empty stream", async (t) => {
    const { registry } = await registryOf(t);
    assert.equal(gist(await registry.create("s", createOf({ contentType: "application/json", text: "{" }))), "invalid-json");
    assert.equal(await isThere(registry, "s"), false);
    const empty = await registry.create("s", createOf({ contentType: "application/json", text: "[]" }));
    assert.ok(empty.kind === "created" && empty.nextOffset.endsWith("_0000000000000000"));
  });

  test("can make a closed stream", async (t) => {
    const { registry } = await registryOf(t);
    const made = await registry.create("s", createOf({ text: "all", closed: true }));
    assert.ok(made.kind === "created" && made.closed);
    assert.equal(gist(await appendByName(registry, "s", appendOf("x"))), "stream-closed");
  });

  test("is refused when the disk is full, leaves nothing, and works when there is room", async (t) => {
    for (const size of [5, 5000]) {
      const { engine, registry } = await registryOf(t);
      engine.files.gate = ({ kind, path }) =>
        kind === "writeThen" || (kind === "write" && path.endsWith(".seg")) ? diskError("ENOSPC") : undefined;
      const finding = registry.create("s", createOf({ text: bytesOf(size) }));
      const append = appendByName(registry, "s", appendOf("x"));
      assert.deepEqual([gist(await finding), gist(await append)], ["storage-full", size === 5 ? "storage-full" : gist(await append)]);
      assert.equal(await isThere(registry, "s"), false);
      assert.equal(registry.loadedCount, 0);
      engine.files.gate = null;
      engine.clock.advance(1000);
      await engine.files.idle();
      assert.equal(gist(await registry.create("s", createOf({ text: "y" }))), "created");
    }
  });

  test("is refused when storage takes no more", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("s", createOf());
    engine.files.gate = ({ kind }) => (kind === "writeThen" ? diskError("EIO") : undefined);
    assert.equal(gist(await appendByName(registry, "s", appendOf("x"))), "storage-unavailable");
    assert.equal(gist(await registry.create("t", createOf())), "storage-unavailable");
    assert.equal(gist(await registry.delete("s")), "storage-unavailable");
    assert.equal(registry.health().writable, false);
    assert.equal(await isThere(registry, "s"), true);
  });
});

describe("finding", () => {
  test("a name that nobody made says so, everywhere", async (t) => {
    const { registry } = await registryOf(t);
    assert.equal(((await registry.find("s")) as Refused).code, "stream-not-found");
    assert.equal(gist(await appendByName(registry, "s", appendOf("x"))), "stream-not-found");
    assert.equal(gist(await registry.delete("s")), "stream-not-found");
    assert.equal(registry.loadedCount, 0);
  });

  test("a stream in memory costs no waiting", async (t) => {
    const { registry } = await registryOf(t);
    await registry.create("s", createOf());
    assert.ok(registry.find("s") instanceof Stream);
  });

  test("a stream that is being made waits until it is durable", async (t) => {
    const { engine, registry } = await registryOf(t);
    const disk = engine.files.holdJournal();
    const made = registry.create("s", createOf({ text: "x" }));
    await engine.files.idle();
    const found: (Stream | Refused)[] = [];
    const finding = Promise.resolve(registry.find("s")).then((stream) => found.push(stream));
    await engine.files.idle();
    assert.equal(found.length, 0);
    disk.open();
    await Promise.all([made, finding]);
    assert.ok(found[0] instanceof Stream);
  });

  test("by many at once loads a stream once", async (t) => {
    const engine = await openEngine();
    await registryOn(engine).registry.create("s", createOf({ text: "x" }));
    const again = await reopen(engine);
    const second = await registryOf(t, {}, again);
    const before = again.files.count("open", /meta\.json/);
    const found = await Promise.all([1, 2, 3].map(() => second.registry.find("s")));
    assert.equal(new Set(found).size, 1);
    assert.equal(again.files.count("open", /meta\.json/) - before, 1);
  });
});

describe("deleting", () => {
  test("frees the name at once, and nothing of the old stream shows in the new one", async (t) => {
    const { registry } = await registryOf(t);
    await registry.create("s", createOf({ text: "secret" }));
    await appendByName(registry, "s", appendOf("more", { producer: { id: "p", epoch: 4, seq: 0 }, seq: "z", closes: true }));
    const old = await find(registry, "s");
    const outcomes = await Promise.all([registry.delete("s"), registry.create("s", createOf({ text: "new" }))]);
    assert.deepEqual(outcomes.map(gist), ["deleted", "created"]);
    const next = await find(registry, "s");
    assert.notEqual(next.id, old.id);
    assert.equal(await textOf(registry, "s"), "new");
    assert.equal(gist(await appendByName(registry, "s", appendOf("x", { producer: { id: "p", epoch: 0, seq: 0 }, seq: "a" }))), "appended");
  });

  test("is not shown before it is durable, and once it is the stream is gone for all", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("s", createOf());
    const disk = engine.files.holdJournal();
    const outcomes = [registry.delete("s"), appendByName(registry, "s", appendOf("x")), registry.delete("s")];
    assert.deepEqual(await soFar(engine, outcomes), ["waiting", "waiting", "waiting"]);
    disk.open();
    assert.deepEqual(await soFar(engine, outcomes), ["deleted", "stream-not-found", "stream-not-found"]);
    assert.equal(registry.loadedCount, 0);
  });

  test("comes before what is asked of the name after it, in the order in which that came", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("s", createOf({ text: "old" }));
    const disk = engine.files.holdJournal();
    const outcomes = [
      registry.delete("s"),
      registry.create("s", createOf({ text: "new" })),
      registry.create("s", createOf({ text: "other" })),
      appendByName(registry, "s", appendOf("!")),
      registry.create("s", createOf({ contentType: "a/b" })),
      registry.delete("s"),
      registry.create("s", createOf({ contentType: "a/b", text: "last" })),
      appendByName(registry, "s", appendOf("!")),
    ];
    assert.deepEqual(
      await soFar(engine, outcomes),
      outcomes.map(() => "waiting"),
    );
    disk.open();
    assert.deepEqual(await soFar(engine, outcomes), [
      "deleted",
      "created",
      "there",
      "appended",
      "config-mismatch",
      "deleted",
      "created",
      "content-type-mismatch",
    ]);
    assert.equal(await textOf(registry, "s"), "last");
  });

  test("comes before a later creation also where the stream is on disk, and has expired", async (t) => {
    const engine = await openEngine();
    await registryOn(engine).registry.create("s", createOf({ text: "old", expiresAtMs: engine.clock.nowMs() + 1000 }));
    const { engine: next, registry } = await registryOf(t, {}, await reopen(engine));
    next.clock.advance(2000);
    const outcomes = [registry.delete("s"), registry.create("s", createOf({ text: "new" })), appendByName(registry, "s", appendOf("!"))];
    assert.deepEqual(await soFar(next, outcomes), ["stream-not-found", "created", "appended"]);
    assert.equal(await textOf(registry, "s"), "new!");
  });

  test("of a stream that has expired comes before its name is made again, or the creation fails with it", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("s", createOf({ text: "old", ttlSeconds: 1 }));
    engine.files.gate = ({ kind }) => (kind === "writeThen" ? diskError("ENOSPC") : undefined);
    engine.clock.advance(1000);
    assert.equal(gist(await registry.create("s", createOf({ text: "new" }))), "storage-full");
    assert.equal(gist(await registry.create("s", createOf({ text: "new" }))), "storage-full", "and where it is not taken at all");
    assert.equal(await isThere(registry, "s"), false);
    engine.files.gate = null;
    engine.clock.advance(1000);
    await engine.files.idle();
    assert.equal(gist(await registry.create("s", createOf({ text: "new" }))), "created");
    assert.equal(await textOf(registry, "s"), "new");
  });

  test("a stream that is not in memory loads it", async (t) => {
    const engine = await openEngine();
    const before = registryOn(engine);
    await before.registry.create("s", createOf());
    const { registry } = await registryOf(t, {}, await reopen(engine));
    assert.equal(gist(await registry.delete("s")), "deleted");
    assert.equal(await isThere(registry, "s"), false);
  });

  test("tells live readers", async (t) => {
    const { registry } = await registryOf(t);
    await registry.create("s", createOf());
    const stream = await find(registry, "s");
    let ended = 0;
    const leave = stream.follow(
      () => undefined,
      () => (ended += 1),
    );
    await registry.delete("s");
    assert.ok(ended >= 1);
    leave();
  });

  test("that fails for a full disk leaves the stream as it was, with a creation behind it or without", async (t) => {
    for (const more of [0, 1, 3]) {
      const { engine, registry } = await registryOf(t);
      await registry.create("s", createOf({ text: "kept" }));
      const kept = await find(registry, "s");
      engine.files.gate = ({ kind }) => (kind === "writeThen" ? diskError("ENOSPC") : undefined);
      const outcomes: Promise<CreateOutcome | DeleteOutcome>[] = [registry.delete("s")];
      for (let index = 0; index < more; index += 1)
        outcomes.push(index % 2 === 0 ? registry.create("s", createOf({ text: "new", contentType: "a/b" })) : registry.delete("s"));
      assert.deepEqual(
        (await Promise.all(outcomes)).map(gist),
        outcomes.map(() => "storage-full"),
      );
      engine.files.gate = null;
      engine.clock.advance(1000);
      await engine.files.idle();
      assert.equal(await registry.find("s"), kept, "its live readers are those of the stream");
      assert.equal(await textOf(registry, "s"), "kept");
      assert.equal(gist(await appendByName(registry, "s", appendOf(" and more"))), "appended");
      assert.equal(await textOf(registry, "s"), "kept and more");
    }
  });

  test("that fails for lack of a file leaves the stream as it was, and what comes behind it fails with it", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("s", createOf({ text: "kept" }));
    const kept = await find(registry, "s");
    await registry.create("other", createOf());
    engine.files.gate = ({ kind, path }) => (kind === "open" && path.endsWith(".journal") ? diskError("EMFILE") : undefined);
    let waiting = 0;
    const outcomes: (AppendOutcome | CreateOutcome | DeleteOutcome | Promise<AppendOutcome | CreateOutcome | DeleteOutcome>)[] = [];
    while (waiting === 0) {
      waiting += 1;
      outcomes[0] = Promise.resolve(appendByName(registry, "other", appendOf(bytesOf(1000).toString()))).finally(() => (waiting -= 1));
      await engine.files.idle();
    }
    outcomes.push(
      registry.delete("s"),
      registry.create("s", createOf({ text: bytesOf(5000).toString(), contentType: "a/b" })),
      registry.delete("s"),
    );
    await engine.files.idle();
    engine.clock.advance(2000);
    assert.deepEqual(
      (await Promise.all(outcomes)).map(gist),
      outcomes.map(() => "overloaded"),
    );
    await engine.files.idle();
    assert.deepEqual(engine.faults, []);
    engine.files.gate = null;
    engine.clock.advance(100);
    await engine.files.idle();
    assert.equal(await registry.find("s"), kept);
    assert.equal(await textOf(registry, "s"), "kept");
    assert.equal(gist(await appendByName(registry, "s", appendOf(" and more"))), "appended");
  });

  for (const hasFork of [false, true]) {
    test(`that fails with what it waited for fails what comes to wait for it${hasFork ? ", also where forks hold the name" : ""}`, async (t) => {
      const { engine, registry } = await registryOf(t);
      await registry.create("s", createOf({ text: "kept" }));
      if (hasFork)
        await registry.create("fork", createOf({ contentType: null, fork: { source: "s", offset: null, place: null, subOffset: 0 } }));
      const disk = new Barrier();
      let frames = 0;
      engine.files.gate = ({ kind, path }) => {
        if (kind === "writeThen") return (frames += 1) === 1 ? diskError("ENOSPC") : undefined;
        return kind === "write" && path.endsWith(".seg") ? disk.opened : undefined;
      };
      const outcomes: (CreateOutcome | AppendOutcome | DeleteOutcome | Promise<CreateOutcome | AppendOutcome | DeleteOutcome>)[] = [
        appendByName(registry, "s", appendOf("a")),
        appendByName(registry, "s", appendOf(bytesOf(5000).toString())),
        registry.delete("s"),
      ];
      assert.equal(gist((await outcomes[0]) ?? assert.fail()), "storage-full");
      // Another stream finds that there is room again.
      engine.clock.advance(1000);
      await engine.files.idle();
      await registry.create("other", createOf());
      outcomes.push(appendByName(registry, "s", appendOf("late")), registry.delete("s"), registry.create("s", createOf()));
      disk.open();
      assert.deepEqual(
        (await Promise.all(outcomes)).map(gist),
        outcomes.map(() => "storage-full"),
      );
      assert.equal(await textOf(registry, "s"), "kept");
    });
  }

  test("a stream whose creation fails as well leaves nothing", async (t) => {
    const { engine, registry } = await registryOf(t);
    engine.files.gate = ({ kind }) => (kind === "writeThen" ? diskError("ENOSPC") : undefined);
    const made = registry.create("s", createOf({ text: "x" }));
    await Promise.resolve();
    await Promise.resolve();
    const gone = registry.delete("s");
    await made;
    await gone;
    engine.files.gate = null;
    engine.clock.advance(1000);
    await engine.files.idle();
    assert.equal(await isThere(registry, "s"), false);
    assert.equal(gist(await appendByName(registry, "s", appendOf("x"))), "stream-not-found");
  });
});

describe("expiry", () => {
  for (const [ttlMode, readsKeep] of [
    ["sliding", true],
    ["fixed", false],
  ] as const) {
    test(`of a ${ttlMode} TTL comes within a second and never early, ${readsKeep ? "and reads move it" : "and reads do not move it"}`, async (t) => {
      const { engine, registry } = await registryOf(t, { ttlMode });
      await registry.create("s", createOf({ ttlSeconds: 10 }));
      engine.clock.advance(9000);
      await (await find(registry, "s")).touch();
      engine.clock.advance(999);
      assert.equal(await isThere(registry, "s"), true);
      engine.clock.advance(1);
      assert.equal(await isThere(registry, "s"), readsKeep);
      engine.clock.advance(8999);
      assert.equal(await isThere(registry, "s"), readsKeep);
      engine.clock.advance(1);
      assert.equal(await isThere(registry, "s"), false);
      assert.equal(gist(await appendByName(registry, "s", appendOf("x"))), "stream-not-found");
      assert.equal(gist(await registry.delete("s")), "stream-not-found");
    });
  }

  test("removes the data also if nobody asks again, and lets live readers go", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("s", createOf({ ttlSeconds: 1, text: bytesOf(5000) }));
    const stream = await find(registry, "s");
    let ended = false;
    const leave = stream.follow(
      () => undefined,
      () => (ended = true),
    );
    const directory = new Layout(engine.dir).streamDirectory("s");
    assert.ok(existsSync(directory));
    engine.clock.advance(2000);
    await engine.files.idle();
    assert.equal(ended, true);
    assert.equal(existsSync(directory), false);
    assert.equal(registry.loadedCount, 0);
    leave();
  });

  test("at once is valid: a TTL of 0 and an expiry in the past", async (t) => {
    const { engine, registry } = await registryOf(t);
    assert.equal(gist(await registry.create("zero", createOf({ ttlSeconds: 0 }))), "created");
    assert.equal(gist(await registry.create("past", createOf({ expiresAtMs: engine.clock.nowMs() - 1000 }))), "created");
    for (const name of ["zero", "past"]) assert.equal(await isThere(registry, name), false);
    assert.equal(gist(await registry.create("zero", createOf())), "created");
  });

  test("comes before a deletion: there is nothing to delete any more", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("s", createOf({ expiresAtMs: engine.clock.nowMs() + 100 }));
    engine.clock.advance(100);
    assert.equal(gist(await registry.delete("s")), "stream-not-found");
  });

  test("frees the name: the next creation finds nothing of it", async (t) => {
    const { engine, registry } = await registryOf(t);
    for (const size of [5, 5000]) {
      await registry.create("s", createOf({ ttlSeconds: 1, text: bytesOf(size) }));
      engine.clock.advance(1000);
      assert.equal(gist(await registry.create("s", createOf({ text: bytesOf(size + 1), contentType: "a/b" }))), "created");
      assert.equal((await textOf(registry, "s")).length, size + 1);
      await engine.files.idle();
      assert.equal(gist(await registry.delete("s")), "deleted");
    }
  });

  test("is the same across a restart: never early, and not much later", async (t) => {
    for (const restart of [reopen, crashAndRecover]) {
      const engine = await openEngine();
      const before = registryOn(engine);
      await before.registry.create("s", createOf({ ttlSeconds: 10 }));
      await before.registry.create("fixed-date", createOf({ expiresAtMs: engine.clock.nowMs() + 10_000 }));
      engine.clock.advance(5000);
      (await find(before.registry, "s")).touch();
      engine.clock.advance(400);
      // Too soon after the last one to be noted in storage.
      (await find(before.registry, "s")).touch();
      await engine.files.idle();
      const deadlineMs = engine.clock.nowMs() + 10_000;
      before.registry.stop();
      const { engine: next, registry } = await registryOf(t, {}, await restart(engine));
      next.clock.advance(deadlineMs - next.clock.nowMs() - 1);
      assert.equal(await isThere(registry, "fixed-date"), false);
      assert.equal(await isThere(registry, "s"), true);
      next.clock.advance(1001);
      assert.equal(await isThere(registry, "s"), false);
    }
  });

  test("outlives a kill that comes at any moment after a read, however often it is read", async (t) => {
    const firstSeed = Math.floor(Math.random() * 2 ** 31);
    for (let seed = firstSeed; seed < firstSeed + 20; seed += 1) {
      const random = new Random(seed);
      const ttlSeconds = random.integer(1, 5);
      const engine = await openEngine();
      const before = registryOn(engine);
      await before.registry.create("s", createOf({ ttlSeconds }));
      let readAtMs = engine.clock.nowMs();
      for (let reads = random.integer(1, 30); reads > 0; reads -= 1) {
        engine.clock.advance(random.chance(0.7) ? random.integer(0, 200) : random.integer(0, ttlSeconds * 1000 - 1));
        await (await find(before.registry, "s")).touch();
        readAtMs = engine.clock.nowMs();
      }
      const untouchedMs = random.integer(0, ttlSeconds * 1000 - 1);
      engine.clock.advance(untouchedMs);
      before.registry.stop();
      const { engine: next, registry } = await registryOf(t, {}, await crashAndRecover(engine));
      registry.start();
      // Its time goes on, looked for on disk and not, up to the last millisecond that the last read gave it.
      next.clock.advance(readAtMs + ttlSeconds * 1000 - 1 - next.clock.nowMs());
      await next.files.idle();
      assert.equal(await isThere(registry, "s"), true, `seed ${seed}: gone before its time`);
      next.clock.advance(1 + TOUCH_INTERVAL_MS);
      assert.equal(await isThere(registry, "s"), false, `seed ${seed}: there after its time`);
    }
  });

  test("costs the journal one note in half a second, however often the stream is read", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("s", createOf({ ttlSeconds: 10 }));
    const stream = await find(registry, "s");
    const batches = (): number => engine.files.count("writeThen", /\.journal$/);
    const before = batches();
    for (let step = 0; step < 200; step += 1) {
      engine.clock.advance(10);
      for (let reader = 0; reader < 50; reader += 1) void stream.touch();
      await engine.files.idle();
    }
    assert.ok(batches() - before <= 2000 / TOUCH_INTERVAL_MS, `${batches() - before} notes of 10,000 reads in two seconds`);
  });

  test("is noted for itself beside an append that may yet fail", async (t) => {
    const { engine, registry } = registryOn(await openEngine());
    await registry.create("s", createOf({ ttlSeconds: 10 }));
    const stream = await find(registry, "s");
    engine.clock.advance(TOUCH_INTERVAL_MS);
    const disk = new Barrier();
    engine.files.gate = ({ kind, path }) =>
      kind === "write" && path.endsWith(".seg") ? disk.opened.then(() => Promise.reject(diskError("EMFILE"))) : undefined;
    const appended = appendByName(registry, "s", appendOf(bytesOf(5000).toString()));
    const noted = stream.touch();
    assert.ok(noted instanceof Promise);
    disk.open();
    assert.equal(gist(await appended), "overloaded");
    await noted;
    await engine.files.idle();
    const { storage } = await crashAndRecover(engine);
    t.after(() => storage.close());
    assert.equal((await storage.load("s"))?.state.touchedAtMs, engine.clock.nowMs());
  });

  test("is not let go from memory with a read that a full disk would not note", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("s", createOf({ ttlSeconds: 10 }));
    await registry.create("eternal", createOf());
    const [stream, eternal] = [await find(registry, "s"), await find(registry, "eternal")];
    engine.clock.advance(2 * TOUCH_INTERVAL_MS);
    engine.files.gate = ({ kind }) => (kind === "writeThen" ? diskError("ENOSPC") : undefined);
    await stream.touch();
    assert.equal(gist(await appendByName(registry, "eternal", appendOf("x"))), "storage-full");
    assert.deepEqual([stream.idle, eternal.idle], [false, true], "what does not expire has nothing to lose");
    engine.files.gate = null;
    engine.clock.advance(1000);
    await engine.files.idle();
    await stream.touch();
    assert.equal(stream.idle, true);
  });

  test("stays where it was when memory lets go of a stream whose last use was answered late", async (t) => {
    const { engine, registry } = await registryOf(t, { maxLoadedStreams: 1 });
    await registry.create("s", createOf({ ttlSeconds: 10 }));
    const before = await find(registry, "s");
    const disk = engine.files.holdJournal();
    const appended = appendByName(registry, "s", appendOf("x"));
    await engine.files.idle();
    engine.clock.advance(5000);
    engine.files.gate = null;
    disk.open();
    assert.equal(gist(await appended), "appended");
    const deadlineMs = engine.clock.nowMs() + 10_000;
    for (let others = 0; others < 8; others += 1) {
      await registry.create(`other${others}`, createOf());
      await engine.files.idle();
    }
    engine.clock.advance(deadlineMs - 1 - engine.clock.nowMs());
    const after = await registry.find("s");
    assert.ok(after instanceof Stream, "expired before its time");
    assert.notEqual(after, before, "it was let go");
  });

  test("is looked for on disk: streams that nobody loads are removed too", async (t) => {
    const engine = await openEngine();
    const before = registryOn(engine);
    for (const name of ["gone", "also-gone"]) await before.registry.create(name, createOf({ ttlSeconds: 1 }));
    await before.registry.create("stays", createOf());
    before.registry.stop();
    const again = await reopen(engine);
    again.clock.advance(5000);
    const { registry } = await registryOf(t, {}, again);
    registry.start();
    again.clock.advance(0);
    await again.files.idle();
    const layout = new Layout(engine.dir);
    assert.deepEqual(
      ["gone", "also-gone", "stays"].map((name) => existsSync(layout.streamDirectory(name))),
      [false, false, true],
    );
    const lists = (): number => again.files.operations.filter(({ kind, path }) => kind === "list" && path === layout.streams).length;
    const before60 = lists();
    again.clock.advance(60_000);
    await again.files.idle();
    assert.equal(lists(), before60 + 1, "and looked for again a minute later");
  });

  test("that can't be looked for is a line in the log, and tried again", async (t) => {
    const { engine, registry, log } = await registryOf(t);
    engine.files.gate = ({ kind }) => (kind === "list" ? diskError("EMFILE") : undefined);
    registry.start();
    engine.clock.advance(0);
    await engine.files.idle();
    assert.deepEqual(
      log.map(({ level, message }) => [level, message]),
      [["error", "the search for what has expired was cut short"]],
    );
    engine.files.gate = null;
    const lists = engine.files.count("list", /streams$/);
    engine.clock.advance(60_000);
    await engine.files.idle();
    assert.equal(engine.files.count("list", /streams$/), lists + 1);
  });

  test("that the disk has no room for is tried again", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("s", createOf({ ttlSeconds: 1 }));
    engine.files.gate = ({ kind }) => (kind === "writeThen" ? diskError("ENOSPC") : undefined);
    engine.clock.advance(1500);
    await engine.files.idle();
    assert.equal(await isThere(registry, "s"), false);
    engine.files.gate = null;
    for (let second = 0; second < 3; second += 1) {
      engine.clock.advance(1000);
      await engine.files.idle();
    }
    assert.equal(registry.loadedCount, 0);
  });
});

describe("memory", () => {
  test("beyond its limit idle streams are let go, and are the same when they are used again", async (t) => {
    const { engine, registry } = await registryOf(t, { maxLoadedStreams: 5 });
    for (let index = 0; index < 40; index += 1) {
      const name = `s${index}`;
      await registry.create(name, createOf({ text: name }));
      await appendByName(registry, name, appendOf("!", { producer: { id: "p", epoch: 1, seq: 0 }, seq: "5" }));
      await engine.files.idle();
    }
    assert.ok(registry.loadedCount <= 10, `${registry.loadedCount} in memory`);
    for (let index = 0; index < 40; index += 1) {
      const name = `s${index}`;
      assert.equal(await textOf(registry, name), `${name}!`);
      assert.equal(gist(await appendByName(registry, name, appendOf("x", { seq: "5" }))), "stream-seq-regression");
      const duplicate = await appendByName(registry, name, appendOf("!", { producer: { id: "p", epoch: 1, seq: 0 } }));
      assert.ok(duplicate.kind === "appended" && duplicate.duplicate);
      await engine.files.idle();
    }
    assert.ok(registry.loadedCount <= 10);
  });

  test("streams in use stay, and when all are new names are refused", async (t) => {
    const { registry } = await registryOf(t, { maxLoadedStreams: 2 });
    const streams: Stream[] = [];
    let refused = 0;
    for (let index = 0; index < 8; index += 1) {
      const outcome = await registry.create(`s${index}`, createOf());
      if (outcome.kind === "refused") {
        assert.equal(outcome.code, "overloaded");
        refused += 1;
        continue;
      }
      const stream = await find(registry, `s${index}`);
      stream.retain();
      streams.push(stream);
    }
    assert.ok(refused > 0 && streams.length >= 2, `${refused} refused`);
    for (const stream of streams) assert.equal(await registry.find(stream.name), stream);
    for (const stream of streams) stream.release();
  });

  test("a stream that nobody used for two rounds is let go, and its expiry still comes", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("s", createOf({ text: "x" }));
    const first = await find(registry, "s");
    registry.start();
    engine.clock.advance(30_000);
    await engine.files.idle();
    assert.equal(registry.loadedCount, 1);
    engine.clock.advance(30_000);
    await engine.files.idle();
    assert.equal(registry.loadedCount, 0);
    const again = await find(registry, "s");
    assert.notEqual(again, first);
    assert.equal(again.id, first.id);
    assert.equal(await textOf(registry, "s"), "x");
  });

  test("a stream that is used while it is written out stays", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("s", createOf({ text: "x" }));
    registry.start();
    engine.clock.advance(30_000);
    await engine.files.idle();
    const disk = new Barrier();
    engine.files.gate = ({ kind, path }) => (kind === "rename" && path.includes("meta.json") ? disk.opened : undefined);
    engine.clock.advance(30_000);
    await engine.files.idle();
    const used = await find(registry, "s");
    disk.open();
    await engine.files.idle();
    assert.equal(registry.loadedCount, 1);
    assert.equal(await find(registry, "s"), used);
  });

  test("a stream that can't be written out stays, and the log says so", async (t) => {
    const { engine, registry, log } = await registryOf(t);
    await registry.create("s", createOf({ text: "x" }));
    registry.start();
    engine.clock.advance(30_000);
    await engine.files.idle();
    engine.files.gate = ({ kind, path }) => (kind === "rename" && path.includes("meta.json") ? diskError("ENOSPC") : undefined);
    engine.clock.advance(30_000);
    await engine.files.idle();
    assert.equal(registry.loadedCount, 1);
    assert.deepEqual(
      log.map(({ message, fields }) => [message, fields["stream"]]),
      [["a stream could not be written to its files", "s"]],
    );
    engine.files.gate = null;
  });

  test("after the end nothing happens in the background", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("s", createOf({ ttlSeconds: 1 }));
    registry.start();
    registry.stop();
    const before = engine.files.operations.length;
    engine.clock.advance(100_000);
    await engine.files.idle();
    assert.equal(engine.files.operations.length, before);
  });
});
