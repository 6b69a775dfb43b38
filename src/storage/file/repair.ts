import { join } from "node:path";
import type { Position } from "../storage.js";
import type { Log } from "../../ops/log.js";
import { Damaged } from "./damaged.js";
import { makeShards } from "./directory.js";
import type { Files } from "./files.js";
import { ForkRelations, type ReferenceChange } from "./fork-relations.js";
import { applyKept, behindKept, isApplicable, settleJournal, shortStreams } from "./journal-settlement.js";
import { ownSidecar, surveyJournal, surveyKept, type JournaledStream, type Survey } from "./journal-survey.js";
import { sidecarPath, type Layout } from "./layout.js";
import { nameList } from "./name-list.js";
import { relativesOf } from "./relatives.js";
import { encodeSidecar, type Sidecar } from "./sidecar.js";
import { mendSidecar } from "./sidecar-mending.js";
import { rebuildSidecar } from "./sidecar-rebuild.js";
import { checkStream, type CheckedStream, type Finding } from "./stream-check.js";
import { idsOf, StreamFactFinder, writtenId, type FoundStream } from "./stream-facts.js";
import { newStreamId } from "./stream-id.js";
import { describeDamage, problemWithOwner } from "./verify.js";

/** Something that was done, or is to be done, or that nobody but the operator can do. */
export interface RepairLine {
  readonly kind: "done" | "to do" | "left";
  readonly stream: string | null;
  readonly file: string;
  readonly what: string;
}

/** How many lines of each kind there were. */
export interface RepairSummary {
  readonly done: number;
  readonly toDo: number;
  readonly left: number;
}

/** What a repair works with; the directory is locked when `apply` is set. */
export interface RepairOptions {
  readonly files: Files;
  readonly layout: Layout;
  readonly directoryId: Buffer;
  /** Whether anything is changed. */
  readonly apply: boolean;
  readonly nowMs: number;
  readonly log: Log;
  readonly say: (line: RepairLine) => void;
}

/**
 * Does what is safe to do about a damaged directory, or says what that would be. Every step is permanent before the next
 * begins, and doing all of them again after a crash in the middle does the same.
 *
 * Order: sidecars first, so that the journal has something to be applied to; then the journal; then segments, which by
 * then hold all that they should; last what sources know of their forks. Before any of it all relations are gathered:
 * what one stream has lost of itself, another may know.
 */
export async function repairDirectory(options: RepairOptions): Promise<RepairSummary> {
  return new Repair(options).run();
}

class Repair {
  readonly #options: RepairOptions;
  readonly #damaged: Damaged;
  readonly #counts = { done: 0, "to do": 0, left: 0 };
  #relations: ForkRelations;
  /** Sidecars that would be there if anything were done, by directory. */
  readonly #planned = new Map<string, Sidecar>();

  constructor(options: RepairOptions) {
    this.#options = options;
    this.#damaged = new Damaged(options.files, options.layout);
    this.#relations = new ForkRelations(options.layout);
  }

