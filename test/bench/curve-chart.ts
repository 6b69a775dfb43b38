import { escaped, INK, pictureOf, round } from "./chart.js";
import type { Curves, Line } from "./curves.js";

const WIDTH = 810;
const PANEL_HEIGHT = 250;
const TOP = 44;
/** The place for the axis' amounts, and what is free at the right. */
const LEFT = 64;
const RIGHT = 30;
const PLOT_HEIGHT = 150;
const PLOT_WIDTH = WIDTH - LEFT - RIGHT;
/** Told apart by their brightness too. */
const COLORS = ["#1a7f37", "#0969da", "#8c959f"];
const GRID = "#d0d7de";
const STEPS = 4;

/** An SVG with a panel for each of `panels`, one below the other, each from 0 up; readable on light and dark ground. */
export function curveChartOf(title: string, panels: readonly Curves[]): string {
  const body = panels.map((panel, index) => panelOf(panel, TOP + index * PANEL_HEIGHT));
  return pictureOf(title, WIDTH, TOP + panels.length * PANEL_HEIGHT, body);
}

function panelOf({ title, unit, lines }: Curves, top: number): string {
  const most = ceiling(Math.max(...lines.flatMap(({ points }) => points.map(({ value }) => value))));
  const base = top + 50 + PLOT_HEIGHT;
  const labels = lines[0]?.points.map(({ label }) => label) ?? [];
  return [
    `<text x="16" y="${top + 18}" font-weight="600" fill="${INK}">${escaped(`${title} (${unit})`)}</text>`,
    ...lines.map(
      (line, index) =>
        `<text x="${LEFT + index * 240 + 18}" y="${top + 38}" fill="${INK}">${escaped(line.name)}</text><rect x="${LEFT + index * 240}" y="${top + 32}" width="12" height="4" fill="${colorOf(index)}"/>`,
    ),
    ...Array.from({ length: STEPS + 1 }, (_, step) => gridLine((most * step) / STEPS, base - (PLOT_HEIGHT * step) / STEPS)),
    ...labels.map(
      (label, at) => `<text x="${xOf(at, labels.length)}" y="${base + 20}" text-anchor="middle" fill="${INK}">${escaped(label)}</text>`,
    ),
    ...lines.map((line, index) => lineOf(line, colorOf(index), base, most)),
  ].join("\n");
}

function gridLine(amount: number, y: number): string {
  return `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${round(y)}" y2="${round(y)}" stroke="${GRID}"/><text x="${LEFT - 8}" y="${round(y + 4)}" text-anchor="end" fill="${INK}">${round(amount)}</text>`;
}

function lineOf({ points }: Line, color: string, base: number, most: number): string {
  const places = points.map(({ value }, at) => [xOf(at, points.length), round(base - (PLOT_HEIGHT * value) / most)] as const);
  const dots = places.map(
    ([x, y], at) =>
      `<circle cx="${x}" cy="${y}" r="3.5" fill="${color}"><title>${escaped(points[at]?.label ?? "")}: ${round(points[at]?.value ?? 0)}</title></circle>`,
  );
  return [
    `<polyline points="${places.map((place) => place.join(",")).join(" ")}" fill="none" stroke="${color}" stroke-width="2"/>`,
    ...dots,
  ].join("\n");
}

function colorOf(index: number): string {
  return COLORS[index % COLORS.length] ?? INK;
}

function xOf(at: number, places: number): number {
  return round(LEFT + PLOT_WIDTH * ((at + 0.5) / places));
}

/** The next round amount: 1, 2 or 5 times a power of ten, or 4 times where that is nearer. */
function ceiling(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 10].map((times) => times * power).find((amount) => amount >= value) ?? value;
}
