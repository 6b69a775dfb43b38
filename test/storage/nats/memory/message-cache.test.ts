import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PlacedChange, RecordHead } from "../../../../src/storage/nats/log/change.js";
import { ClusterStream } from "../../../../src/storage/nats/memory/cluster-stream.js";
import { bytesFrom, MessageCache, recentEnds, recentFrom } from "../../../../src/storage/nats/memory/message-cache.js";
import { configOf } from "../../../helpers/engine.js";

const SNAPSHOT = Buffer.from("[snapshot]");

function stream(name = "s"): ClusterStream {
  return new ClusterStream({ id: name, name, config: configOf(), parent: null });
}

/** Message `sequence`, which begins at `from` and has `payloads`, and perhaps a snapshot behind them. */
function message(sequence: number, from: number, payloads: readonly string[], snapshot = ""): PlacedChange {
  const records = payloads.map(({ length }): RecordHead => ({ length, messages: 1, closes: false, producer: null, seq: null, atMs: 0 }));
  const payload = payloads.join("");
  const change = { from, to: from + payload.length, records } as unknown as PlacedChange["change"]; // all that the cache reads
  return { change, sequence, previous: sequence - 1, body: Buffer.from(payload + snapshot) };
}

describe("the newest messages of a stream", () => {
  test("have the bytes and the ends of its appends, from any place on, and no snapshot", () => {
    const cache = new MessageCache(2 ** 20);
    const kept = stream();
    cache.add(kept, message(1, 10, ["abc"], SNAPSHOT.toString()));
    cache.add(kept, message(2, 13, ["de", "", "fgh"]));
    cache.add(kept, message(3, 18, [""]));
    cache.add(kept, message(4, 18, []));
    cache.add(kept, message(5, 18, ["ij"], SNAPSHOT.toString()));
    const all = "abcdefghij";
    for (let from = 10; from < 20; from += 1) {
      const found = recentFrom(kept, from);
      for (const most of [1, 3, 100])
        assert.equal(bytesFrom(found, from, most).toString(), all.slice(from - 10, from - 10 + most), `${from}, ${most}`);
      assert.deepEqual(
        recentEnds(found).filter((end) => end > from),
        [13, 15, 18, 20].filter((end) => end > from),
      );
    }
    for (const beside of [9, 20, 21]) assert.deepEqual(recentFrom(kept, beside), []);
  });

  test("make way for one that does not follow them", () => {
    const cache = new MessageCache(2 ** 20);
    const kept = stream();
    cache.add(kept, message(1, 0, ["abc"]));
    cache.add(kept, message(7, 30, ["xyz"]));
    assert.deepEqual([recentFrom(kept, 0), bytesFrom(recentFrom(kept, 30), 30, 3).toString()], [[], "xyz"]);
  });

  test("go first from the stream that was appended to least recently, and count for nothing then", () => {
    const cache = new MessageCache(3000);
    const [old, young] = [stream("old"), stream("young")];
    cache.add(young, message(1, 0, ["a".repeat(500)]));
    const one = cache.bytes;
    assert.ok(one > 500 && one < 1000, String(one));
    cache.add(old, message(1, 0, ["b".repeat(500)]));
    for (let at = 2; at <= 3; at += 1) cache.add(young, message(at, (at - 1) * 500, ["a".repeat(500)]));
    assert.deepEqual([recentFrom(old, 0), recentFrom(young, 0).length, cache.bytes], [[], 3, 3 * one]);
    cache.drop(young);
    assert.deepEqual([recentFrom(young, 0), cache.bytes], [[], 0]);
  });
});
