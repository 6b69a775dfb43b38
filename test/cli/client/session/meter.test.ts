import assert from "node:assert/strict";
import test from "node:test";
import { Meter } from "../../../../src/cli/client/session/meter.js";

function meterOn(isTTY: boolean): { meter: Meter; lines: string[]; at: (ms: number) => void } {
  const lines: string[] = [];
  let nowMs = 0;
  const meter = new Meter({ isTTY, write: (text) => void lines.push(String(text)) }, () => nowMs);
  return { meter, lines, at: (ms) => (nowMs = ms) };
}

const MiB = 1024 * 1024;

test("a name can't act on the terminal", () => {
  const { meter, lines, at } = meterOn(true);
  at(1000);
  meter.show("a\u202eb", 0);
  assert.match(lines.join(""), /^\ra\\u202eb: /);
});

test("a terminal sees how much is done, how fast, and how long it still takes", () => {
  const { meter, lines, at } = meterOn(true);
  meter.show("a", 1);
  at(1000);
  meter.show("a", 2 * MiB, 20 * MiB);
  at(1100);
  meter.show("a", 3 * MiB);
  at(2000);
  meter.show("a", 20 * MiB);
  at(3000);
  meter.show("a", 1, 3 * 1024 * MiB);
  meter.clear();
  assert.deepEqual(lines, ["\ra: 2.0 MiB of 20 MiB, 2.0 MiB/s, 9 s left\u001b[K", "\ra: 20 MiB, 10 MiB/s\u001b[K", lines[2], "\r\u001b[K"]);
  assert.match(lines[2] ?? "", / h left/);
});

test("elsewhere nothing is shown", () => {
  const { meter, lines, at } = meterOn(false);
  at(1000);
  meter.show("a", 1);
  meter.clear();
  assert.deepEqual(lines, []);
});
