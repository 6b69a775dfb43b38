import { removeFile } from "../disk/files.js";
import { makeShards } from "../directory/directory.js";
import { lossesPath, sidecarPath } from "../format/layout.js";
import { encodeSidecar } from "../format/sidecar.js";
import { describeDamage } from "../survey/damaged-place.js";
import { ForkRelations } from "../survey/fork-relations.js";
import { surveyJournal, surveyKept, type Survey } from "../survey/journal-survey.js";
import { ownSidecar, type JournaledStream } from "../survey/journaled-stream.js";
import { nameList } from "../survey/name-list.js";
import type { CheckedStream } from "../survey/stream-check.js";
import { idsOf, StreamFactFinder } from "../survey/stream-facts.js";
import { mendForks } from "./fork-mending.js";
import {
  applyKept,
  behindKept,
  isApplicable,
  replayJournal,
  shortStreams,
  type ShortStream,
} from "./journal-replay.js";
import { acceptanceOf, AcceptedNames, keptSidecar } from "./loss-acceptance.js";
import { isMissed, isStale, isToldOnly, problemWithHolder } from "./lost-sidecar.js";
import { RepairSteps, type RepairOptions, type RepairSummary } from "./repair-steps.js";
import { withoutIndexes } from "./sidecar-mending.js";
import { repairSidecars, setClaimAside, type Gathered } from "./sidecar-repair.js";
import { unprovenStreams } from "./unproven-streams.js";

export type { RepairLine, RepairSummary } from "./repair-steps.js";

/**
 * Does what is safe to do about a damaged directory, or says what that would be. Every step is permanent before the
 * next begins, and doing all of them again after a crash in the middle does the same.
 *
 * Order: sidecars first, so that the journal has something to be applied to; then the journal; then segments, which by
 * then hold all that they should; then the losses that are accepted; last what sources know of their forks. Before any
 * of it all relations are gathered: what one stream has lost of itself, another may know.
 */
export async function repairDirectory(options: RepairOptions): Promise<RepairSummary> {
  return new Repair(options).run();
}

const REFUSE = "refuse the stream";

class Repair {
  readonly #options: RepairOptions;
  readonly #steps: RepairSteps;
  readonly #accepted: AcceptedNames;
  /** Streams that would be refused if anything were done, and whose loss is accepted. */
  readonly #refusals: { readonly directory: string; readonly name: string }[] = [];

  constructor(options: RepairOptions) {
    this.#options = options;
    this.#steps = new RepairSteps(options);
    this.#accepted = new AcceptedNames(options.acceptLoss ?? []);
  }

