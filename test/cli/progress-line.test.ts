import assert from "node:assert/strict";
import { test } from "node:test";
import { ProgressLine } from "../../src/cli/progress-line.js";

function lineOn(isTTY: boolean, columns?: number): { line: ProgressLine; written: string[]; clock: { ms: number } } {
  const written: string[] = [];
  const clock = { ms: 0 };
  const output = { isTTY, ...(columns === undefined ? {} : { columns }), write: (text: string) => void written.push(text) };
  return { line: new ProgressLine(output, () => clock.ms), written, clock };
}

test("the progress line shows a terminal a bar, streams and bytes, at most ten times a second", () => {
  const { line, written, clock } = lineOn(true);
  line.show({ streams: 1, bytes: 3 * 1024 * 1024, done: 0.5 });
  line.show({ streams: 2, bytes: 0, done: 0.6 });
  clock.ms += 100;
  line.show({ streams: 3, bytes: 0, done: 1 });
  assert.deepEqual(written, [
    `\r[${"#".repeat(15)}${".".repeat(15)}] 50% 1 streams, 3 MiB\u001b[K`,
    `\r[${"#".repeat(30)}] 100% 3 streams, 0 MiB\u001b[K`,
  ]);
});

test("the progress line is removed for other lines, once", () => {
  const { line, written } = lineOn(true);
  line.clear();
  line.show({ streams: 0, bytes: 0, done: 0 });
  line.clear();
  line.clear();
  assert.deepEqual(written.slice(1), ["\r\u001b[K"]);
});

test("the progress line has room in a narrow terminal, and whole in one that does not say how wide it is", () => {
  for (const [columns, text] of [
    [12, `[${"#".repeat(10)}`],
    [0, `[${"#".repeat(30)}] 100% 1 streams, 0 MiB`],
  ] as const) {
    const { line, written } = lineOn(true, columns);
    line.show({ streams: 1, bytes: 0, done: 1 });
    assert.deepEqual(written, [`\r${text}\u001b[K`]);
  }
});

test("the progress line shows a pipe nothing", () => {
  const { line, written } = lineOn(false);
  line.show({ streams: 1, bytes: 1, done: 1 });
  line.clear();
  assert.deepEqual(written, []);
});
