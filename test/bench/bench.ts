import { parseArgs } from "node:util";
import { Progress } from "./progress.js";
import { isReached, type Figure, type Question } from "./question.js";
import { CLUSTER_QUESTIONS, QUESTIONS } from "./questions/all.js";
import { amount, goalOf, table, writeReport, type Answered } from "./report.js";
import { Rig } from "./rig.js";

/*
 * How fast the built server is, beside a bare node:http server in the same run: `npm run bench -- --only appends-one
 * --pairs 5 --seconds 3`. It needs the machine for itself. When all questions are asked the figures go into
 * docs/performance.md; the table of those about a cluster is printed. `--quick` only tries whether the questions can be
 * asked: everything is small, and nothing is kept.
 */

const ALL = [...QUESTIONS, ...CLUSTER_QUESTIONS];

const { values } = parseArgs({
  options: {
    only: { type: "string", default: ALL.map(({ id }) => id).join(",") },
    pairs: { type: "string" },
    seconds: { type: "string" },
    quick: { type: "boolean", default: false },
  },
});
const isQuick = values.quick;
const measureMs = Number(values.seconds ?? (isQuick ? 0.5 : 3)) * 1000;
const effort = { pairs: Number(values.pairs ?? (isQuick ? 1 : 5)), warmUpMs: Math.min(1000, measureMs), measureMs, isQuick };

const wanted = values.only.split(",").map((id) => {
  const question = ALL.find((candidate) => candidate.id === id);
  if (question === undefined) throw new Error(`there is no question ${id}; there are ${ALL.map((candidate) => candidate.id).join(", ")}`);
  return question;
});
const progress = new Progress(process.stderr, wanted.length);
const answered: (Answered & { readonly question: Question })[] = [];
for (const question of wanted) {
  progress.question(question.title);
  const rig = new Rig(effort, (step) => progress.step(step));
  try {
    const reply = await question.ask(rig);
    answered.push({ question, reply });
    progress.clear();
    if ("notAsked" in reply) console.log(`${question.title.padEnd(44)} not asked: ${reply.notAsked}`);
    else {
      for (const figure of reply.figures) show(question, figure);
      for (const { name, points } of reply.curves?.lines ?? [])
        console.log(`  ${name}: ${points.map(({ label, value }) => `${label} ${amount(value)}`).join(", ")}`);
    }
  } catch (error) {
    // The others are asked all the same.
    progress.clear();
    console.error(`${question.title} failed:`, error);
    process.exitCode = 1;
  } finally {
    await rig.end();
  }
}

const alone = answered.filter(({ question }) => QUESTIONS.includes(question));
if (alone.length === QUESTIONS.length && !isQuick) writeReport(alone, effort);
const ofCluster = answered.filter(({ question }) => CLUSTER_QUESTIONS.includes(question));
if (ofCluster.length > 0 && !isQuick) console.log(["", ...table(ofCluster)].join("\n"));

function show({ title }: Question, figure: Figure): void {
  const { what, unit, ours, yardstick, ratio, rivals = [] } = figure;
  const cells = [
    title.padEnd(44),
    `${amount(ours)} ${unit}`.padStart(20),
    (yardstick === null ? "" : amount(yardstick)).padStart(9),
    (ratio === null ? "" : ratio.toFixed(2)).padStart(6),
  ];
  const others = rivals.map(({ name, value }) => `  ${name} ${amount(value)}`).join("");
  console.log(`${cells.join(" ")}  ${goalOf(figure)}${isReached(figure) ? "" : "  MISSED"}${what === "" ? "" : `  (${what})`}${others}`);
}