  async run(): Promise<RepairSummary> {
    const survey = await surveyJournal(this.#options);
    if (this.#leaveJournal(survey)) return this.#summary();
    if (this.#options.apply) await makeShards(this.#options.files, this.#options.layout);
    const found = await this.#gather(survey, (checked, journaled) => this.#repairOwner(checked, journaled));
    this.#relations = found.relations;
    const kept = new StreamFactFinder(this.#options, await surveyKept(this.#options)).present;
    for (const directory of found.lost) {
      if (isToldOnly(kept.get(directory))) continue;
      const journals = { present: found.facts.present.get(directory), kept: kept.get(directory), lastBatch: survey.lastBatch };
      await this.#repairSidecar(await this.#check(directory, 0, false), journals, found.lost.length === 1);
    }
    await this.#applyKept(survey);
    await this.#repairJournal(this.#counts.done > 0 ? await surveyJournal(this.#options) : survey);
    for await (const directory of this.#directories()) {
      await this.#repairSegments(await this.#check(directory, found.facts.present.get(directory)?.trimmedTo ?? 0, true));
    }
    if (!found.relations.isEmpty) await this.#repairForks(await this.#gather(this.#options.apply ? await surveyJournal(this.#options) : survey));
    return this.#summary();
  }

  /** Looks at all streams, has `visit` see to those with a sound sidecar, and learns of all who was forked from whom. */
  async #gather(survey: Survey, visit: (checked: CheckedStream, journaled: JournaledStream | undefined) => Promise<void> = () => Promise.resolve()): Promise<Gathered> {
    const facts = new StreamFactFinder(this.#options, survey);
    const relations = new ForkRelations(this.#options.layout);
    const lost: string[] = [];
    for (const unwritten of facts.unwritten()) relations.note(unwritten);
    for await (const directory of this.#directories()) {
      const journaled = facts.present.get(directory);
      const checked = await this.#check(directory, 0, false);
      const known = facts.factsIn(directory, checked.sidecar ?? this.#planned.get(directory) ?? (journaled === undefined ? null : ownSidecar(journaled)));
      if (known !== null) relations.note(known);
      if (checked.sidecar !== null) await visit(checked, journaled);
      else if (isMissed(checked, journaled) && !facts.isVacated(directory) && !isToldOnly(journaled)) {
        lost.push(directory);
        if (known === null) relations.noteUnsound(await idsOf(this.#options, checked, journaled));
      }
    }
    return { facts, relations, lost };
  }

  #summary(): RepairSummary {
    return { done: this.#counts.done, toDo: this.#counts["to do"], left: this.#counts.left };
  }

  #say(kind: RepairLine["kind"], stream: string | null, file: string, what: string): void {
    this.#counts[kind] += 1;
    this.#options.say({ kind, stream, file, what });
  }

  /** Does a step and says so; or only says it. */
  async #step(stream: string | null, file: string, what: string, run: () => Promise<unknown>): Promise<void> {
    if (this.#options.apply) await run();
    this.#say(this.#options.apply ? "done" : "to do", stream, file, what);
  }

  async *#directories(): AsyncGenerator<string> {
    const { files, layout } = this.#options;
    for (const shard of await files.list(layout.streams)) {
      if (!/^[0-9a-f]{2}$/.test(shard)) continue;
      for (const entry of await files.list(join(layout.streams, shard))) yield join(layout.streams, shard, entry);
    }
  }

  #check(directory: string, trimmedTo: Position, readSegments: boolean): Promise<CheckedStream> {
    const { files, layout } = this.#options;
    return checkStream({ files, layout, trimmedTo, readSegments, onBytes: () => undefined }, directory);
  }

  /** Without a journal of its own nobody knows how much of a directory is missing: nothing is built on that. */
  #leaveJournal({ lastBatch, damages, foreign }: Survey): boolean {
    const { journal } = this.#options.layout;
    if (foreign !== null) this.#say("left", null, foreign, "it belongs to another directory: put the journal back that belongs to this one, from the same copy");
    else if (lastBatch === 0 && damages.length === 0) this.#say("left", null, journal, "the journal is missing: put it back, from the same copy as the rest");
    else return false;
    return true;
  }

  async #repairSidecar(checked: CheckedStream, journals: Journals, isOnlyLost: boolean): Promise<void> {
    const { directory, name, sidecarState, sidecarProblem } = checked;
    const path = sidecarPath(directory);
    const mended = checked.sidecarBytes === null ? null : mendSidecar(checked.sidecarBytes);
    if (mended !== null && this.#options.layout.streamDirectory(mended.sidecar.name) === directory) {
      const what = `put byte ${mended.offset} right, the only one whose change makes the checksum match; the damaged file is kept`;
      return this.#putSidecar(checked, mended.sidecar, mended.bytes, what);
    }
    if (sidecarState === "final" || sidecarState === "unreadable") return this.#say("left", name, path, `${sidecarProblem}`);
    const problem = await this.#rebuildSidecar(checked, journals, isOnlyLost);
    if (problem !== null) this.#say("left", name, path, `${sidecarProblem}, and can't be made anew: ${problem}`);
  }

  /** Returns in words why it can't be done. */
  async #rebuildSidecar(checked: CheckedStream, journals: Journals, isOnlyLost: boolean): Promise<string | null> {
    const { files, apply, nowMs } = this.#options;
    const journaled = knownOf(checked, journals);
    if (journaled === null) return "records of a stream of this name were set aside, and nobody can tell whether they are its own";
    const relatives = relativesOf({ relations: this.#relations, isOnlyLost }, checked, journaled);
    if (typeof relatives === "string") return relatives;
    const rebuilt = await rebuildSidecar({ files, syncs: apply, newId: newStreamId, nowMs }, checked, journaled, relatives);
    if (typeof rebuilt === "string") return rebuilt;
    const { state, claimed } = rebuilt.sidecar;
    const sidecar = journaled === undefined ? { ...rebuilt.sidecar, batch: journals.lastBatch } : rebuilt.sidecar;
    const extent = claimed ? "" : ` with ${state.tail} bytes`;
    await this.#putSidecar(checked, sidecar, encodeSidecar(sidecar), `${checked.sidecarProblem}: make it anew${extent}; ${rebuilt.unknown}`);
    return null;
  }

  async #putSidecar(checked: CheckedStream, sidecar: Sidecar, bytes: Buffer, what: string): Promise<void> {
    if (!this.#options.apply) this.#planned.set(checked.directory, sidecar);
    await this.#step(sidecar.name, sidecarPath(checked.directory), what, () => this.#replaceSidecar(checked, bytes));
  }

  async #replaceSidecar({ directory, sidecarBytes }: CheckedStream, bytes: Buffer): Promise<void> {
    if (sidecarBytes !== null) await this.#damaged.copy(sidecarPath(directory), sidecarBytes);
    await this.#damaged.replaceSidecar(directory, bytes);
  }

  async #repairOwner({ directory, name, sidecar, findings }: CheckedStream, journaled: JournaledStream | undefined): Promise<void> {
    const isHome = name !== null && this.#options.layout.streamDirectory(name) === directory;
    if (!isHome) return this.#say("left", name, directory, findings.find(({ file }) => file === directory)?.problem ?? "it is nobody's directory");
    if (sidecar?.claimed === true && journaled?.identity.id !== sidecar.id) {
      await this.#step(name, directory, "set it aside: it was taken for a stream that was never created", () => this.#damaged.move(directory));
    }
  }

  /** What a start of the server set aside, because the stream's files could not take it, has somewhere to go now. */
  async #applyKept(survey: Survey): Promise<void> {
    const kept = await surveyKept(this.#options);
    const behind = behindKept(kept, survey);
    if (behind.length === 0) return;
    const { files, layout, directoryId, log, apply } = this.#options;
    const ids = new Set(behind.map(({ identity }) => identity.id));
    if (apply) await applyKept({ files, layout, directoryId, log, damaged: this.#damaged }, kept, ids);
    for (const { identity, directory, pendingRecords, gap } of behind) {
      const refused = gap === null ? "" : `, and ${this.#refusal(identity.id)}: those from position ${gap.tail} on are lost`;
      this.#say(apply ? "done" : "to do", identity.name, directory, `apply ${pendingRecords} records that were set aside in ${layout.damaged}${refused}`);
      if (gap !== null) this.#say("left", identity.name, directory, `records of it from position ${gap.tail} on are lost`);
    }
  }

  async #repairJournal(survey: Survey): Promise<void> {
    const streams = [...survey.streams.values()];
    const pending = streams.filter((stream) => !stream.deleted && (stream.pendingRecords > 0 || stream.isTold) && isApplicable(stream));
    const doomed = streams.filter((stream) => stream.deleted && isApplicable(stream) && stream.sidecar !== null);
    const short = shortStreams(survey);
    if (pending.length + doomed.length + short.length + survey.damages.length === 0) return;
    const { files, layout, directoryId, log, apply } = this.#options;
    const left = apply ? await settleJournal({ files, layout, directoryId, log, damaged: this.#damaged }, survey) : [];
    const records = pending.reduce((sum, { pendingRecords }) => sum + pendingRecords, 0);
    const done = (stream: string | null, file: string, what: string): void => this.#say(apply ? "done" : "to do", stream, file, what);
    done(null, layout.journal, `apply ${records} records to ${pending.length} streams, and finish ${doomed.length} deletions`);
    for (const damage of survey.damages) {
      done(null, damage.file, `set it aside, damaged at byte ${damage.offset}: ${describeDamage(damage, survey)}`);
      this.#say("left", null, damage.file, `what was in it from byte ${damage.offset} to the next sound record is lost: it may be the last appends of any stream`);
    }
    for (const { id, name, directory, reason } of short) {
      done(name, sidecarPath(directory), `${this.#refusal(id)}, and keep its sidecar`);
      this.#say("left", name, sidecarPath(directory), reason);
    }
    for (const { name, directory, damage } of left) this.#say("left", name, directory, `its records in the journal are kept: ${damage?.problem}`);
  }

  async #repairSegments({ directory, name, sidecar, lost }: CheckedStream): Promise<void> {
    if (sidecar === null) return;
    for (const segment of lost) {
      const sharers = this.#relations.sharersOf(sidecar.id, segment.start, segment.start + segment.length);
      const shared = sharers.length === 0 ? "" : `, which its forks share: ${nameList(sharers)}`;
      const outlook = segment.state === "unreadable" ? "out of reach" : "lost until it is put back from a copy";
      this.#say("left", name, segment.path, `${outlook}: ${segment.problem}${shared}`);
      if (segment.state === "wrong") await this.#step(name, segment.path, "set it aside", () => this.#damaged.move(segment.path));
    }
    const last = sidecar.segments.at(-1);
    // What can't be read now is not lost.
    const isLastLost = lost.some(({ start, state }) => start === last?.start && state !== "unreadable");
    if (!isLastLost || sidecar.state.closed) return;
    const what = `${this.#refusal(sidecar.id)}, and keep its sidecar: what is appended to a damaged segment could not be read again`;
    await this.#step(name, sidecarPath(directory), what, () => this.#damaged.refuse(directory, "its last segment is lost"));
  }

  /** What {@link Damaged.refuse} does. */
  #refusal(id: string): string {
    return this.#relations.isSource(id) ? "close the stream, which its forks need" : "refuse the stream";
  }

  /** What a fork says of itself is right: its source learns of it, and forgets what is nowhere. */
  async #repairForks({ facts, relations }: Gathered): Promise<void> {
    const { layout, apply } = this.#options;
    const mends = new Map<string, Mend[]>();
    const find = async (name: string): Promise<FoundStream> => {
      const directory = layout.streamDirectory(name);
      return facts.factsIn(directory, this.#planned.get(directory) ?? null) ?? facts.find(name);
    };
    for await (const { finding, change } of relations.problems(find)) {
      if (change === null) {
        this.#say("left", finding.stream, finding.file, finding.problem);
        continue;
      }
      const ofSource = mends.get(change.source);
      if (ofSource === undefined) mends.set(change.source, [{ finding, change }]);
      else ofSource.push({ finding, change });
    }
    for (const [source, ofSource] of mends) {
      if (apply) await this.#changeForks(layout.streamDirectory(source), ofSource);
      for (const { finding, change } of ofSource) {
        const what = change.neededBefore === null ? "take a fork off its list" : "put its list of forks right";
        this.#say(apply ? "done" : "to do", finding.stream, finding.file, `${what}: ${finding.problem}`);
      }
    }
  }

  async #changeForks(directory: string, mends: readonly Mend[]): Promise<void> {
    const checked = await this.#check(directory, 0, false);
    if (checked.sidecar === null) return;
    const forks = new Map(checked.sidecar.forks);
    for (const { change: { fork, neededBefore } } of mends) {
      if (neededBefore === null) forks.delete(fork);
      else forks.set(fork, neededBefore);
    }
    await this.#replaceSidecar(checked, encodeSidecar({ ...checked.sidecar, forks: forks.size === 0 ? null : forks }));
  }
}

/** A problem that a change of a source's list of forks ends. */
interface Mend {
  readonly finding: Finding;
  readonly change: ReferenceChange;
}

/** What one look at all streams told. */
interface Gathered {
  readonly facts: StreamFactFinder;
  readonly relations: ForkRelations;
  /** Directories without a sound sidecar. */
  readonly lost: readonly string[];
}

/** What the journal, and what was set aside of it, say of one directory. */
interface Journals {
  readonly present: JournaledStream | undefined;
  readonly kept: JournaledStream | undefined;
  readonly lastBatch: number;
}

/**
 * What the journal knows of the stream whose sidecar is lost. What was set aside is older and knows more of its beginning,
 * but may be an earlier stream's of the name, whose bytes must never get into this one: `null` where nobody can tell.
 */
function knownOf({ sidecarBytes }: CheckedStream, { present, kept }: Journals): JournaledStream | null | undefined {
  if (kept === undefined) return present;
  const id = present?.identity.id ?? writtenId(sidecarBytes);
  if (id === undefined) return null;
  return kept.identity.id === id ? kept : present;
}

/** Whether nothing is wrong with a stream but what a notice says: that its files lack records, which can be applied now. */
function isToldOnly(journaled: JournaledStream | undefined): boolean {
  return journaled !== undefined && journaled.isTold && isApplicable(journaled);
}

/** Whether a stream should have a sidecar where there is no sound one. */
function isMissed(checked: CheckedStream, journaled: JournaledStream | undefined): boolean {
  return checked.sidecarState !== "missing" || problemWithOwner(checked, journaled) !== null;
}
