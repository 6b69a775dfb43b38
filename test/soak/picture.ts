import { escaped, INK, pictureOf, round } from "../bench/chart.js";

/** Something that was measured all the time. */
export interface Panel {
  readonly title: string;
  readonly unit: string;
  readonly points: readonly { readonly atMs: number; readonly value: number }[];
}

/** Something that happened at a time. */
export interface Mark {
  readonly atMs: number;
  readonly kind: "backup" | "kill";
}

const WIDTH = 810;
const TOP = 64;
const PANEL_HEIGHT = 170;
const PLOT_HEIGHT = 110;
const LEFT = 64;
const PLOT_WIDTH = WIDTH - LEFT - 30;
const GRID = "#d0d7de";
const LINE = "#0969da";
const MARK_COLORS: Readonly<Record<Mark["kind"], string>> = { backup: "#1a7f37", kill: "#cf222e" };
const MINUTE_MS = 60_000;

/** An SVG with a panel for each of `panels`, over the same time, each from 0 up, and the marks above the first. */
export function soakPictureOf(title: string, panels: readonly Panel[], marks: readonly Mark[]): string {
  const wholeMs = Math.max(...panels.flatMap(({ points }) => points.map(({ atMs }) => atMs)), 1);
  const xOf = (atMs: number): number => round(LEFT + (PLOT_WIDTH * atMs) / wholeMs);
  const body = [
    `<text x="16" y="48" fill="${INK}">Marks: green, a backup while it runs; red, a kill of the server beside it. Time in minutes.</text>`,
    ...marks.map(
      ({ atMs, kind }) => `<line x1="${xOf(atMs)}" x2="${xOf(atMs)}" y1="54" y2="62" stroke="${MARK_COLORS[kind]}" stroke-width="2"/>`,
    ),
    ...panels.map((panel, index) => panelOf(panel, TOP + index * PANEL_HEIGHT, xOf, wholeMs)),
  ];
  return pictureOf(title, WIDTH, TOP + panels.length * PANEL_HEIGHT + 8, body);
}

function panelOf({ title, unit, points }: Panel, top: number, xOf: (atMs: number) => number, wholeMs: number): string {
  const most = ceiling(Math.max(...points.map(({ value }) => value)));
  const base = top + 30 + PLOT_HEIGHT;
  const yOf = (value: number): number => round(base - (PLOT_HEIGHT * value) / most);
  const minutes = wholeMs / MINUTE_MS;
  return [
    `<text x="16" y="${top + 18}" font-weight="600" fill="${INK}">${escaped(`${title} (${unit})`)}</text>`,
    ...[0, 0.5, 1].map(
      (share) =>
        `<line x1="${LEFT}" x2="${LEFT + PLOT_WIDTH}" y1="${yOf(most * share)}" y2="${yOf(most * share)}" stroke="${GRID}"/><text x="${LEFT - 8}" y="${yOf(most * share) + 4}" text-anchor="end" fill="${INK}">${round(most * share)}</text>`,
    ),
    ...Array.from({ length: 7 }, (_, at) => {
      const minute = (minutes * at) / 6;
      return `<text x="${xOf(minute * MINUTE_MS)}" y="${base + 18}" text-anchor="middle" fill="${INK}">${shown(minute)}</text>`;
    }),
    `<polyline points="${points.map(({ atMs, value }) => `${xOf(atMs)},${yOf(value)}`).join(" ")}" fill="none" stroke="${LINE}" stroke-width="1.5"/>`,
  ].join("\n");
}

/** A minute of the axis: whole, unless the whole time is short. The last sample is a little before its end. */
function shown(minute: number): number {
  return minute < 1 ? round(minute) : Math.round(minute);
}

/** The next round amount. */
function ceiling(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 0.1)));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((times) => times * power).find((amount) => amount >= value) ?? value;
}
