import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { PROBLEMS } from "../../src/http/encoding/problems.js";
import { LIMIT_OPTIONS } from "../../src/options/limits.js";

const PAGE = new URL("../../docs/limits.md", import.meta.url);
const UNITS: Readonly<Record<string, number>> = { bytes: 1, characters: 1, levels: 1, KiB: 1024, MiB: 1024 ** 2, s: 1 };

interface Row {
  readonly what: string;
  readonly bound: string;
  readonly beyond: string;
  readonly source: string;
  readonly test: string;
}

function isDefined(text: string | undefined): text is string {
  return text !== undefined;
}

const rows: readonly Row[] = readFileSync(PAGE, "utf8")
  .split("\n")
  .filter((line) => line.startsWith("| ") && !line.startsWith("| what ") && !line.startsWith("| **"))
  .map((line) => {
    const [what = "", bound = "", beyond = "", source = "", testCell = ""] = line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim());
    return { what, bound, beyond, source, test: testCell };
  });

/** The value of a constant or field in a source: a product of numbers, or `null` where it is none. */
function valueIn(text: string, name: string): number | null {
  const product = new RegExp(`\\b${name}(?::\\s*|(?::[^=;]+)?\\s*=\\s*)([\\d_ *]+)[;,]`).exec(text)?.[1];
  return product === undefined ? null : product.split("*").reduce((all, factor) => all * Number(factor.replaceAll("_", "")), 1);
}

/** The number with which a bound begins, in bytes or in seconds. */
function boundOf(bound: string): number {
  const [, digits = "", unit = ""] = /^([\d,]+)(?: (\w+))?/.exec(bound) ?? [];
  return Number(digits.replaceAll(",", "")) * (UNITS[unit] ?? 1);
}

describe("docs/limits.md", () => {
  test("has each option that limits something, once", () => {
    const named = rows.flatMap(({ source }) => (source.includes("limits.ts") ? [/`(\w+)`/.exec(source)?.[1]] : [])).filter(isDefined);
    assert.deepEqual([...named].sort(), Object.keys(LIMIT_OPTIONS).sort());
    for (const [name, { flag }] of Object.entries(LIMIT_OPTIONS)) {
      const row = rows.find(({ source }) => source.includes(`\`${name}\``));
      assert.ok(row?.bound.includes(`\`--${flag}\``), name);
    }
  });

  for (const { what, bound, beyond, source, test: named } of rows) {
    test(`says what is true of ${what}`, () => {
      const [, sourcePath, constant] = /^\[[\w.-]+\]\(\.\.\/([^)]+)\) `(\w+)`$/.exec(source) ?? [];
      if (sourcePath !== undefined && constant !== undefined) {
        const text = readFileSync(new URL(`../../${sourcePath}`, import.meta.url), "utf8");
        assert.ok(text.includes(constant), `${sourcePath} has ${constant}`);
        const value = valueIn(text, constant);
        const inUnits = value !== null && /^[\d,]+ s\b/.test(bound) && constant !== "KEEP_ALIVE_SECONDS" ? value / 1000 : value;
        if (!bound.startsWith("`")) assert.equal(boundOf(bound), inUnits, `${constant} in ${sourcePath}`);
      } else assert.equal(bound, "the file system's");
      const testPath = /^\[[\w-]+\]\(\.\.\/([^)]+)\)$/.exec(named)?.[1];
      if (named !== "none yet") assert.ok(testPath !== undefined && existsSync(new URL(`../../${testPath}`, import.meta.url)), named);
      for (const [, status, code = ""] of beyond.matchAll(/(\d{3}) `([a-z-]+)`/g))
        assert.equal(Object.entries(PROBLEMS).find(([known]) => known === code)?.[1].status, Number(status), code);
    });
  }
});
