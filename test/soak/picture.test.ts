import assert from "node:assert/strict";
import { test } from "node:test";
import { soakPictureOf } from "./picture.js";

test("each panel goes from the left to the right, and no higher than its axis", () => {
  const points = Array.from({ length: 13 }, (_, at) => ({ atMs: at * 299_500, value: at }));
  const svg = soakPictureOf("An hour", [{ title: "memory <MiB>", unit: "MiB", points }], [{ atMs: 1_797_000, kind: "kill" }]);
  const line = /<polyline points="([^"]*)"/.exec(svg)?.[1]?.split(" ") ?? [];
  assert.equal(line.length, 13);
  assert.equal(line[0], "64,204");
  const [x = NaN, y = NaN] = (line.at(-1) ?? "").split(",").map(Number);
  assert.deepEqual([x, y > 94 && y < 120], [780, true]);
  assert.match(svg, /<line x1="422" x2="422" y1="54" y2="62" stroke="#cf222e"/);
  assert.match(svg, /memory &lt;MiB&gt;/);
  for (const minute of [0, 10, 60]) assert.ok(svg.includes(`text-anchor="middle" fill="#1f2328">${minute}<`));
});
