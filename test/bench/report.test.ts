import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { absolute, compared } from "./question.js";
import { absentLines, amount, barsOf, chartOfPage, table, withMeasured } from "./report.js";

const question = { title: "small reads", load: "100 B" };
const result = { ours: 50_000.4, yardstick: 80_000, ratio: 0.625 };

test("the table says what was measured beside its goal", () => {
  const lines = table([
    { question, reply: { figures: [compared("", "reads/s", result, 0.6), compared("again", "reads/s", result, 0.8)] } },
    { question: { title: "memory", load: "9,000 readers" }, reply: { figures: [absolute("", "MiB", 98.76, 160)] } },
  ]);
  assert.deepEqual(lines, [
    "| question | load | ours | yardstick | ratio | goal |",
    "|---|---|---|---|---|---|",
    "| small reads | 100 B | 50,000 reads/s | 80,000 reads/s | 0.63 | ≥ 0.6 |",
    "| small reads (again) | 100 B | 50,000 reads/s | 80,000 reads/s | 0.63 | ≥ 0.8 (missed) |",
    "| memory | 9,000 readers | 98.8 MiB |  |  | ≤ 160 MiB |",
  ]);
});

test("the rivals have a column once there is one", () => {
  const rivals = [
    { name: "nginx", value: 90_000 },
    { name: "another", value: 12.34 },
  ];
  const lines = table([{ question, reply: { figures: [compared("", "reads/s", { ...result, rivals }, 0.6)] } }]);
  assert.deepEqual(lines, [
    "| question | load | ours | yardstick | ratio | goal | rivals |",
    "|---|---|---|---|---|---|---|",
    "| small reads | 100 B | 50,000 reads/s | 80,000 reads/s | 0.63 | ≥ 0.6 | nginx 90,000, another 12.3 |",
  ]);
});

test("a question that the machine can't answer says why", () => {
  const [, , line] = table([{ question, reply: { notAsked: "needs 12.0 GiB of disk, and 1.0 GiB are free" } }]);
  assert.equal(line, "| small reads | 100 B | can't be asked here: needs 12.0 GiB of disk, and 1.0 GiB are free |  |  |  |");
});

test("the rivals that are missing are named", () => {
  assert.deepEqual(absentLines(["Redis", "nginx"]), ["", "Not installed, and so not beside it: Redis, nginx."]);
  assert.deepEqual(absentLines([]), []);
});

test("what was measured goes between the marks, and the rest of the page stays", () => {
  const page = "# Speed\n<!-- measured -->\nold\n<!-- /measured -->\nmore\n";
  assert.equal(withMeasured(page, ["a", "b"]), "# Speed\n<!-- measured -->\n\na\nb\n\n<!-- /measured -->\nmore\n");
  assert.throws(() => withMeasured("# Speed\n", ["a"]), /has no <!-- measured -->/);
});

test("the chart draws the table's own ratios, of the rows in which more is better", () => {
  const lines = table([
    { question, reply: { figures: [compared("", "reads/s", { ...result, ratio: 0.7 }, 0.6), compared("again", "reads/s", result, 0.8)] } },
    { question: { title: "memory", load: "9,000 readers" }, reply: { figures: [absolute("", "MiB", 98.76, 160)] } },
  ]);
  assert.deepEqual(barsOf(lines.join("\n")), [
    { label: "small reads", amount: "50,000 reads/s", ratio: 0.7, goal: 0.6 },
    { label: "small reads (again)", amount: "50,000 reads/s", ratio: 0.63, goal: 0.8 },
  ]);
});

test("docs/performance.svg is the chart of the table in docs/performance.md, and no label of it reaches its figures", () => {
  const docs = new URL("../../docs/", import.meta.url);
  const page = readFileSync(new URL("performance.md", docs), "utf8");
  assert.equal(readFileSync(new URL("performance.svg", docs), "utf8"), chartOfPage(page));
  // A letter is 7 pixels wide on average, of 778.
  for (const { label, amount: figure } of barsOf(page)) assert.ok(label.length + figure.length < 100, label);
});

test("an amount has as many digits as it deserves", () => {
  assert.deepEqual([0.12345, 9.876, 99.94, 100.4, 1_234_567].map(amount), ["0.123", "9.88", "99.9", "100", "1,234,567"]);
});
