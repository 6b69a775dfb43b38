import { parseArgs } from "node:util";
import { isReached, type Figure, type Question } from "./question.js";
import { manyStreams, oneStream, producers, shortLives } from "./questions/appends.js";
import { largeAppends, oneAtATime } from "./questions/disk-bound.js";
import { fanOut1000, fanOut8000 } from "./questions/live.js";
import { cachedReads, revalidation, smallReads, warmReads } from "./questions/reads.js";
import { amount, writeReport, type Answered } from "./report.js";
import { Rig } from "./rig.js";

/*
 * How fast the built server is, beside a bare node:http server in the same run: `npm run bench -- --only appends-one
 * --pairs 5 --seconds 3`. It needs the machine for itself. When all questions are asked the figures go into
 * docs/performance.md.
 */

const QUESTIONS: readonly Question[] = [manyStreams, oneStream, producers, oneAtATime, shortLives, largeAppends, smallReads, warmReads, cachedReads, revalidation, fanOut1000, fanOut8000];

const { values } = parseArgs({
  options: {
    only: { type: "string", default: QUESTIONS.map(({ id }) => id).join(",") },
    pairs: { type: "string", default: "5" },
    seconds: { type: "string", default: "3" },
  },
});
const measureMs = Number(values.seconds) * 1000;
const effort = { pairs: Number(values.pairs), warmUpMs: Math.min(1000, measureMs), measureMs };

const answered: Answered[] = [];
for (const id of values.only.split(",")) {
  const question = QUESTIONS.find((candidate) => candidate.id === id);
  if (question === undefined) throw new Error(`there is no question ${id}; there are ${QUESTIONS.map((candidate) => candidate.id).join(", ")}`);
  const rig = new Rig(effort, (step) => showProgress(`${question.title}: ${step}`));
  try {
    const figures = await question.ask(rig);
    answered.push({ question, figures });
    for (const figure of figures) show(question, figure);
  } finally {
    await rig.end();
  }
}

if (answered.length === QUESTIONS.length) writeReport(answered, effort);

function showProgress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

function show({ title }: Question, figure: Figure): void {
  showProgress("");
  const { what, unit, ours, yardstick, ratio, goal } = figure;
  const cells = [title.padEnd(44), `${amount(ours)} ${unit}`.padStart(20), yardstick === null ? "" : amount(yardstick).padStart(9), ratio === null ? "" : ratio.toFixed(2).padStart(6)];
  const wanted = goal === null ? "" : `${goal.kind === "atLeast" ? ">=" : "<="} ${goal.value}`;
  console.log(`${cells.join(" ")}  ${wanted}${isReached(figure) ? "" : "  MISSED"}${what === "" ? "" : `  (${what})`}`);
}
