import { join } from "node:path";
import { crc32 } from "./crc32.js";
import { errorCode, isBusy, readFully, type Files } from "./files.js";
import { isSpare, journalSequenceOf, segmentPath, sidecarPath, type Layout } from "./layout.js";
import { behindKept } from "./journal-settlement.js";
import { surveyJournal, surveyKept, type BypassedPlace, type DamagedPlace, type JournaledStream, type Survey } from "./journal-survey.js";
import { checkStream, type CheckedStream, type Finding } from "./stream-check.js";

export type { Finding } from "./stream-check.js";

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

/** What a verification works with. */
export interface VerifyOptions {
  readonly files: Files;
  readonly layout: Layout;
  readonly directoryId: Buffer;
  readonly report: (finding: Finding) => void;
  readonly progress: (progress: VerifyProgress) => void;
}

/** Streams looked at together: reading one overlaps with the checksum of another. */
const CONCURRENCY = 8;
/** Streams that one finding names. */
const MAX_NAMED = 10;

/**
 * Reads everything in a directory that no server has open and compares it with its checksums: the journal, each sidecar,
 * each segment, each name. Changes nothing.
 */
export async function verifyDirectory(options: VerifyOptions): Promise<VerifySummary> {
  const verification = new Verification(options);
  return verification.run();
}

class Verification {
  readonly #options: VerifyOptions;
  /** Streams whose deletion the journal holds: their ids, and where they were. */
  readonly #deleted = new Set<string>();
  #streams = 0;
  #bytes = 0;
  #findings = 0;
  /** Directories to look at, and those done, with parts of those that are looked at. */
  #total = 0;
  #done = 0;

  constructor(options: VerifyOptions) {
    this.#options = options;
  }

