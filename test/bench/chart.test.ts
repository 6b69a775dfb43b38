import assert from "node:assert/strict";
import { test } from "node:test";
import { chartOf } from "./chart.js";
import { curveChartOf } from "./curve-chart.js";

/** The values of one attribute, in the order of the picture. */
function valuesOf(svg: string, pattern: RegExp): string[] {
  return [...svg.matchAll(pattern)].map(([, value = ""]) => value);
}

test("a bar of the chart is as long as its ratio, and green once it is as long as it should be", () => {
  const svg = chartOf("a < b", "note", [
    { label: "reads", amount: "80 reads/s", ratio: 0.8, goal: 0.8 },
    { label: "appends & more", amount: "50 appends/s", ratio: 0.5, goal: 0.8 },
  ]);
  assert.deepEqual(valuesOf(svg, /width="([\d.]+)" height="14"/g), ["622.4", "389"]);
  assert.deepEqual(valuesOf(svg, /height="14" fill="(#\w+)"/g), ["#1a7f37", "#bf8700"]);
  assert.match(svg, /80 reads\/s, ratio 0\.80/);
  assert.match(svg, /<title>a &lt; b<\/title>/);
  assert.match(svg, /appends &amp; more/);
});

test("the bars of the chart keep their place when one is longer than the yardstick's", () => {
  const svg = chartOf("", "", [{ label: "", amount: "", ratio: 2, goal: 1 }]);
  assert.deepEqual(valuesOf(svg, /width="([\d.]+)" height="(?:6|14)"/g), ["389", "778"]);
});

test("a bar that would leave the others too short is cut, and ends in a tip", () => {
  const bars = [20, 1].map((ratio) => ({ label: "", amount: "", ratio, goal: 1 }));
  const svg = chartOf("", "", bars);
  assert.deepEqual(valuesOf(svg, /width="([\d.]+)" height="(?:6|14)"/g), ["311.2", "311.2", "311.2"]);
  assert.deepEqual(valuesOf(svg, /<path d="M16 \d+H(\d+)L794/g), ["784"]);
  assert.match(svg, /ratio 20\.00/);
});

test("a curve has a point for each place, higher where it is more, from 0 up", () => {
  const points = [10, 20, 40].map((value, at) => ({ label: `${10 ** at} streams`, value }));
  const svg = curveChartOf("cost", [{ title: "by streams", unit: "µs", lines: [{ name: "ours", points }] }]);
  const heights = valuesOf(svg, /cy="([\d.]+)"/g).map(Number);
  const [first = 0, second = 0, third = 0] = heights;
  assert.equal(heights.length, 3);
  // 40 is the top of the axis, and 150 high.
  assert.equal(first - third, 112.5);
  assert.equal(second - third, 75);
  assert.deepEqual(valuesOf(svg, /text-anchor="end"[^>]*>([\d.]+)</g), ["0", "10", "20", "30", "40"]);
  assert.match(svg, />100 streams</);
});

test("a picture has a panel for each of its curves, and its own ground", () => {
  const curves = { title: "by size", unit: "µs", lines: [{ name: "ours", points: [{ label: "1 GiB", value: 3 }] }] };
  assert.deepEqual(valuesOf(curveChartOf("", [curves, curves]), /viewBox="0 0 \d+ (\d+)"/g), ["544"]);
  assert.match(curveChartOf("", [curves]), /<rect width="810" height="294" fill="#fff"/);
});
