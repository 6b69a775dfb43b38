import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Stream } from "../../src/stream/loaded/stream.js";
import { appendByName } from "../helpers/append.js";
import { Barrier, diskError } from "../helpers/watched-files.js";
import { appendOf, createOf, find, gist, registryOf, textOf } from "../helpers/registries.js";

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
