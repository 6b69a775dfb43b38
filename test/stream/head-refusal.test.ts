import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import type { AppendCommand, CreateCommand } from "../../src/stream/rules/command.js";
import { refusalOfAppend, refusalOfCreate } from "../../src/stream/head-refusal.js";
import type { Refused } from "../../src/stream/rules/outcome.js";
import { Registry } from "../../src/stream/registry.js";
import { appendByName } from "../helpers/append.js";
import { keptLog, openEngine, type Engine } from "../helpers/engine.js";

async function registryOf(t: TestContext): Promise<{ registry: Registry; engine: Engine }> {
  const engine = await openEngine();
  const registry = new Registry({
    storage: engine.storage,
    clock: engine.clock,
    log: keptLog().log,
    ttlMode: "sliding",
    maxLoadedStreams: 1000,
    maxLoadedProducers: 100_000,
  });
  t.after(() => {
    registry.stop();
    return engine.storage.close();
  });
  return { registry, engine };
}

function appendOf(more: Partial<AppendCommand> = {}): AppendCommand {
  return { contentType: "text/plain", body: Buffer.from("x"), closes: false, producer: null, seq: null, ifMatch: null, ...more };
}

function createOf(more: Partial<CreateCommand> = {}): CreateCommand {
  return { contentType: "text/plain", ttlSeconds: null, expiresAtMs: null, closed: false, fork: null, body: Buffer.from("x"), ...more };
}

function forkOf(source: string, more: Partial<CreateCommand> = {}): CreateCommand {
  return createOf({ fork: { source, offset: null, place: null, subOffset: 0 }, ...more });
}

/** An open and a closed stream, and one that is deleted but for its fork. */
async function withStreams(t: TestContext): Promise<{ registry: Registry; engine: Engine }> {
  const made = await registryOf(t);
  const { registry } = made;
  await registry.create("open", createOf());
  await appendByName(registry, "open", appendOf({ producer: { id: "p", epoch: 1, seq: 0 }, seq: "m" }));
  await registry.create("closed", createOf({ closed: true }));
  await registry.create("kept", createOf());
  await registry.create("fork", forkOf("kept"));
  await registry.delete("kept");
  return made;
}

describe("an append", () => {
  test("is refused for its head with what the whole request is told, or not at all", async (t) => {
    const { registry } = await withStreams(t);
    const table: [name: string, head: Partial<AppendCommand>, code: string | null][] = [
      ["none", {}, "stream-not-found"],
      ["kept", {}, "stream-gone"],
      ["closed", {}, "stream-closed"],
      ["closed", { closes: true }, "stream-closed"],
      ["open", { contentType: null }, "content-type-missing"],
      ["open", { contentType: "a/b" }, "content-type-mismatch"],
      ["open", { producer: { id: "p", epoch: 0, seq: 0 } }, "stale-epoch"],
      ["open", { contentType: "a/b", producer: { id: "p", epoch: 0, seq: 0 } }, "content-type-mismatch"],
      ["open", { producer: { id: "p", epoch: 1, seq: 5 } }, null],
      ["open", { producer: { id: "p", epoch: 1, seq: 0 } }, null],
      ["open", { producer: { id: "p", epoch: 2, seq: 1 } }, null],
      ["open", { seq: "a" }, null],
      ["open", {}, null],
    ];
    for (const [name, head, code] of table) {
      const message = `${name} ${JSON.stringify(head)}`;
      const refusal = await refusalOfAppend(registry, name, appendOf(head), true);
      assert.equal(refusal?.code ?? null, code, message);
      if (refusal !== null) assert.deepEqual(refusal, await appendByName(registry, name, appendOf(head)), message);
    }
  });

  test("that may yet be empty is refused for the stream that is not there alone", async (t) => {
    const { registry } = await withStreams(t);
    for (const [name, code] of [
      ["none", "stream-not-found"],
      ["kept", "stream-gone"],
      ["closed", null],
      ["open", null],
    ] as const) {
      assert.equal((await refusalOfAppend(registry, name, appendOf({ contentType: "a/b" }), false))?.code ?? null, code, name);
    }
  });

  test("is told of a closure when that is durable, and where the stream ends", async (t) => {
    const { registry, engine } = await withStreams(t);
    const disk = engine.files.holdJournal();
    const closing = appendByName(registry, "open", appendOf({ closes: true }));
    let told: Refused | null = null;
    const telling = Promise.resolve(refusalOfAppend(registry, "open", appendOf(), true)).then((refusal) => (told = refusal));
    await engine.files.idle();
    assert.equal(told, null);
    disk.open();
    const closed = await closing;
    assert.ok(closed.kind === "appended");
    const closedAt = new Date(engine.clock.nowMs()).toISOString();
    assert.deepEqual(await telling, {
      kind: "refused",
      code: "stream-closed",
      closed: true,
      detail: `It was closed at ${closedAt}.`,
      facts: { closedAt },
      nextOffset: closed.nextOffset,
    });
  });
});

test("a create is refused for its head with what the whole request is told, or not at all", async (t) => {
  const { registry } = await withStreams(t);
  const table: [name: string, command: CreateCommand, code: string | null][] = [
    ["open", createOf({ contentType: "a/b" }), "config-mismatch"],
    ["open", createOf({ ttlSeconds: 5 }), "config-mismatch"],
    ["open", createOf({ closed: true }), "config-mismatch"],
    ["closed", createOf(), "config-mismatch"],
    ["kept", createOf(), "name-held-by-forks"],
    ["new", forkOf("none"), "stream-not-found"],
    ["new", forkOf("kept"), "fork-source-gone"],
    ["new", forkOf("open", { contentType: "a/b" }), "content-type-mismatch"],
    ["fork", forkOf("kept"), null],
    ["fork", forkOf("open"), "config-mismatch"],
    ["open", createOf(), null],
    ["new", forkOf("open", { contentType: null }), null],
    ["newer", createOf(), null],
  ];
  for (const [name, command, code] of table) {
    const message = `${name} ${JSON.stringify(command)}`;
    const refusal = await refusalOfCreate(registry, name, command);
    assert.equal(refusal?.code ?? null, code, message);
    const outcome = await registry.create(name, command);
    if (refusal === null) assert.equal(outcome.kind, "created", message);
    else assert.deepEqual(refusal, outcome, message);
  }
});
