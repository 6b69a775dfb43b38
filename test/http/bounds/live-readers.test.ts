import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LiveReaders } from "../../../src/http/bounds/live-readers.js";
import { isProblem } from "../../../src/http/encoding/problems.js";
import { keptLog } from "../../helpers/engine.js";

function entered(readers: LiveReaders, client: string): () => void {
  const left = readers.enter(client, "sse");
  assert.ok(!isProblem(left), "there is room");
  return left;
}

function refused(readers: LiveReaders, client: string): string {
  const left = readers.enter(client, "sse");
  assert.ok(isProblem(left), "there is no room");
  assert.equal(left.code, "overloaded");
  return left.detail ?? "";
}

describe("live readers", () => {
  test("are as many as there may be in all, and again when some have left", () => {
    const readers = new LiveReaders({ maxLiveReaders: 2, maxLiveReadersPerClient: Infinity }, keptLog().log);
    const [first] = [entered(readers, "a"), entered(readers, "b")];
    assert.match(refused(readers, "c"), /--max-live-readers\.$/);
    first?.();
    entered(readers, "a");
    refused(readers, "a");
    assert.equal(readers.clients, 0);
  });

  test("of one client are as many as it may have", () => {
    const readers = new LiveReaders({ maxLiveReaders: 3, maxLiveReadersPerClient: 2 }, keptLog().log);
    const ofA = [entered(readers, "a"), entered(readers, "a")];
    assert.match(refused(readers, "a"), /--max-live-readers-per-client\.$/);
    entered(readers, "b");
    assert.match(refused(readers, "b"), /--max-live-readers\.$/);
    ofA[0]?.();
    entered(readers, "a");
  });

  test("are warned of once when others are refused, and again only when half of them had left", () => {
    const { log, lines } = keptLog();
    const readers = new LiveReaders({ maxLiveReaders: 4, maxLiveReadersPerClient: 3 }, log);
    const leaves = ["a", "b", "c", "d"].map((client) => entered(readers, client));
    assert.deepEqual(lines, []);
    refused(readers, "e");
    refused(readers, "f");
    for (const leave of leaves.splice(0, 2)) leave();
    leaves.push(entered(readers, "a"), entered(readers, "b"));
    refused(readers, "e");
    assert.deepEqual(
      lines.map(({ level, message, fields }) => [level, message, fields]),
      [["warn", "too many live readers: others are refused", { maxLiveReaders: 4 }]],
    );
    for (const leave of leaves.splice(0, 3)) leave();
    for (const client of ["a", "b", "c"]) entered(readers, client);
    refused(readers, "e");
    assert.equal(lines.length, 2);
  });

  test("leave nothing behind", () => {
    const readers = new LiveReaders({ maxLiveReaders: Infinity, maxLiveReadersPerClient: 2 }, keptLog().log);
    const leaves = Array.from({ length: 2000 }, (_, at) => entered(readers, `client ${at >> 1}`));
    assert.deepEqual([readers.size, readers.clients], [2000, 1000]);
    for (const leave of leaves) leave();
    assert.deepEqual([readers.size, readers.clients], [0, 0]);
  });

  test("are not limited where nothing says so", () => {
    const readers = new LiveReaders({ maxLiveReaders: Infinity, maxLiveReadersPerClient: Infinity }, keptLog().log);
    for (let at = 0; at < 10_000; at += 1) entered(readers, "a");
    assert.deepEqual([readers.size, readers.clients], [10_000, 0]);
  });
});
