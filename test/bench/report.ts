import { readFileSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { fileURLToPath } from "node:url";
import { chartOf, type Bar } from "./chart.js";
import { curveChartOf } from "./curve-chart.js";
import { isReached, type Figure, type Findings, type NotAsked, type Question } from "./question.js";
import type { Effort } from "./rig.js";
import { RIVALS } from "./rivals/all.js";
import { hasWrk } from "./wrk.js";

/** What a question was answered. */
export interface Answered {
  readonly question: Pick<Question, "title" | "load">;
  readonly reply: Findings | NotAsked;
}

const PAGE = docs("performance.md");
const CHART = docs("performance.svg");
const CURVES = docs("performance-curves.svg");
const BEGIN = "<!-- measured -->";
const END = "<!-- /measured -->";

function docs(name: string): string {
  return fileURLToPath(new URL(`../../docs/${name}`, import.meta.url));
}

/** Puts what was measured into docs/performance.md, between its marks, and draws the charts beside it. */
export function writeReport(answered: readonly Answered[], effort: Effort): void {
  const absent = RIVALS.filter((rival) => !rival.isInstalled()).map(({ name }) => name);
  const curves = answered.flatMap(({ reply }) => ("curves" in reply && reply.curves !== undefined ? [reply.curves] : []));
  const pictures = curves.length === 0 ? [] : ["", "![what an append costs](performance-curves.svg)"];
  const measured = [machine(effort), "", ...table(answered), ...absentLines(absent), ...pictures];
  const page = withMeasured(readFileSync(PAGE, "utf8"), measured);
  writeFileSync(PAGE, page);
  writeFileSync(CHART, chartOfPage(page));
  if (curves.length > 0) writeFileSync(CURVES, curveChartOf("What an append costs: flat is good", curves));
}

/** The chart of the ratios that the table of a page has. */
export function chartOfPage(page: string): string {
  return chartOf(
    "streamdir beside its yardstick",
    "Green or amber: streamdir. Grey: the yardstick. Dashed: the goal. Ratio: the median of the pairs' ratios.",
    barsOf(page),
  );
}

/** The rows in which more is better: a bar for a time would say the opposite. */
export function barsOf(page: string): Bar[] {
  return page.split("\n").flatMap((line) => {
    const [, label = "", , amount = "", , ratio = "", goal = ""] = line.split("|").map((cell) => cell.trim());
    const atLeast = /^≥ ([\d.]+)/.exec(goal)?.[1];
    return atLeast === undefined || ratio === "" ? [] : [{ label, amount, ratio: Number(ratio), goal: Number(atLeast) }];
  });
}

/** The text of the page `page` with `lines` between its marks. */
export function withMeasured(page: string, lines: readonly string[]): string {
  const [before, rest] = split(page, BEGIN);
  const [, after] = split(rest, END);
  return `${before}${BEGIN}\n\n${lines.join("\n")}\n\n${END}${after}`;
}

function split(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  if (at === -1) throw new Error(`the page has no ${mark}`);
  return [text.slice(0, at), text.slice(at + mark.length)];
}

function machine({ pairs, measureMs }: Effort): string {
  const [cpu] = cpus();
  const gib = Math.round(totalmem() / 2 ** 30);
  return `Measured on ${cpus().length} cores of ${cpu?.model.trim() ?? "an unknown processor"}, ${gib} GiB, Linux ${release()}, Node ${process.version}, with the load on the same cores, ${hasWrk ? "wrk where it can make it" : "without wrk"}: the medians of ${pairs} pairs of ${measureMs / 1000} s each; each ratio is the median of the pairs' ratios.`;
}

/** The lines of the table. The rivals have a column when there is a figure of one. */
export function table(answered: readonly Answered[]): string[] {
  const hasRivals = answered.some(({ reply }) => "figures" in reply && reply.figures.some(({ rivals = [] }) => rivals.length > 0));
  const cut = (cells: readonly string[]): readonly string[] => (hasRivals ? cells : cells.slice(0, 6));
  const heads = cut(["question", "load", "ours", "yardstick", "ratio", "goal", "rivals"]);
  return [lineOf(heads), `|${"---|".repeat(heads.length)}`, ...answered.flatMap(rowsOf).map((cells) => lineOf(cut(cells)))];
}

function lineOf(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

function rowsOf({ question, reply }: Answered): string[][] {
  const { title, load } = question;
  if ("notAsked" in reply) return [[title, load, `can't be asked here: ${reply.notAsked}`, "", "", "", ""]];
  return reply.figures.map((figure) => {
    const { what, unit, ours, yardstick, ratio, rivals = [] } = figure;
    const name = what === "" ? title : `${title} (${what})`;
    const others = rivals.map((rival) => `${rival.name} ${amount(rival.value)}`).join(", ");
    return [
      name,
      load,
      `${amount(ours)} ${unit}`,
      yardstick === null ? "" : `${amount(yardstick)} ${unit}`,
      ratio === null ? "" : ratio.toFixed(2),
      `${goalOf(figure)}${isReached(figure) ? "" : " (missed)"}`,
      others,
    ];
  });
}

/** Names the rivals that could not be asked. */
export function absentLines(names: readonly string[]): string[] {
  return names.length === 0 ? [] : ["", `Not installed, and so not beside it: ${names.join(", ")}.`];
}

/** What a figure should be, in the words of the table; an absolute one has its unit. */
export function goalOf({ goal, ratio, unit }: Figure): string {
  if (goal === null) return "";
  return `${goal.kind === "atLeast" ? "≥" : "≤"} ${goal.value}${ratio === null ? ` ${unit}` : ""}`;
}

/** A figure with as many digits as it deserves. */
export function amount(value: number): string {
  return value < 100 ? value.toPrecision(3) : Math.round(value).toLocaleString("en");
}
