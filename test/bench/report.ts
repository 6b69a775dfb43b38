import { readFileSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { fileURLToPath } from "node:url";
import { chartOf, type Bars } from "./chart.js";
import { isReached, type Figure, type Question } from "./question.js";
import type { Effort } from "./rig.js";

/** What a question was answered. */
export interface Answered {
  readonly question: Question;
  readonly figures: readonly Figure[];
}

const PAGE = fileURLToPath(new URL("../../docs/performance.md", import.meta.url));
const CHART = fileURLToPath(new URL("../../docs/performance.svg", import.meta.url));
const BEGIN = "<!-- measured -->";
const END = "<!-- /measured -->";

/** Puts what was measured into docs/performance.md, between its marks, and draws the chart beside it. */
export function writeReport(answered: readonly Answered[], effort: Effort): void {
  const page = readFileSync(PAGE, "utf8");
  const [before, rest] = split(page, BEGIN);
  const [, after] = split(rest, END);
  const measured = [machine(effort), "", ...table(answered)].join("\n");
  writeFileSync(PAGE, `${before}${BEGIN}\n\n${measured}\n\n${END}${after}`);
  writeFileSync(CHART, chartOf("streamdir as a share of a bare node:http server (grey); the dashed line is the goal", answered.flatMap(barsOf)));
}

function split(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  if (at === -1) throw new Error(`docs/performance.md has no ${mark}`);
  return [text.slice(0, at), text.slice(at + mark.length)];
}

function machine({ pairs, measureMs }: Effort): string {
  const [cpu] = cpus();
  const gib = Math.round(totalmem() / 2 ** 30);
  return `Measured on ${cpus().length} cores of ${cpu?.model.trim() ?? "an unknown processor"}, ${gib} GiB, Linux ${release()}, Node ${process.version}, with the load on the same cores: the medians of ${pairs} pairs of ${measureMs / 1000} s each.`;
}

function table(answered: readonly Answered[]): string[] {
  const rows = answered.flatMap(({ question, figures }) => figures.map((figure) => row(question, figure)));
  return ["| question | load | ours | yardstick | ratio | goal |", "|---|---|---|---|---|---|", ...rows];
}

function row({ title, load }: Question, figure: Figure): string {
  const { what, unit, ours, yardstick, ratio, goal } = figure;
  const name = what === "" ? title : `${title} (${what})`;
  const wanted = goal === null ? "" : `${goal.kind === "atLeast" ? "≥" : "≤"} ${goal.value}`;
  return `| ${name} | ${load} | ${amount(ours)} ${unit} | ${yardstick === null ? "" : `${amount(yardstick)} ${unit}`} | ${ratio === null ? "" : ratio.toFixed(2)} | ${wanted}${isReached(figure) ? "" : " (missed)"} |`;
}

/** Only what is better when it is more: a bar for a time would say the opposite. */
function barsOf({ question, figures }: Answered): Bars[] {
  return figures.flatMap(({ ours, yardstick, unit, goal }) => (yardstick === null || goal?.kind !== "atLeast" ? [] : [{ label: question.title, ours, yardstick, unit, goal: goal.value }]));
}

/** A figure with as many digits as it deserves. */
export function amount(value: number): string {
  return value < 100 ? value.toPrecision(3) : Math.round(value).toLocaleString("en");
}