  async run(): Promise<VerifySummary> {
    const { files, layout } = this.#options;
    const survey = await surveyJournal(this.#options);
    this.#bytes += survey.files.reduce((sum, { bytes }) => sum + bytes, 0);
    for (const finding of journalFindings(survey, layout)) this.#report(finding);
    for (const { identity, directory } of behindKept(await surveyKept(this.#options), survey)) {
      this.#report({ ...aboutFile(directory, `it lacks records that were set aside in ${layout.damaged}`), stream: identity.name });
    }
    for (const stream of survey.streams.values()) {
      if (stream.deleted) this.#deleted.add(stream.identity.id).add(stream.directory);
      else await this.#checkBypassed(stream);
    }
    const shards = await files.list(layout.streams);
    for (const shard of shards) this.#total += (await this.#entriesOf(shard)).length;
    const journaled = streamsByDirectory(survey);
    await this.#checkStreams(shards, journaled);
    for (const { identity, directory, createdHere } of journaled.values()) {
      if (!createdHere) this.#report({ ...aboutFile(directory, "it is missing"), stream: identity.name });
    }
    const notes = await notesOn(files, layout);
    return { streams: this.#streams, bytes: this.#bytes, journalFiles: survey.files.length, notes, findings: this.#findings };
  }

  #report(finding: Finding): void {
    this.#findings += 1;
    this.#options.report(finding);
  }

  async #entriesOf(shard: string): Promise<string[]> {
    const path = join(this.#options.layout.streams, shard);
    try {
      return (await this.#options.files.list(path)).map((entry) => join(path, entry));
    } catch (error) {
      if (errorCode(error) === "" || isBusy(error)) throw error;
      return [];
    }
  }

  /** Takes those out of `journaled` that have a directory. */
  async #checkStreams(shards: readonly string[], journaled: Map<string, JournaledStream>): Promise<void> {
    const rest = this.#directories(shards);
    const worker = async (): Promise<void> => {
      for await (const directory of rest) {
        const expected = journaled.get(directory);
        journaled.delete(directory);
        await this.#checkStream(directory, expected);
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  }

  async *#directories(shards: readonly string[]): AsyncGenerator<string> {
    for (const shard of shards) {
      if (!/^[0-9a-f]{2}$/.test(shard)) this.#report(aboutFile(join(this.#options.layout.streams, shard), "it is no directory of streams"));
      else yield* await this.#entriesOf(shard);
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
    const checked = await checkStream({ ...this.#options, trimmedTo: journaled?.trimmedTo ?? 0, readSegments: true, onBytes }, directory);
    // What is left of a stream whose deletion is in the journal is nobody's.
    const isLeftover = this.#deleted.has(checked.sidecar?.id ?? (checked.sidecarState === "missing" && journaled === undefined ? directory : ""));
    if (!isLeftover) this.#judge(checked, journaled);
    if (checked.sidecarBytes !== null) this.#streams += 1;
    onBytes(0, 1);
  }

  #judge(checked: CheckedStream, journaled: JournaledStream | undefined): void {
    for (const finding of checked.findings) this.#report(finding);
    const problem = problemWithOwner(checked, journaled);
    if (problem !== null) this.#report({ ...aboutFile(sidecarPath(checked.directory), problem), stream: checked.name });
  }

  #show(): void {
    this.#options.progress({ streams: this.#streams, bytes: this.#bytes, done: this.#total === 0 ? 1 : this.#done / this.#total });
  }

  /** What the journal only vouches for must be in its segment. */
  async #checkBypassed(stream: JournaledStream): Promise<void> {
    for (const place of stream.bypassed) {
      if (place.position < stream.trimmedTo) continue;
      this.#bytes += place.length;
      const path = segmentPath(stream.directory, place.segmentStart);
      if (await isThere(this.#options.files, path, place)) continue;
      const problem = `an append in it does not match its checksum: positions ${place.position} to ${place.position + place.length} of the stream`;
      this.#report({ stream: stream.identity.name, file: path, offset: place.position - place.segmentStart, problem });
    }
  }
}

function aboutFile(file: string, problem: string): Finding {
  return { stream: null, file, offset: null, problem };
}

async function isThere(files: Files, path: string, { position, segmentStart, length, crc }: BypassedPlace): Promise<boolean> {
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

/** The streams that exist in the end, by where they are. */
function streamsByDirectory({ streams }: Survey): Map<string, JournaledStream> {
  return new Map([...streams.values()].filter(({ deleted }) => !deleted).map((stream) => [stream.directory, stream]));
}

/** What is wrong between a directory and the stream that the journal says is there; `undefined` for one it does not speak of. */
export function problemWithOwner({ sidecar, sidecarState, starts }: CheckedStream, journaled: JournaledStream | undefined): string | null {
  if (sidecar === null) {
    // Files without a sidecar are those of a stream that only the journal knows; and then no file may be missed.
    const isExpected = journaled === undefined ? starts.length === 0 : journaled.createdHere && journaled.bypassed.length === 0;
    return sidecarState === "missing" && !isExpected ? "it is missing" : null;
  }
  const isTheirs = journaled?.identity.id === sidecar.id;
  // A crash leaves directories that were taken for streams which were never created.
  if (sidecar.claimed) return null;
  return journaled === undefined || isTheirs ? null : `it is that of another stream of this name than the journal's, ${journaled.identity.id}`;
}

function* journalFindings(survey: Survey, { journal }: Layout): Generator<Finding> {
  if (survey.lastBatch === 0 && survey.damages.length === 0) yield aboutFile(journal, "the journal is missing");
  for (const damage of survey.damages) yield { stream: null, file: damage.file, offset: damage.offset, problem: describeDamage(damage, survey) };
  for (const { identity, gap, deleted } of survey.streams.values()) {
    if (gap === null || deleted) continue;
    yield { stream: identity.name, file: gap.file, offset: gap.offset, problem: `it goes on at position ${gap.position}, but the stream ends at ${gap.tail}` };
  }
}

/** The damage in words, with the streams whose records it may hold. */
export function describeDamage({ problem, behind, suspects }: DamagedPlace, { streams }: Survey): string {
  const named = suspects.size > 0 ? `; it seems to hold records of ${namesOf(suspects, streams)}` : "";
  const later = behind.size > 0 ? `; records behind it are of ${namesOf(behind, streams)}` : "";
  return `${problem}${named}${later}`;
}

function namesOf(ids: ReadonlySet<string>, streams: Survey["streams"]): string {
  const names = [...ids].map((id) => JSON.stringify(streams.get(id)?.identity.name ?? id));
  const more = names.length - MAX_NAMED;
  return more > 0 ? `${names.slice(0, MAX_NAMED).join(", ")} and ${more} more` : names.join(", ");
}

const TOP_LEVEL = new Set(["streamdir.json", "streamdir.json.new", "lock", "journal", "streams", "trash", "damaged"]);

/** What is there and does no harm. */
async function notesOn(files: Files, layout: Layout): Promise<string[]> {
  const notes: string[] = [];
  for (const name of await files.list(layout.root)) {
    if (!TOP_LEVEL.has(name)) notes.push(`${join(layout.root, name)} is not streamdir's`);
  }
  for (const name of await files.list(layout.journal)) {
    if (journalSequenceOf(name) === null && !isSpare(name)) notes.push(`${join(layout.journal, name)} is no journal file`);
  }
  const kept = await files.list(layout.damaged);
  if (kept.length > 0) notes.push(`${layout.damaged} keeps what was set aside: ${kept.sort().join(", ")}`);
  return notes;
}
