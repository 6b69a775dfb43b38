import { dirname, join } from "node:path";
import type { Position } from "../../storage.js";
import { crc32 } from "../format/crc32.js";
import { errorCode, isBusy, readFully, type Files } from "../disk/files.js";
import {
  isFormerFiles,
  isOwnName,
  isPutAside,
  isShardName,
  journalSequenceOf,
  keptSequenceOf,
  type Layout,
  segmentPath,
  sidecarPath,
} from "../format/layout.js";
import { behindKept } from "./journal-replay.js";
import { keptSidecar } from "./loss-acceptance.js";
import type { OfflineDirectory } from "./offline.js";
import { newerThanJournal } from "../directory/catalog.js";
import { Quarantine } from "../directory/quarantine.js";
import { describeDamage } from "../survey/damaged-place.js";
import { surveyJournal, surveyKept, type Survey } from "../survey/journal-survey.js";
import type { BypassedPlace, JournaledStream } from "../survey/journaled-stream.js";
import { describeLoss } from "../survey/losses.js";
import { ForkRelations } from "../survey/fork-relations.js";
import { nameList } from "../survey/name-list.js";
import { attempt, checkStream, type CheckedStream, type Finding } from "../survey/stream-check.js";
import { idsOf, StreamFactFinder, type StreamFacts } from "../survey/stream-facts.js";

export type { Finding } from "../survey/stream-check.js";

/** How far a verification is. */
export interface VerifyProgress {
  readonly streams: number;
  readonly bytes: number;
  /** The part that is done, from 0 to 1. */
  readonly done: number;
}

/** What was looked at. */
export interface VerifySummary {
  readonly streams: number;
  readonly bytes: number;
  readonly journalFiles: number;
  /** What is in the directory and is neither wrong nor streamdir's. */
  readonly notes: readonly string[];
  readonly findings: number;
}

/** A directory to be verified, and who hears of it. */
export interface VerifyOptions extends OfflineDirectory {
  readonly report: (finding: Finding) => void;
  readonly progress: (progress: VerifyProgress) => void;
}

/** Streams looked at together: reading one overlaps with the checksum of another. */
const CONCURRENCY = 8;

/**
 * Reads everything in a directory that no server has open and compares it with its checksums: the journal, each
 * sidecar, each segment, each name, and both sides of each fork. Changes nothing. What it finds is reported at the end:
 * where somebody has opened the directory meanwhile, that throws a DirectoryError, and nothing is said of damage.
 */
export async function verifyDirectory(options: VerifyOptions): Promise<VerifySummary> {
  const found: Finding[] = [];
  const report = (finding: Finding): void => void found.push(finding);
  let summary: VerifySummary;
  try {
    const survey = await surveyJournal(options);
    summary = await new Verification({ ...options, report }, survey).run(survey);
  } finally {
    await options.assertUntouched();
  }
  for (const finding of found) options.report(finding);
  return summary;
}

/** Accepted losses that are told one by one. */
const MAX_GIVEN_UP = 100;
/** Shortened streams that are told: a sample says enough. */
const MAX_SHORTENED = 100;

/** A finding about bytes that forks may share. */
interface SharedLoss {
  readonly finding: Finding;
  readonly id: string;
  readonly from: Position;
  readonly to: Position;
}

class Verification {
  readonly #options: VerifyOptions;
  readonly #facts: StreamFactFinder;
  readonly #relations: ForkRelations;
  /** Lost segments of streams with forks, whose names are known at the end. */
  readonly #shared: SharedLoss[] = [];
  readonly #lastBatch: number;
  /** What was given up of streams, in words, as far as there is room to say it. */
  readonly #givenUp: string[] = [];
  #givenUpCount = 0;
  /** Streams that end before they did when a repair set their sidecars aside, in words. */
  readonly #shortened: string[] = [];
  #streams = 0;
  #bytes = 0;
  #findings = 0;
  /** Directories to look at, and those done, with parts of those that are looked at. */
  #total = 0;
  #done = 0;

  constructor(options: VerifyOptions, survey: Survey) {
    this.#options = options;
    this.#facts = new StreamFactFinder(options, survey);
    this.#relations = new ForkRelations(options.layout);
    this.#lastBatch = survey.highestBatch;
  }