  async run(): Promise<RepairSummary> {
    const steps = this.#steps;
    const { files, layout, apply } = this.#options;
    const first = await surveyJournal(this.#options);
    if (this.#leaveJournal(first)) return steps.summary;
    if (apply) await makeShards(files, layout);
    if (apply) await this.#dropNames();
    const found = await this.#gather(first, true, (checked, journaled) => this.#repairOwner(checked, journaled, first));
    steps.relations = found.relations;
    const survey = steps.knownBatch > first.highestBatch ? await steps.survey() : first;
    for (const { checked, problem } of await repairSidecars(steps, found, survey)) {
      const { name, directory, refusal } = checked;
      if (refusal === null || !this.#accepted.has(name)) steps.leave(name, sidecarPath(directory), problem);
    }
    await this.#applyKept(survey);
    const isChanged = steps.summary.done > 0 || steps.knownBatch > survey.highestBatch;
    await this.#repairJournal(isChanged ? await steps.survey() : survey);
    for await (const directory of steps.directories()) {
      const trimmedTo = found.facts.present.get(directory)?.trimmedTo ?? 0;
      await this.#repairSegments(await steps.checkSegments(directory, trimmedTo));
    }
    await this.#acceptLosses();
    if (!found.relations.isEmpty) {
      const { facts, relations } = await this.#gather(apply ? await steps.survey() : survey, false);
      await mendForks(steps, facts, relations);
    }
    return steps.summary;
  }

  /**
   * Looks at all streams, has `visit` see to those with a sound sidecar, and learns of all who was forked from whom; of
   * refused ones too where it `countsRefused`.
   */
  async #gather(
    survey: Survey,
    countsRefused: boolean,
    visit: (checked: CheckedStream, journaled: JournaledStream | undefined) => Promise<void> = () => Promise.resolve(),
  ): Promise<Gathered> {
    const steps = this.#steps;
    const facts = new StreamFactFinder(this.#options, survey);
    const relations = new ForkRelations(this.#options.layout);
    const lost: string[] = [];
    for (const unwritten of facts.unwritten()) relations.note(unwritten);
    for await (const checked of steps.streams()) {
      const { directory, sidecar } = checked;
      const journaled = facts.present.get(directory);
      const refused = checked.refusal === null ? null : await keptSidecar(steps, directory);
      const own = journaled === undefined ? null : ownSidecar(journaled);
      const planned = sidecar ?? steps.planned.get(directory) ?? null;
      const known = facts.factsIn(directory, planned ?? (countsRefused ? refused : null) ?? own);
      if (known !== null) relations.note(known);
      steps.knownBatch = Math.max(steps.knownBatch, (sidecar ?? refused ?? own)?.batch ?? 0);
      if (sidecar !== null) await visit(checked, journaled);
      else if (isMissed(checked, journaled) && !facts.isVacated(directory) && !isToldOnly(journaled, survey)) {
        lost.push(directory);
        if (known === null) relations.noteUnsound(await idsOf(this.#options, checked, journaled));
      }
    }
    return { facts, relations, lost };
  }

  /** The file of names goes by a journal that has all of its batches, which a repair may change. */
  async #dropNames(): Promise<void> {
    const { files, layout } = this.#options;
    await removeFile(files, layout.names);
    await files.syncDirectory(layout.root);
  }

  /** Without a journal of its own nobody knows how much of a directory is missing: nothing is built on that. */
  #leaveJournal({ lastBatch, damages, foreign }: Survey): boolean {
    const { journal } = this.#options.layout;
    const fromCopy = "put the journal back that belongs to this one, from the same copy";
    if (foreign !== null) this.#steps.leave(null, foreign, `it belongs to another directory: ${fromCopy}`);
    else if (lastBatch === 0 && damages.length === 0)
      this.#steps.leave(null, journal, "the journal is missing: put it back, from the same copy as the rest");
    else return false;
    return true;
  }

  async #repairOwner(checked: CheckedStream, journaled: JournaledStream | undefined, survey: Survey): Promise<void> {
    const steps = this.#steps;
    const { directory, name, sidecar, accepted, findings } = checked;
    const problemOf = (path: string): string | undefined => findings.find(({ file }) => file === path)?.problem;
    if (name === null || this.#options.layout.streamDirectory(name) !== directory)
      return steps.leave(name, directory, problemOf(directory) ?? "it is nobody's directory");
    if (sidecar !== null && isStale(sidecar, journaled)) return void (await setClaimAside(steps, directory, sidecar));
    if (sidecar !== null && survey.superseded.has(sidecar.id)) {
      const what = "set it aside: it is that of an earlier stream of this name, which was deleted";
      return steps.take(name, directory, what, () => steps.quarantine.move(directory));
    }
    const problem = problemWithHolder(checked, journaled, survey);
    if (problem !== null) steps.leave(name, sidecarPath(directory), problem);
    const path = lossesPath(directory);
    if (accepted === null)
      await steps.take(name, path, `set it aside: ${problemOf(path)}`, () => steps.quarantine.move(path));
  }

  /** What a start of the server set aside, because the stream's files could not take it, has somewhere to go now. */
  async #applyKept(survey: Survey): Promise<void> {
    const kept = await surveyKept(this.#options);
    const behind = behindKept(kept, survey);
    if (behind.length === 0) return;
    const { layout, apply } = this.#options;
    const short = new Map(shortStreams(kept).map((stream) => [stream.id, stream]));
    const ids = new Set(behind.map(({ identity }) => identity.id));
    if (apply) await applyKept(this.#steps, kept, ids, survey.highestBatch);
    for (const { identity, directory, pendingRecords } of behind) {
      const what = `apply ${pendingRecords} records that were set aside in ${layout.damaged}`;
      if (pendingRecords > 0) this.#steps.did(identity.name, directory, what);
      const lacking = short.get(identity.id);
      if (lacking !== undefined) this.#refused(lacking);
    }
  }

  async #repairJournal(survey: Survey): Promise<void> {
    const { layout, apply } = this.#options;
    const streams = [...survey.streams.values()];
    const pending = streams.filter(
      (stream) => !stream.deleted && (stream.pendingRecords > 0 || stream.isTold) && isApplicable(stream, survey),
    );
    const doomed = streams.filter(
      (stream) => stream.deleted && (ownSidecar(stream) !== null || survey.superseded.has(stream.identity.id)),
    );
    const facts = new StreamFactFinder(this.#options, survey);
    const short = [...shortStreams(survey), ...(await unprovenStreams(survey, facts, this.#steps.streams()))];
    if (pending.length + doomed.length + short.length + survey.damages.length === 0) return;
    const left = apply ? await replayJournal(this.#steps, survey, { short, lastBatch: survey.highestBatch }) : [];
    const records = pending.reduce((sum, { pendingRecords }) => sum + pendingRecords, 0);
    const what = `apply ${records} records to ${pending.length} streams, and finish ${doomed.length} deletions`;
    if (pending.length + doomed.length > 0) this.#steps.did(null, layout.journal, what);
    this.#tellDamages(survey);
    for (const stream of short) this.#refused(stream);
    for (const { name, directory, damage } of left)
      this.#steps.leave(name, directory, `its records in the journal are kept: ${damage?.problem}`);
  }

  #tellDamages({ damages, streams, lastBatch, highestBatch }: Survey): void {
    const own = `; the streams' own files hold all up to batch ${highestBatch}, and go on from there`;
    for (const damage of damages) {
      const { file, offset, suspects, others } = damage;
      const what = `set it aside, damaged at byte ${offset}: ${describeDamage(damage, streams)}`;
      this.#steps.did(null, file, lastBatch > 0 ? what : `${what}${own}`);
      if (suspects.size === 0 && others === "nobody") continue;
      const lost = `what was in it from byte ${offset} to the next sound record is lost`;
      const refused = "those that have, or may have, lost their end are refused";
      this.#steps.leave(null, file, `${lost}, with streams that were created in it; ${refused}`);
    }
  }

  async #repairSegments({ directory, name, sidecar: found, lost, lostIndexes }: CheckedStream): Promise<void> {
    if (found === null) return;
    const steps = this.#steps;
    const { quarantine } = steps;
    const gone = lostIndexes.filter(({ state }) => state !== "unreadable");
    const sidecar = withoutIndexes(found, gone);
    if (gone.length > 0 && this.#options.apply) await quarantine.replaceSidecar(directory, encodeSidecar(sidecar));
    for (const { start, path, state, problem } of lostIndexes) {
      const what = `do without it: reads of what is in the segment at ${start} may end within an append`;
      // What can't be read now is not lost.
      if (state === "unreadable") steps.leave(name, path, problem);
      else if (state === "missing") steps.did(name, path, what);
      else await steps.take(name, path, what, () => quarantine.move(path));
    }
    for (const { start, length, path, state, problem } of lost) {
      const sharers = steps.relations.sharersOf(sidecar.id, start, start + length);
      const shared = sharers.length === 0 ? "" : `, which its forks share: ${nameList(sharers)}`;
      const outlook = state === "unreadable" ? "out of reach" : "lost until it is put back from a copy";
      steps.leave(name, path, `${outlook}: ${problem}${shared}`);
      if (state === "wrong") await steps.take(name, path, "set it aside", () => quarantine.move(path));
    }
    const last = sidecar.segments.at(-1);
    const isLastLost = lost.some(({ start, state }) => start === last?.start && state !== "unreadable");
    if (!isLastLost || sidecar.state.closed) return;
    const isSource = steps.isSource(sidecar.id);
    const why = "what is appended to a damaged segment could not be read again";
    await steps.take(name, sidecarPath(directory), `${this.#refusal(sidecar.id)}, and keep its sidecar: ${why}`, () =>
      quarantine.refuse(directory, "its last segment is lost", { isSource }),
    );
    this.#planRefusal(directory, sidecar.name);
  }

  /** A stream is refused, or closed, from now on: whoever is to decide is told why. */
  #refused({ id, name, directory, reason, isLostWithAll }: ShortStream): void {
    this.#steps.did(
      name,
      sidecarPath(directory),
      isLostWithAll ? REFUSE : `${this.#refusal(id)}, and keep its sidecar`,
    );
    this.#planRefusal(directory, name);
    if (!this.#accepted.has(name)) this.#steps.leave(name, sidecarPath(directory), reason);
  }

  #planRefusal(directory: string, name: string): void {
    if (!this.#options.apply && this.#accepted.has(name)) this.#refusals.push({ directory, name });
  }

  /** Streams that are refused, and of which somebody says that their loss is accepted. */
  async #acceptLosses(): Promise<void> {
    const steps = this.#steps;
    for (const { directory, name } of this.#refusals)
      steps.did(name, sidecarPath(directory), "serve it again with what there is, as its loss is accepted");
    const { highestBatch } = await steps.survey();
    for await (const checked of steps.streams()) {
      const { directory, name } = checked;
      if (checked.refusal === null || !this.#accepted.has(name)) continue;
      const acceptance = await acceptanceOf(steps, checked, highestBatch);
      if (typeof acceptance === "string")
        steps.leave(name, sidecarPath(directory), `its loss can't be accepted: ${acceptance}`);
      else {
        await steps.take(name, sidecarPath(directory), acceptance.what, acceptance.run);
        await this.#repairSegments(await steps.checkSegments(directory, 0));
      }
    }
    for (const name of this.#accepted.unmatched)
      steps.leave(name, this.#options.layout.streams, "it is not refused, or not there: there is no loss to accept");
  }

  /** What {@link Quarantine.refuse} does. */
  #refusal(id: string): string {
    return this.#steps.isSource(id) ? "close the stream, which its forks need" : REFUSE;
  }
}
