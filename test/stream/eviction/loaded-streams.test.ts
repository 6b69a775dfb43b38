import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import type { AppendCommand } from "../../../src/stream/rules/command.js";
import type { AppendOutcome } from "../../../src/stream/rules/outcome.js";
import { Registry } from "../../../src/stream/registry.js";
import { Stream } from "../../../src/stream/loaded/stream.js";
import { appendByName } from "../../helpers/append.js";
import { keptLog, openEngine, type Engine } from "../../helpers/engine.js";
import { Barrier } from "../../helpers/watched-files.js";

const MAX_PRODUCERS = 20;

/** A registry whose streams may remember so many producers together, and twice as many where none is idle. */
class Memory {
  readonly engine: Engine;
  readonly registry: Registry;

  private constructor(engine: Engine) {
    this.engine = engine;
    const { storage, clock } = engine;
    this.registry = new Registry({
      storage,
      clock,
      log: keptLog().log,
      ttlMode: "sliding",
      maxLoadedStreams: 1000,
      maxLoadedProducers: MAX_PRODUCERS,
    });
  }

  static async open(t: TestContext): Promise<Memory> {
    const memory = new Memory(await openEngine());
    t.after(() => {
      memory.registry.stop();
      return memory.engine.storage.close();
    });
    return memory;
  }

  async create(name: string, ttlSeconds: number | null = null): Promise<void> {
    const outcome = await this.registry.create(name, {
      contentType: "text/plain",
      ttlSeconds,
      expiresAtMs: null,
      closed: false,
      fork: null,
      body: Buffer.alloc(0),
    });
    assert.equal(outcome.kind, "created");
  }

  append(name: string, producer: string | null, seq = 0, more: Partial<AppendCommand> = {}): Promise<AppendOutcome> {
    const stamp = producer === null ? null : { id: producer, epoch: 1, seq };
    return appendByName(this.registry, name, {
      contentType: "text/plain",
      body: Buffer.from("x"),
      closes: false,
      producer: stamp,
      seq: null,
      ifMatch: null,
      ...more,
    });
  }

  /** Appends of so many producers of a stream, and what became of them. */
  async produce(name: string, count: number, from = 0): Promise<string[]> {
    const gists: string[] = [];
    for (let at = from; at < from + count; at += 1) gists.push(gist(await this.append(name, `p${at}`)));
    return gists;
  }

  async find(name: string): Promise<Stream> {
    const found = await this.registry.find(name);
    assert.ok(found instanceof Stream, `${name}: ${JSON.stringify(found)}`);
    return found;
  }

  /** Streams in use with so many producers each. */
  async inUse(names: readonly string[], producers: number): Promise<Stream[]> {
    const streams: Stream[] = [];
    for (const name of names) {
      await this.create(name);
      const stream = await this.find(name);
      stream.retain();
      streams.push(stream);
      assert.deepEqual(new Set(await this.produce(name, producers)), new Set(["stored"]));
    }
    return streams;
  }
}

function gist(outcome: AppendOutcome): string {
  if (outcome.kind === "refused") return `${outcome.code}${outcome.detail === undefined ? "" : `: ${outcome.detail}`}`;
  return outcome.duplicate ? "duplicate" : "stored";
}

const NO_ROOM = "overloaded: Too many producers are in use.";

