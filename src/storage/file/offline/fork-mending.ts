import type { ForkRelations, ReferenceChange } from "../survey/fork-relations.js";
import type { Layout } from "../format/layout.js";
import type { Sidecar } from "../format/sidecar.js";
import type { CheckedStream, Finding } from "../survey/stream-check.js";
import type { FoundStream, StreamFactFinder } from "../survey/stream-facts.js";

/** What a mending works with. */
export interface ForkMendingOptions {
  readonly layout: Layout;
  /** Whether anything is changed. */
  readonly apply: boolean;
  /** Sidecars that would be there if anything were done, by directory. */
  readonly planned: ReadonlyMap<string, Sidecar>;
  readonly check: (directory: string) => Promise<CheckedStream>;
  readonly replace: (checked: CheckedStream, sidecar: Sidecar) => Promise<void>;
}

/**
 * Where a fork and its source disagree, and what was done about it, or is to be done; `null`: nothing helps but a copy.
 */
export interface MendedFork {
  readonly finding: Finding;
  readonly mend: string | null;
}

/** A problem that a change of a source's list of forks ends. */
interface Mend {
  readonly finding: Finding;
  readonly change: ReferenceChange;
}

/** What a fork says of itself is right: its source learns of it, and forgets what is nowhere. */
export async function* mendForks(
  options: ForkMendingOptions,
  facts: StreamFactFinder,
  relations: ForkRelations,
): AsyncGenerator<MendedFork> {
  const { layout, apply, planned } = options;
  const mends = new Map<string, Mend[]>();
  const find = async (name: string): Promise<FoundStream> => {
    const directory = layout.streamDirectory(name);
    return facts.factsIn(directory, planned.get(directory) ?? null) ?? facts.find(name);
  };
  for await (const { finding, change } of relations.problems(find)) {
    if (change === null) {
      yield { finding, mend: null };
      continue;
    }
    const ofSource = mends.get(change.source);
    if (ofSource === undefined) mends.set(change.source, [{ finding, change }]);
    else ofSource.push({ finding, change });
  }
  for (const [source, ofSource] of mends) {
    if (apply) await changeForks(options, layout.streamDirectory(source), ofSource);
    for (const { finding, change } of ofSource)
      yield {
        finding,
        mend: change.neededBefore === null ? "take a fork off its list" : "put its list of forks right",
      };
  }
}

async function changeForks(
  { check, replace }: ForkMendingOptions,
  directory: string,
  mends: readonly Mend[],
): Promise<void> {
  const checked = await check(directory);
  if (checked.sidecar === null) return;
  const forks = new Map(checked.sidecar.forks);
  for (const {
    change: { fork, neededBefore },
  } of mends) {
    if (neededBefore === null) forks.delete(fork);
    else forks.set(fork, neededBefore);
  }
  await replace(checked, { ...checked.sidecar, forks: forks.size === 0 ? null : forks });
}
