import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { AppendOutcome, CreateOutcome, DeleteOutcome, Refused } from "../../src/stream/rules/outcome.js";
import { Stream } from "../../src/stream/loaded/stream.js";
import { appendByName } from "../helpers/append.js";
import { bytesOf, openEngine, reopen } from "../helpers/engine.js";
import { Barrier, diskError } from "../helpers/watched-files.js";
import { appendOf, createOf, find, gist, isThere, registryOf, registryOn, soFar, textOf, tokenAt } from "../helpers/registries.js";

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
    test(`that fails after what it waited for fails what comes to wait for it${hasFork ? ", also where forks hold the name" : ""}`, async (t) => {
      const { engine, registry } = await registryOf(t);
      await registry.create("s", createOf({ text: "kept" }));
      if (hasFork)
        await registry.create("fork", createOf({ contentType: null, fork: { source: "s", offset: null, place: null, subOffset: 0 } }));
      const disk = new Barrier();
      let frames = 0;
      engine.files.gate = ({ kind, path }) => {
        if (kind === "writeThen") return (frames += 1) === 2 ? undefined : diskError("ENOSPC");
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