describe("the producers of all streams in memory", () => {
  test("beyond their limit leave with idle streams, and not one is forgotten", async (t) => {
    const memory = await Memory.open(t);
    const names = Array.from({ length: 40 }, (_, index) => `s${index}`);
    for (const name of names) {
      await memory.create(name);
      assert.deepEqual(await memory.produce(name, 5), new Array<string>(5).fill("stored"));
      await memory.engine.files.idle();
      assert.ok(memory.registry.producerCount <= 2 * MAX_PRODUCERS, `${memory.registry.producerCount} in memory`);
    }
    assert.ok(memory.registry.loadedCount < names.length);
    for (const name of names) {
      for (let at = 0; at < 5; at += 1) assert.equal(gist(await memory.append(name, `p${at}`)), "duplicate");
      assert.equal(gist(await memory.append(name, "p3", 1)), "stored");
      assert.equal(gist(await memory.append(name, "p4", 2)), "producer-gap: Producer-Seq 1 comes first.");
      await memory.engine.files.idle();
      assert.ok(memory.registry.producerCount <= 2 * MAX_PRODUCERS, `${memory.registry.producerCount} in memory`);
    }
  });

  test("at twice their limit are not joined by new ones while all streams are in use; all else goes on", async (t) => {
    const memory = await Memory.open(t);
    const streams = await memory.inUse(["a", "b"], MAX_PRODUCERS);
    assert.equal(memory.registry.producerCount, 2 * MAX_PRODUCERS);
    assert.equal(gist(await memory.append("a", "new")), NO_ROOM);
    assert.equal(gist(await memory.append("a", "p7", 1)), "stored");
    assert.equal(gist(await memory.append("a", "p7", 1)), "duplicate");
    assert.equal(
      gist(await memory.append("a", "new", 1)),
      "producer-gap: The stream knows no such producer: it begins with Producer-Seq 0.",
    );
    assert.equal(gist(await memory.append("a", null)), "stored");
    assert.equal(memory.registry.producerCount, 2 * MAX_PRODUCERS);
    for (const stream of streams) stream.release();
    // It is still too many, but now they leave.
    assert.equal(gist(await memory.append("a", "new")), NO_ROOM);
    await memory.engine.files.idle();
    assert.equal(gist(await memory.append("a", "new")), "stored");
    assert.equal(gist(await memory.append("a", "p7", 1)), "duplicate");
  });

  test("at twice their limit leave a stream with more of them where it is: on disk; it can be deleted", async (t) => {
    const memory = await Memory.open(t);
    await memory.create("left");
    await memory.produce("left", 3);
    memory.registry.start();
    for (let round = 0; round < 2; round += 1) {
      memory.engine.clock.advance(30_000);
      await memory.engine.files.idle();
    }
    assert.equal(memory.registry.producerCount, 0);
    const [first] = await memory.inUse(["a", "b"], MAX_PRODUCERS);
    const found = await memory.registry.find("left");
    assert.ok(!(found instanceof Stream));
    assert.deepEqual([found.code, found.detail], ["overloaded", "Too many producers are in use."]);
    assert.equal(gist(await memory.append("left", "p0")), NO_ROOM);
    const again = await memory.registry.create("left", {
      contentType: "text/plain",
      ttlSeconds: null,
      expiresAtMs: null,
      closed: false,
      fork: null,
      body: Buffer.alloc(0),
    });
    assert.equal(again.kind === "refused" && again.code, "overloaded");
    assert.equal(memory.engine.storage.lacks("left"), false);
    first?.release();
    assert.equal((await memory.registry.delete("left")).kind, "deleted");
    assert.equal(memory.registry.producerCount, 2 * MAX_PRODUCERS);
  });

  test("may be of one stream alone, however many it has", async (t) => {
    const memory = await Memory.open(t);
    await memory.inUse(["a"], 2 * MAX_PRODUCERS);
    await memory.engine.files.idle();
    const { storage, clock } = memory.engine;
    const smaller = new Registry({ storage, clock, log: keptLog().log, ttlMode: "sliding", maxLoadedStreams: 1000, maxLoadedProducers: 1 });
    t.after(() => smaller.stop());
    assert.ok((await smaller.find("a")) instanceof Stream);
    assert.equal(smaller.producerCount, 2 * MAX_PRODUCERS);
  });

  test("are counted once each, and no longer when their stream is gone", async (t) => {
    const memory = await Memory.open(t);
    for (const name of ["deleted", "expired", "idle"]) {
      await memory.create(name, name === "expired" ? 70 : null);
      for (let round = 0; round < 2; round += 1) await memory.produce(name, 2);
    }
    assert.equal(memory.registry.producerCount, 6);
    await memory.registry.delete("deleted");
    assert.equal(memory.registry.producerCount, 4);
    memory.registry.start();
    for (let round = 0; round < 3; round += 1) {
      memory.engine.clock.advance(30_000);
      await memory.engine.files.idle();
    }
    assert.deepEqual([memory.registry.producerCount, memory.registry.loadedCount], [0, 0]);
  });

  test("of an append that failed are not counted", async (t) => {
    const memory = await Memory.open(t);
    await memory.create("s");
    memory.engine.files.gate = ({ kind }) => (kind === "writeThen" ? Object.assign(new Error("no space"), { code: "ENOSPC" }) : undefined);
    assert.equal(gist(await memory.append("s", "p0")), "storage-full");
    memory.engine.files.gate = null;
    assert.equal(memory.registry.producerCount, 0);
  });

  test("of streams on their way out are waited for no more than once", async (t) => {
    const memory = await Memory.open(t);
    await memory.create("idle");
    await memory.produce("idle", MAX_PRODUCERS);
    const [busy] = await memory.inUse(["busy"], 1);
    const disk = new Barrier();
    memory.engine.files.gate = ({ kind, path }) => (kind === "rename" && path.includes("meta.json") ? disk.opened : undefined);
    const gists = await memory.produce("busy", 3 * MAX_PRODUCERS, 1);
    assert.equal(gists.filter((each) => each === "stored").length, MAX_PRODUCERS - 1);
    assert.equal(gists.at(-1), NO_ROOM);
    memory.engine.files.gate = null;
    disk.open();
    await memory.engine.files.idle();
    assert.equal(memory.registry.producerCount, MAX_PRODUCERS);
    busy?.release();
  });
});