  async run(survey: Survey): Promise<VerifySummary> {
    const { files, layout } = this.#options;
    this.#bytes += survey.files.reduce((sum, { bytes }) => sum + bytes, 0);
    for (const finding of journalFindings(survey, layout)) this.#report(finding);
    for (const { identity, directory } of behindKept(await surveyKept(this.#options), survey)) {
      const problem = `it lacks records that were set aside in ${layout.damaged}`;
      this.#report(aboutFile(directory, problem, identity.name));
    }
    for (const stream of survey.streams.values()) if (!stream.deleted) await this.#checkBypassed(stream);
    for (const facts of this.#facts.unwritten()) this.#relations.note(facts);
    const shards = await files.list(layout.streams);
    for (const shard of shards) {
      const entries = await this.#entriesOf(shard);
      this.#total += typeof entries === "string" ? 0 : entries.length;
    }
    const journaled = new Map(this.#facts.present);
    // They may have no files yet.
    for (const { createdHere } of journaled.values()) if (createdHere) this.#streams += 1;
    await this.#checkStreams(shards, journaled);
    for (const { identity, directory, createdHere } of journaled.values()) {
      if (createdHere) continue;
      this.#relations.noteUnsound([identity.id]);
      // The damaged place in the journal tells of it.
      if (survey.damages.some(({ suspects }) => suspects.has(identity.id))) continue;
      this.#report(aboutFile(directory, "it is missing", identity.name));
    }
    await this.#checkForks();
    const notes = [...(await notesOn(files, layout)), ...this.#givenUp, ...this.#shortened];
    if (this.#givenUpCount > this.#givenUp.length)
      notes.push(`${this.#givenUpCount - this.#givenUp.length} more losses were accepted`);
    const { length: journalFiles } = survey.files;
    return { streams: this.#streams, bytes: this.#bytes, journalFiles, notes, findings: this.#findings };
  }

  #report(finding: Finding): void {
    this.#findings += 1;
    this.#options.report(finding);
  }

  /** The directories in a shard, or why it can't be read. */
  async #entriesOf(shard: string): Promise<string[] | string> {
    const path = join(this.#options.layout.streams, shard);
    const entries = await attempt(() => this.#options.files.list(path));
    return typeof entries === "string" ? entries : entries.map((entry) => join(path, entry));
  }

  /** Takes those out of `journaled` that have a directory. */
  async #checkStreams(shards: readonly string[], journaled: Map<string, JournaledStream>): Promise<void> {
    const rest = this.#directories(shards, journaled);
    const worker = async (): Promise<void> => {
      for await (const directory of rest) {
        const expected = journaled.get(directory);
        journaled.delete(directory);
        await this.#checkStream(directory, expected);
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  }

  async *#directories(shards: readonly string[], journaled: Map<string, JournaledStream>): AsyncGenerator<string> {
    for (const shard of shards) {
      const path = join(this.#options.layout.streams, shard);
      const isShard = isShardName(shard);
      const entries = isShard ? await this.#entriesOf(shard) : "it is no directory of streams";
      if (typeof entries !== "string") {
        yield* entries;
        continue;
      }
      this.#report(aboutFile(path, entries));
      // Which streams are in it, nobody knows.
      if (isShard) this.#relations.noteUnsound([]);
      for (const directory of journaled.keys()) if (dirname(directory) === path) journaled.delete(directory);
    }
  }

  async #checkStream(directory: string, journaled: JournaledStream | undefined): Promise<void> {
    let part = 0;
    const onBytes = (bytes: number, done: number): void => {
      this.#bytes += bytes;
      this.#done += done - part;
      part = done;
      this.#show();
    };
    const scope = { trimmedTo: journaled?.trimmedTo ?? 0, readSegments: true, onBytes };
    const checked = await checkStream(this.#options, directory, scope);
    // What is left of a stream whose deletion is in the journal is nobody's.
    const isLeftover =
      checked.sidecar === null ? this.#facts.isVacated(directory) : this.#facts.deleted.has(checked.sidecar.id);
    const facts = this.#facts.factsIn(directory, checked.sidecar);
    if (facts !== null) this.#relations.note(facts);
    if (!isLeftover) await this.#judge(checked, journaled, facts);
    const isTheirs = checked.sidecarBytes !== null && checked.sidecar?.claimed !== true && !isLeftover;
    if (isTheirs && journaled?.createdHere !== true) this.#streams += 1;
    onBytes(0, 1);
  }

  async #judge(
    checked: CheckedStream,
    journaled: JournaledStream | undefined,
    facts: StreamFacts | null,
  ): Promise<void> {
    for (const finding of checked.findings) {
      const segment = checked.lost.find(({ path }) => path === finding.file);
      if (segment === undefined || facts === null || facts.forks.size === 0) this.#report(finding);
      else this.#shared.push({ finding, id: facts.id, from: segment.start, to: segment.start + segment.length });
    }
    this.#noteAccepted(checked);
    await this.#noteShortened(checked);
    const { sidecar } = checked;
    // Without any batch the journal itself is the finding.
    const path = sidecarPath(checked.directory);
    if (sidecar !== null && sidecar.batch > this.#lastBatch && this.#lastBatch > 0)
      this.#report(aboutFile(path, newerThanJournal(sidecar.batch, this.#lastBatch), checked.name));
    const problem = problemWithOwner(checked, journaled);
    if (problem !== null) this.#report(aboutFile(path, problem, checked.name));
    const isUnsound = checked.sidecarProblem !== null && checked.sidecarState !== "missing";
    if (facts === null && (problem !== null || isUnsound))
      this.#relations.noteUnsound(await idsOf(this.#options, checked, journaled));
  }

  #noteAccepted({ name, accepted }: CheckedStream): void {
    for (const loss of accepted ?? []) {
      this.#givenUpCount += 1;
      if (this.#givenUp.length < MAX_GIVEN_UP)
        this.#givenUp.push(`stream ${JSON.stringify(name)}: ${describeLoss(loss)}`);
    }
  }

  /** A copy of the stream that was put here looks sound, also where it lacks what only its own journal had. */
  async #noteShortened({ directory, sidecar, accepted }: CheckedStream): Promise<void> {
    if (sidecar === null || accepted?.length !== 0 || this.#shortened.length >= MAX_SHORTENED) return;
    const kept = await keptSidecar({ quarantine: new Quarantine(this.#options), options: this.#options }, directory);
    if (kept === null || kept.id !== sidecar.id || kept.state.tail <= sidecar.state.tail) return;
    const ends = `it ends at position ${sidecar.state.tail}, and ended at ${kept.state.tail} before a repair`;
    const hint = "a copy lacks what only the journal beside it has";
    this.#shortened.push(`stream ${JSON.stringify(sidecar.name)}: ${ends}: ${hint}`);
  }

  async #checkForks(): Promise<void> {
    for (const { finding, id, from, to } of this.#shared) {
      const sharers = this.#relations.sharersOf(id, from, to);
      const shared = sharers.length === 0 ? "" : `, which its forks share: ${nameList(sharers)}`;
      this.#report({ ...finding, problem: `${finding.problem}${shared}` });
    }
    for await (const { finding } of this.#relations.problems((name) => this.#facts.find(name))) this.#report(finding);
  }

  #show(): void {
    const done = this.#total === 0 ? 1 : this.#done / this.#total;
    this.#options.progress({ streams: this.#streams, bytes: this.#bytes, done });
  }

  /** What the journal only vouches for must be in its segment. */
  async #checkBypassed(stream: JournaledStream): Promise<void> {
    for (const place of stream.bypassed) {
      if (place.position < stream.trimmedTo) continue;
      this.#bytes += place.length;
      const path = segmentPath(stream.directory, place.segmentStart);
      if (await isThere(this.#options.files, path, place)) continue;
      const positions = `positions ${place.position} to ${place.position + place.length} of the stream`;
      const problem = `an append in it does not match its checksum: ${positions}`;
      this.#report({ stream: stream.identity.name, file: path, offset: place.position - place.segmentStart, problem });
    }
  }
}

function aboutFile(file: string, problem: string, stream: string | null = null): Finding {
  return { stream, file, offset: null, problem };
}

async function isThere(
  files: Files,
  path: string,
  { position, segmentStart, length, crc }: BypassedPlace,
): Promise<boolean> {
  try {
    const file = await files.open(path, "read");
    try {
      const bytes = await readFully(file, position - segmentStart, length);
      return bytes.length === length && crc32(bytes) === crc;
    } finally {
      await file.close();
    }
  } catch (error) {
    if (errorCode(error) === "" || isBusy(error)) throw error;
    return false;
  }
}

/** What is wrong between a directory and its stream in the journal; `undefined` for a stream not in it. */
export function problemWithOwner(
  { sidecar, sidecarState, starts }: CheckedStream,
  journaled: JournaledStream | undefined,
): string | null {
  if (sidecar === null) {
    // Files without a sidecar are those of a stream that only the journal knows; and then no file may be missed.
    const isExpected =
      journaled === undefined ? starts.length === 0 : journaled.createdHere && journaled.bypassed.length === 0;
    return sidecarState === "missing" && !isExpected ? "it is missing" : null;
  }
  const isTheirs = journaled?.identity.id === sidecar.id;
  // A crash leaves directories that were taken for streams which were never created.
  if (sidecar.claimed) return null;
  return journaled === undefined || isTheirs
    ? null
    : `it is that of another stream of this name than the journal's, ${journaled.identity.id}`;
}

function* journalFindings(survey: Survey, { journal }: Layout): Generator<Finding> {
  if (survey.lastBatch === 0 && survey.damages.length === 0) yield aboutFile(journal, "the journal is missing");
  for (const damage of survey.damages)
    yield { stream: null, file: damage.file, offset: damage.offset, problem: describeDamage(damage, survey.streams) };
  for (const { identity, gap, deleted } of survey.streams.values()) {
    if (gap === null || deleted) continue;
    const problem = `it goes on at position ${gap.position}, but the stream ends at ${gap.tail}`;
    yield { stream: identity.name, file: gap.file, offset: gap.offset, problem };
  }
}

/** What is there and does no harm. */
async function notesOn(files: Files, layout: Layout): Promise<string[]> {
  const notes: string[] = [];
  for (const name of await files.list(layout.root)) {
    if (isFormerFiles(name)) notes.push(`${join(layout.root, name)} keeps what an upgrade changed, as it was`);
    else if (!isOwnName(name)) notes.push(`${join(layout.root, name)} is not streamdir's`);
  }
  for (const name of await files.list(layout.journal)) {
    if (journalSequenceOf(name) === null && keptSequenceOf(name) === null && !isPutAside(name))
      notes.push(`${join(layout.journal, name)} is no journal file`);
  }
  const kept = await files.list(layout.damaged);
  if (kept.length > 0) notes.push(`${layout.damaged} keeps what was set aside: ${kept.sort().join(", ")}`);
  return notes;
}
