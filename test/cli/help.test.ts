import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { helpText } from "../../src/cli/help.js";
import { formatValue, OPTIONS } from "../../src/options.js";
import type { OptionSpec } from "../../src/options.js";

const SPECS: readonly OptionSpec[] = Object.values(OPTIONS);

describe("the help text", () => {
  const text = helpText([
    { name: "serve", summary: "serve it" },
    { name: "salute", summary: "salute it", switches: [{ flag: "whom", value: "NAME", help: "who is greeted" }] },
    { name: "pair", summary: "pair them", second: "OTHER" },
  ]);
  const lines = text.split("\n");

  test("fits 100 columns", () => {
    assert.deepEqual(
      lines.filter((line) => line.length > 100),
      [],
    );
  });

  test("begins with the usage and ends with a line feed", () => {
    assert.equal(lines[0], "Usage: streamdir [serve|salute|pair] [DIR] [flags]");
    assert.equal(lines.at(-1), "");
  });

  test("names each verb with what it does", () => {
    assert.ok(lines.includes(`  ${"serve".padEnd(24)}serve it`));
    assert.ok(lines.includes(`  ${"salute".padEnd(24)}salute it`));
    assert.ok(lines.includes(`  ${"pair DIR OTHER".padEnd(24)}pair them`));
    assert.ok(lines.includes(`  ${"  --whom NAME".padEnd(24)}who is greeted`));
    assert.ok(lines.includes("Commands (serve when none is named):"));
  });

  for (const spec of SPECS) {
    test(`shows --${spec.flag} in two columns with its help, variable and default`, () => {
      const at = lines.findIndex((line) => new RegExp(`^  --(\\[no-\\])?${spec.flag}(?![\\w-])`).test(line));
      const first = lines[at] ?? "";
      assert.equal(first.slice(35), spec.help);
      assert.match(first.slice(0, 35), / $/, "the second column stands apart");
      const shown = spec.default === "" ? "" : `, default ${formatValue(spec, spec.default)}`;
      assert.equal(lines[at + 1], `${" ".repeat(35)}${spec.env}${shown}`);
    });
    test(`shows --${spec.flag} under ${spec.group}`, () => {
      const at = lines.findIndex((line) => line.includes(spec.env));
      assert.equal(
        lines.slice(0, at).findLast((line) => /^\S.*:$/.test(line)),
        `${spec.group}:`,
      );
    });
  }
});
