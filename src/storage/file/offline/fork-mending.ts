import type { ForkProblem, ForkRelations, ReferenceChange } from "../survey/fork-relations.js";
import { encodeSidecar } from "../format/sidecar.js";
import { checkStream } from "../survey/stream-check.js";
import type { FoundStream, StreamFactFinder } from "../survey/stream-facts.js";
import type { RepairSteps } from "./repair-steps.js";

/**
 * Sees to it that forks and sources agree: what a fork says of itself is right, so its source learns of it, and forgets
 * what is nowhere. Leaves to the operator where nothing helps but a copy.
 */
export async function mendForks(steps: RepairSteps, facts: StreamFactFinder, relations: ForkRelations): Promise<void> {
  const { layout, apply } = steps.options;
  const bySource = new Map<string, ForkProblem[]>();
  const find = async (name: string): Promise<FoundStream> => {
    const directory = layout.streamDirectory(name);
    return facts.factsIn(directory, steps.planned.get(directory) ?? null) ?? facts.find(name);
  };
  for await (const problem of relations.problems(find)) {
    const { finding, change } = problem;
    if (change === null) steps.leave(finding.stream, finding.file, finding.problem);
    else bySource.set(change.source, [...(bySource.get(change.source) ?? []), problem]);
  }
  for (const [source, problems] of bySource) {
    const changes = problems.map(({ change }) => change).filter((change) => change !== null);
    if (apply) await changeForks(steps, layout.streamDirectory(source), changes);
    for (const { finding, change } of problems) {
      const mend = change?.neededBefore === null ? "take a fork off its list" : "put its list of forks right";
      steps.did(finding.stream, finding.file, `${mend}: ${finding.problem}`);
    }
  }
}

async function changeForks(steps: RepairSteps, directory: string, changes: readonly ReferenceChange[]): Promise<void> {
  const checked = await checkStream(steps.options, directory);
  if (checked.sidecar === null) return;
  const forks = new Map(checked.sidecar.forks);
  for (const { fork, neededBefore } of changes) {
    if (neededBefore === null) forks.delete(fork);
    else forks.set(fork, neededBefore);
  }
  const sidecar = { ...checked.sidecar, forks: forks.size === 0 ? null : forks };
  await steps.replaceSidecar(checked, encodeSidecar(sidecar));
}
