import { join } from "node:path";
import { nameMatcher } from "../../../protocol/name-pattern.js";
import type { Position } from "../../storage.js";
import type { Log } from "../../../ops/log.js";
import { describeDamage } from "../survey/damaged-place.js";
import { Quarantine } from "../directory/quarantine.js";
import { makeShards } from "../directory/directory.js";
import type { Files } from "../disk/files.js";
import { mendForks } from "./fork-mending.js";
import { ForkRelations } from "../survey/fork-relations.js";
import {
  applyKept,
  behindKept,
  isApplicable,
  replayJournal,
  shortStreams,
  type ShortStream,
} from "./journal-replay.js";
import { surveyJournal, surveyKept, type Survey } from "../survey/journal-survey.js";
import { ownSidecar, type JournaledStream } from "../survey/journaled-stream.js";
import { lossesPath, sidecarPath, type Layout } from "../format/layout.js";
import { acceptanceOf, keptSidecar } from "./loss-acceptance.js";
import { isMissed, isStale, isToldOnly, knownOf, problemWithHolder, type Journals } from "./lost-sidecar.js";
import { nameList } from "../survey/name-list.js";
import { relativesOf } from "./relatives.js";
import { encodeSidecar, type Sidecar } from "../format/sidecar.js";
import { mendSidecar, withoutIndexes } from "./sidecar-mending.js";
import { rebuildSidecar } from "./sidecar-rebuild.js";
import { checkStream, type CheckedStream } from "../survey/stream-check.js";
import { idsOf, StreamFactFinder } from "../survey/stream-facts.js";
import { newStreamId } from "../memory/stream-id.js";
import { unprovenStreams } from "./unproven-streams.js";

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
  /**
   * The names of streams, or patterns of names, that are to be served with what there is although they may have lost
   * their end.
   */
  readonly acceptLoss?: readonly string[];
  readonly nowMs: number;
  readonly log: Log;
  readonly say: (line: RepairLine) => void;
}

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
  readonly #quarantine: Quarantine;
  readonly #counts = { done: 0, "to do": 0, left: 0 };
  #relations: ForkRelations;
  /** Whose loss is accepted, and which of these patterns a refused stream was found for. */
  readonly #accepting: readonly { readonly pattern: string; readonly matches: (name: string) => boolean }[];
  readonly #matched = new Set<string>();
  /** Of all sidecars that were seen: the journal has had so many batches. */
  #knownBatch = 0;
  /** Sidecars that would be there if anything were done, by directory. */
  readonly #planned = new Map<string, Sidecar>();
  /** Streams that would be refused if anything were done, and whose loss is accepted. */
  readonly #refusals: { readonly directory: string; readonly name: string }[] = [];

  constructor(options: RepairOptions) {
    this.#options = options;
    this.#accepting = (options.acceptLoss ?? []).map((pattern) => ({ pattern, matches: nameMatcher(pattern) }));
    this.#quarantine = new Quarantine(options.files, options.layout);
    this.#relations = new ForkRelations(options.layout);
  }

  async run(): Promise<RepairSummary> {
    const first = await surveyJournal(this.#options);
    if (this.#leaveJournal(first)) return this.#summary();
    if (this.#options.apply) await makeShards(this.#options.files, this.#options.layout);
    const found = await this.#gather(first, true, (checked, journaled) => this.#repairOwner(checked, journaled, first));
    this.#relations = found.relations;
    const survey = this.#knownBatch > first.highestBatch ? await this.#survey() : first;
    await this.#repairSidecars(found, survey);
    await this.#applyKept(survey);
    await this.#repairJournal(
      this.#counts.done > 0 || this.#knownBatch > survey.highestBatch ? await this.#survey() : survey,
    );
    for await (const directory of this.#directories()) {
      await this.#repairSegments(
        await this.#check(directory, found.facts.present.get(directory)?.trimmedTo ?? 0, true),
      );
    }
    await this.#acceptLosses();
    if (!found.relations.isEmpty) await this.#repairForks(this.#options.apply ? await this.#survey() : survey);
    return this.#summary();
  }

  /** The journal, as it is now, by all that sidecars tell of it. */
  #survey(): Promise<Survey> {
    return surveyJournal({ ...this.#options, knownBatch: this.#knownBatch });
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
    const facts = new StreamFactFinder(this.#options, survey);
    const relations = new ForkRelations(this.#options.layout);
    const lost: string[] = [];
    for (const unwritten of facts.unwritten()) relations.note(unwritten);
    for await (const directory of this.#directories()) {
      const journaled = facts.present.get(directory);
      const checked = await this.#check(directory, 0, false);
      const refused =
        checked.refusal === null ? null : await keptSidecar(this.#quarantine, this.#options.layout, directory);
      const own = journaled === undefined ? null : ownSidecar(journaled);
      const known = facts.factsIn(
        directory,
        checked.sidecar ?? this.#planned.get(directory) ?? (countsRefused ? refused : null) ?? own,
      );
      if (known !== null) relations.note(known);
      this.#knownBatch = Math.max(this.#knownBatch, checked.sidecar?.batch ?? refused?.batch ?? own?.batch ?? 0);
      if (checked.sidecar !== null) await visit(checked, journaled);
      else if (isMissed(checked, journaled) && !facts.isVacated(directory) && !isToldOnly(journaled, survey)) {
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

  /** Says of a step that it was done, or is to be done. */
  #did(stream: string | null, file: string, what: string): void {
    this.#say(this.#options.apply ? "done" : "to do", stream, file, what);
  }

  /** Does a step and says so; or only says it. */
  async #step(stream: string | null, file: string, what: string, run: () => Promise<unknown>): Promise<void> {
    if (this.#options.apply) await run();
    this.#did(stream, file, what);
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
    if (foreign !== null)
      this.#say(
        "left",
        null,
        foreign,
        "it belongs to another directory: put the journal back that belongs to this one, from the same copy",
      );
    else if (lastBatch === 0 && damages.length === 0)
      this.#say("left", null, journal, "the journal is missing: put it back, from the same copy as the rest");
    else return false;
    return true;
  }

  /** As long as one that is put right may tell more of the others. */
  async #repairSidecars({ facts, relations, lost }: Gathered, survey: Survey): Promise<void> {
    const aside = await surveyKept(this.#options);
    const kept = new StreamFactFinder(this.#options, aside).present;
    for (let waiting = lost.filter((directory) => !isToldOnly(kept.get(directory), aside)); ;) {
      const left: { readonly checked: CheckedStream; readonly problem: string }[] = [];
      for (const directory of waiting) {
        const checked = await this.#check(directory, 0, false);
        const journals = {
          present: facts.present.get(directory),
          kept: kept.get(directory),
          lastBatch: survey.lastBatch,
        };
        const put = await this.#repairSidecar(checked, journals, waiting.length === 1);
        const known = typeof put === "string" ? null : facts.factsIn(directory, put);
        if (typeof put === "string") left.push({ checked, problem: put });
        else if (known !== null) relations.note(known);
      }
      if (left.length === 0 || left.length === waiting.length) {
        for (const {
          checked: { name, directory, refusal },
          problem,
        } of left) {
          if (refusal === null || !this.#isAccepted(name)) this.#say("left", name, sidecarPath(directory), problem);
        }
        return;
      }
      waiting = left.map(({ checked }) => checked.directory);
    }
  }

  /** Resolves to the sidecar that is there now, or says in words why there is none. */
  async #repairSidecar(checked: CheckedStream, journals: Journals, isOnlyLost: boolean): Promise<Sidecar | string> {
    const { directory, sidecarState, sidecarProblem } = checked;
    const mended = checked.sidecarBytes === null ? null : mendSidecar(checked.sidecarBytes);
    if (mended !== null && this.#options.layout.streamDirectory(mended.sidecar.name) === directory) {
      if (isStale(mended.sidecar, journals.present)) return this.#setClaimAside(directory, mended.sidecar);
      const what = `put byte ${mended.offset} right, the only one whose change makes the checksum match; the damaged file is kept`;
      return this.#putSidecar(checked, mended.sidecar, mended.bytes, what);
    }
    if (sidecarState === "final" || sidecarState === "unreadable") return String(sidecarProblem);
    const rebuilt = await this.#rebuildSidecar(checked, journals, isOnlyLost);
    return typeof rebuilt === "string" ? `${sidecarProblem}, and can't be made anew: ${rebuilt}` : rebuilt;
  }

  /** Returns in words why it can't be done. */
  async #rebuildSidecar(checked: CheckedStream, journals: Journals, isOnlyLost: boolean): Promise<Sidecar | string> {
    const { files, apply, nowMs } = this.#options;
    const journaled = knownOf(checked, journals);
    if (journaled === null)
      return "records of a stream of this name were set aside, and nobody can tell whether they are its own";
    const relatives = relativesOf({ relations: this.#relations, isOnlyLost }, checked, journaled);
    if (typeof relatives === "string") return relatives;
    const rebuilt = await rebuildSidecar(
      { files, syncs: apply, newId: newStreamId, nowMs },
      checked,
      journaled,
      relatives,
    );
    if (typeof rebuilt === "string") return rebuilt;
    const { state, claimed } = rebuilt.sidecar;
    const sidecar = journaled === undefined ? { ...rebuilt.sidecar, batch: journals.lastBatch } : rebuilt.sidecar;
    const extent = claimed ? "" : ` with ${state.tail} bytes`;
    return this.#putSidecar(
      checked,
      sidecar,
      encodeSidecar(sidecar),
      `${checked.sidecarProblem}: make it anew${extent}; ${rebuilt.unknown}`,
    );
  }

  async #putSidecar(checked: CheckedStream, sidecar: Sidecar, bytes: Buffer, what: string): Promise<Sidecar> {
    if (!this.#options.apply) this.#planned.set(checked.directory, sidecar);
    this.#knownBatch = Math.max(this.#knownBatch, sidecar.batch);
    await this.#step(sidecar.name, sidecarPath(checked.directory), what, () => this.#replaceSidecar(checked, bytes));
    return sidecar;
  }

  async #replaceSidecar({ directory, sidecarBytes }: CheckedStream, bytes: Buffer): Promise<void> {
    if (sidecarBytes !== null) await this.#quarantine.copy(sidecarPath(directory), sidecarBytes);
    await this.#quarantine.replaceSidecar(directory, bytes);
  }

  async #repairOwner(checked: CheckedStream, journaled: JournaledStream | undefined, survey: Survey): Promise<void> {
    const { directory, name, sidecar, accepted, findings } = checked;
    const isHome = name !== null && this.#options.layout.streamDirectory(name) === directory;
    if (!isHome)
      return this.#say(
        "left",
        name,
        directory,
        findings.find(({ file }) => file === directory)?.problem ?? "it is nobody's directory",
      );
    if (sidecar !== null && isStale(sidecar, journaled)) return void (await this.#setClaimAside(directory, sidecar));
    const problem = problemWithHolder(checked, journaled, survey);
    if (problem !== null) this.#say("left", name, sidecarPath(directory), problem);
    const path = lossesPath(directory);
    if (accepted === null)
      await this.#step(name, path, `set it aside: ${findings.find(({ file }) => file === path)?.problem}`, () =>
        this.#quarantine.move(path),
      );
  }

  async #setClaimAside(directory: string, sidecar: Sidecar): Promise<Sidecar> {
    await this.#step(sidecar.name, directory, "set it aside: it was taken for a stream that was never created", () =>
      this.#quarantine.move(directory),
    );
    return sidecar;
  }

  /** What a start of the server set aside, because the stream's files could not take it, has somewhere to go now. */
  async #applyKept(survey: Survey): Promise<void> {
    const kept = await surveyKept(this.#options);
    const behind = behindKept(kept, survey);
    if (behind.length === 0) return;
    const { files, layout, directoryId, log, apply } = this.#options;
    const short = new Map(shortStreams(kept).map((stream) => [stream.id, stream]));
    const ids = new Set(behind.map(({ identity }) => identity.id));
    if (apply)
      await applyKept(
        {
          files,
          layout,
          directoryId,
          log,
          quarantine: this.#quarantine,
          isSource: (id) => this.#relations.isSource(id),
        },
        kept,
        ids,
        survey.highestBatch,
      );
    for (const { identity, directory, pendingRecords } of behind) {
      if (pendingRecords > 0)
        this.#did(identity.name, directory, `apply ${pendingRecords} records that were set aside in ${layout.damaged}`);
      const lacking = short.get(identity.id);
      if (lacking !== undefined) this.#refused(lacking);
    }
  }

  async #repairJournal(survey: Survey): Promise<void> {
    const streams = [...survey.streams.values()];
    const pending = streams.filter(
      (stream) => !stream.deleted && (stream.pendingRecords > 0 || stream.isTold) && isApplicable(stream, survey),
    );
    const doomed = streams.filter(
      (stream) => stream.deleted && (ownSidecar(stream) !== null || survey.superseded.has(stream.identity.id)),
    );
    const short = [
      ...shortStreams(survey),
      ...(await unprovenStreams(survey, new StreamFactFinder(this.#options, survey), this.#streams())),
    ];
    if (pending.length + doomed.length + short.length + survey.damages.length === 0) return;
    const { files, layout, directoryId, log, apply } = this.#options;
    const decisions = { short, lastBatch: survey.highestBatch };
    const left = apply
      ? await replayJournal(
          {
            files,
            layout,
            directoryId,
            log,
            quarantine: this.#quarantine,
            isSource: (id) => this.#relations.isSource(id),
          },
          survey,
          decisions,
        )
      : [];
    const records = pending.reduce((sum, { pendingRecords }) => sum + pendingRecords, 0);
    if (pending.length + doomed.length > 0)
      this.#did(
        null,
        layout.journal,
        `apply ${records} records to ${pending.length} streams, and finish ${doomed.length} deletions`,
      );
    this.#tellDamages(survey);
    for (const stream of short) this.#refused(stream);
    for (const { name, directory, damage } of left)
      this.#say("left", name, directory, `its records in the journal are kept: ${damage?.problem}`);
  }

  #tellDamages({ damages, streams, lastBatch, highestBatch }: Survey): void {
    for (const damage of damages) {
      const { file, offset, suspects, others } = damage;
      const isHarmless = suspects.size === 0 && others === "nobody";
      const basis =
        lastBatch > 0 ? "" : `; the streams' own files hold all up to batch ${highestBatch}, and go on from there`;
      this.#did(null, file, `set it aside, damaged at byte ${offset}: ${describeDamage(damage, streams)}${basis}`);
      if (!isHarmless)
        this.#say(
          "left",
          null,
          file,
          `what was in it from byte ${offset} to the next sound record is lost, with streams that were created in it; those that have, or may have, lost their end are refused`,
        );
    }
  }

  async *#streams(): AsyncGenerator<CheckedStream> {
    for await (const directory of this.#directories()) yield this.#check(directory, 0, false);
  }

  async #repairSegments({ directory, name, sidecar: found, lost, lostIndexes }: CheckedStream): Promise<void> {
    if (found === null) return;
    const gone = lostIndexes.filter(({ state }) => state !== "unreadable");
    const sidecar = withoutIndexes(found, gone);
    if (gone.length > 0 && this.#options.apply)
      await this.#quarantine.replaceSidecar(directory, encodeSidecar(sidecar));
    for (const { start, path, state, problem } of lostIndexes) {
      const what = `do without it: reads of what is in the segment at ${start} may end within an append`;
      // What can't be read now is not lost.
      if (state === "unreadable") this.#say("left", name, path, problem);
      else
        await this.#step(name, path, what, () =>
          state === "missing" ? Promise.resolve() : this.#quarantine.move(path),
        );
    }
    for (const segment of lost) {
      const sharers = this.#relations.sharersOf(sidecar.id, segment.start, segment.start + segment.length);
      const shared = sharers.length === 0 ? "" : `, which its forks share: ${nameList(sharers)}`;
      const outlook = segment.state === "unreadable" ? "out of reach" : "lost until it is put back from a copy";
      this.#say("left", name, segment.path, `${outlook}: ${segment.problem}${shared}`);
      if (segment.state === "wrong")
        await this.#step(name, segment.path, "set it aside", () => this.#quarantine.move(segment.path));
    }
    const last = sidecar.segments.at(-1);
    // What can't be read now is not lost.
    const isLastLost = lost.some(({ start, state }) => start === last?.start && state !== "unreadable");
    if (!isLastLost || sidecar.state.closed) return;
    const what = `${this.#refusal(sidecar.id)}, and keep its sidecar: what is appended to a damaged segment could not be read again`;
    await this.#step(name, sidecarPath(directory), what, () =>
      this.#quarantine.refuse(directory, "its last segment is lost", {
        isSource: this.#relations.isSource(sidecar.id),
      }),
    );
    this.#planRefusal(directory, sidecar.name);
  }

  /** A stream is refused, or closed, from now on: whoever is to decide is told why. */
  #refused({ id, name, directory, reason, isLostWithAll }: ShortStream): void {
    this.#did(name, sidecarPath(directory), isLostWithAll ? REFUSE : `${this.#refusal(id)}, and keep its sidecar`);
    this.#planRefusal(directory, name);
    if (!this.#isAccepted(name)) this.#say("left", name, sidecarPath(directory), reason);
  }

  #planRefusal(directory: string, name: string): void {
    if (!this.#options.apply && this.#isAccepted(name)) this.#refusals.push({ directory, name });
  }

  #isAccepted(name: string | null): boolean {
    if (name === null) return false;
    const accepting = this.#accepting.filter(({ matches }) => matches(name));
    for (const { pattern } of accepting) this.#matched.add(pattern);
    return accepting.length > 0;
  }

  /** Streams that are refused, and of which somebody says that their loss is accepted. */
  async #acceptLosses(): Promise<void> {
    const { files, layout, nowMs } = this.#options;
    for (const { directory, name } of this.#refusals)
      this.#say("to do", name, sidecarPath(directory), "serve it again with what there is, as its loss is accepted");
    const { highestBatch: lastBatch } = await this.#survey();
    const isSource = (id: string): boolean => this.#relations.isSource(id);
    for await (const checked of this.#streams()) {
      const { directory } = checked;
      if (checked.refusal === null || !this.#isAccepted(checked.name)) continue;
      const acceptance = await acceptanceOf(
        { files, layout, quarantine: this.#quarantine, nowMs, lastBatch, isSource },
        checked,
      );
      if (typeof acceptance === "string")
        this.#say("left", checked.name, sidecarPath(directory), `its loss can't be accepted: ${acceptance}`);
      else {
        await this.#step(checked.name, sidecarPath(directory), acceptance.what, acceptance.run);
        await this.#repairSegments(await this.#check(directory, 0, true));
      }
    }
    for (const { pattern } of this.#accepting) {
      if (!this.#matched.has(pattern) && !pattern.includes("*"))
        this.#say("left", pattern, layout.streams, "it is not refused, or not there: there is no loss to accept");
    }
  }

  /** What {@link Quarantine.refuse} does. */
  #refusal(id: string): string {
    return this.#relations.isSource(id) ? "close the stream, which its forks need" : REFUSE;
  }

  async #repairForks(survey: Survey): Promise<void> {
    const { facts, relations } = await this.#gather(survey, false);
    const replace = (checked: CheckedStream, sidecar: Sidecar): Promise<void> =>
      this.#replaceSidecar(checked, encodeSidecar(sidecar));
    const mending = {
      layout: this.#options.layout,
      apply: this.#options.apply,
      planned: this.#planned,
      check: (directory: string) => this.#check(directory, 0, false),
      replace,
    };
    for await (const { finding, mend } of mendForks(mending, facts, relations)) {
      if (mend === null) this.#say("left", finding.stream, finding.file, finding.problem);
      else this.#did(finding.stream, finding.file, `${mend}: ${finding.problem}`);
    }
  }
}

/** What one look at all streams told. */
interface Gathered {
  readonly facts: StreamFactFinder;
  readonly relations: ForkRelations;
  /** Directories without a sound sidecar. */
  readonly lost: readonly string[];
}
