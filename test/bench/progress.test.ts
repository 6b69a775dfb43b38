import assert from "node:assert/strict";
import { test } from "node:test";
import { Progress } from "./progress.js";

function writtenBy(isTTY: boolean): string[] {
  const written: string[] = [];
  const progress = new Progress({ isTTY, write: (text) => written.push(text) }, 2);
  progress.question("small reads");
  progress.step("pair 1 of 5");
  progress.clear();
  progress.question("large reads");
  return written;
}

test("a terminal has one line that says the question and its step", () => {
  assert.deepEqual(writtenBy(true), [
    "\r\u001b[K[1/2] small reads",
    "\r\u001b[K[1/2] small reads: pair 1 of 5",
    "\r\u001b[K",
    "\r\u001b[K[2/2] large reads",
  ]);
});

test("a pipe is told of each question in a line of its own", () => {
  assert.deepEqual(writtenBy(false), ["[1/2] small reads\n", "[2/2] large reads\n"]);
});
