// How people are shown the figures of a benchmark: a table, and a small chart.

import type { Figures } from "./figures.js";

const BARS = "▁▂▃▄▅▆▇█";
const CHART_COLUMNS = 60;
const HEADINGS = ["", "count", "per second", "MiB/s", "p50 ms", "p90 ms", "p99 ms", "max ms"];

/** The table: a row for each phase, in columns as wide as they need to be. */
export function tableOf(phases: Readonly<Record<string, Figures>>): string {
  const rows = Object.entries(phases).map(([name, figures]) => [
    name,
    grouped(figures.count),
    grouped(Math.round(figures.perSecond)),
    figures.mebibytesPerSecond.toFixed(1),
    ...[figures.p50Ms, figures.p90Ms, figures.p99Ms, figures.maxMs].map((ms) => ms.toFixed(ms < 10 ? 2 : 0)),
  ]);
  const widths = HEADINGS.map((_, column) => Math.max(...[HEADINGS, ...rows].map((row) => row[column]?.length ?? 0)));
  const written = (row: readonly string[]): string =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join("  ");
  return [HEADINGS, ...rows].map((row) => `${written(row)}\n`).join("");
}

/** One line of bars for the slices of a phase, from nothing to the largest of them. */
export function chartOf(name: string, { slices }: Figures, isColoured: boolean): string {
  const shown = slices.length <= CHART_COLUMNS ? slices : squeezed(slices);
  const largest = Math.max(1, ...shown);
  const bars = shown
    .map((each) => BARS[Math.min(BARS.length - 1, Math.floor((each / largest) * BARS.length))])
    .join("");
  const coloured = isColoured ? `\u001b[36m${bars}\u001b[0m` : bars;
  return `${name} a second, over time  ${coloured}  at most ${grouped(Math.round(largest))}\n`;
}

/** As many means as there is room for. */
function squeezed(slices: readonly number[]): number[] {
  return Array.from({ length: CHART_COLUMNS }, (_, at) => {
    const from = Math.floor((at * slices.length) / CHART_COLUMNS);
    const part = slices.slice(from, Math.floor(((at + 1) * slices.length) / CHART_COLUMNS));
    return part.reduce((sum, each) => sum + each, 0) / Math.max(1, part.length);
  });
}

function grouped(value: number): string {
  return String(value).replaceAll(/\B(?=(\d{3})+$)/g, ",");
}
