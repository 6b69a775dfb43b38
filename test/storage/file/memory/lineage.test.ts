import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FileStream } from "../../../../src/storage/file/memory/file-stream.js";
import { Lineage } from "../../../../src/storage/file/memory/lineage.js";
import { configOf } from "../../../helpers/engine.js";

function streamOf(name: string, lineage = new Lineage<FileStream>()): FileStream {
  const stream = new FileStream({ id: name, name, config: configOf() }, `/d/${name}`, null);
  stream.lineage = lineage;
  return stream;
}

function told({ ranges, end }: Lineage<FileStream>): [ranges: string[], end: number] {
  return [ranges.map(({ owner, from, to }) => `${owner.name} ${from}-${to}`), end];
}

describe("the bytes that a fork shares", () => {
  const root = streamOf("root");
  const child = streamOf("child", Lineage.of(root, 100));
  const grandchild = streamOf("grandchild", Lineage.of(child, 150));

  test("are the source's up to the fork point", () => {
    assert.deepEqual(told(Lineage.of(root, 100)), [["root 0-100"], 100]);
    assert.deepEqual(told(Lineage.of(root, 0)), [[], 0]);
  });

  test("are of all that the source was forked from, each up to where the next began", () => {
    assert.deepEqual(told(Lineage.of(grandchild, 170)), [["root 0-100", "child 100-150", "grandchild 150-170"], 170]);
  });

  test("end where the fork was made, also inside of what the source inherited", () => {
    assert.deepEqual(told(Lineage.of(grandchild, 150)), [["root 0-100", "child 100-150"], 150]);
    assert.deepEqual(told(Lineage.of(grandchild, 120)), [["root 0-100", "child 100-120"], 120]);
    assert.deepEqual(told(Lineage.of(grandchild, 100)), [["root 0-100"], 100]);
    assert.deepEqual(told(Lineage.of(grandchild, 7)), [["root 0-7"], 7]);
  });

  test("are found by their position, however long the chain", () => {
    let last = root;
    for (let depth = 1; depth <= 100; depth += 1) last = streamOf(`fork ${depth}`, Lineage.of(last, depth * 10));
    const { lineage } = last;
    for (let position = 0; position < 1000; position += 1) {
      const { owner, from, to } = lineage.at(position);
      assert.ok(from <= position && position < to);
      assert.equal(owner.name, position < 10 ? "root" : `fork ${Math.floor(position / 10)}`);
    }
  });

  test("are nowhere behind the fork point", () => {
    assert.throws(() => Lineage.of(root, 100).at(100), RangeError);
    assert.throws(() => new Lineage<FileStream>().at(0), RangeError);
  });
});
