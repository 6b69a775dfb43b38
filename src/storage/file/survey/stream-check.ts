import { basename, join } from "node:path";
import type { Position } from "../../storage.js";
import { errorCode, isBusy, readWhole, type Files } from "../disk/files.js";
import {
  indexPath,
  indexStartOf,
  coveredSidecarPath,
  lossesPath,
  segmentPath,
  segmentStartOf,
  sidecarPath,
  type Layout,
} from "../format/layout.js";
import type { DataDirectory } from "../directory/directory.js";
import { decodeLosses, type AcceptedLoss } from "./losses.js";
import { crcOf } from "../segments/segment-reader.js";
import { decodeSidecar, refusalIn, type StoredSegment, type Sidecar, type SidecarResult } from "../format/sidecar.js";

/** Something that is not as it should be. */
export interface Finding {
  /** The stream's name, `null` where it is not known or the finding is about no stream. */
  readonly stream: string | null;
  readonly file: string;
  /** The byte in the file, `null` where it is about the whole file. */
  readonly offset: number | null;
  readonly problem: string;
}

/** What is wrong with a file of a stream. */
interface Fault {
  /** Whether it is there, and can be read. */
  readonly state: "missing" | "wrong" | "unreadable";
  readonly problem: string;
  /** Where it ends too early, `null` where that is not what is wrong. */
  readonly offset: number | null;
}

/** The index of a segment that is not what the sidecar says. */
export interface LostIndex extends Fault {
  readonly start: Position;
  readonly path: string;
}

/** A segment that is not what its sidecar says. */
export interface LostSegment extends StoredSegment, Fault {
  readonly path: string;
}

/** What the directory of a stream turned out to be. */
export interface CheckedStream {
  readonly directory: string;
  /** As its sidecar or the directory itself tells it; `null` when neither does. */
  readonly name: string | null;
  /** `null` when it is missing or damaged. */
  readonly sidecar: Sidecar | null;
  /** What is wrong with the sidecar, `null` when nothing is. */
  readonly sidecarProblem: string | null;
  readonly sidecarState: "sound" | "missing" | "damaged" | "final" | "unreadable";
  /** The sidecar's bytes, `null` when there are none to be had. */
  readonly sidecarBytes: Buffer | null;
  /** Why a repair refused the stream, `null` when none did. */
  readonly refusal: string | null;
  /** The losses of its end that were accepted; `null` when what keeps them is damaged. */
  readonly accepted: readonly AcceptedLoss[] | null;
  /** The starts of the segment files that are there, in order. */
  readonly starts: readonly Position[];
  readonly lost: readonly LostSegment[];
  /** Segments whose index is not what the sidecar says: their bytes are sound all the same. */
  readonly lostIndexes: readonly LostIndex[];
  /** All of that, and what else there is, in words; nothing about a sidecar that is missing. */
  readonly findings: readonly Finding[];
}

/** How far a check goes. */
interface CheckScope {
  /** Segments that end at or before it may be gone: the journal has a trim. */
  readonly trimmedTo: Position;
  /** Whether segments are compared with their checksums. */
  readonly readSegments: boolean;
  /** Bytes that were read, and how much of the stream is done, from 0 to 1. */
  readonly onBytes: (bytes: number, done: number) => void;
}

/** Compares one stream's directory with its sidecar: every name, position and checksum. Changes nothing. */
export async function checkStream(
  { files, layout }: Pick<DataDirectory, "files" | "layout">,
  directory: string,
  scope: Partial<CheckScope> = {},
): Promise<CheckedStream> {
  const { trimmedTo = 0, readSegments = false, onBytes = () => undefined } = scope;
  const path = sidecarPath(directory);
  const found = await attempt(() => readWhole(files, path));
  const listed = await attempt(() => files.list(directory));
  const read = typeof found === "string" || found === null ? null : decodeSidecar(found);
  const sidecar = read?.kind === "sound" ? read.sidecar : null;
  const isNotice = read?.kind === "damaged" && read.isNotice;
  const before = isNotice ? await attempt(() => readWhole(files, coveredSidecarPath(directory))) : found;
  const bytes = typeof before === "string" ? null : before;
  const name = sidecar?.name ?? nameFrom(layout, directory, bytes);
  const findings: Finding[] = [];
  const tell = (file: string, problem: string, offset: number | null = null): void =>
    void findings.push({ stream: name, file, offset, problem });
  // Without its sidecar and its files nobody knows anything of a stream.
  const isUnreadable = typeof found === "string" || (sidecar === null && typeof listed === "string");
  const sidecarState = isUnreadable ? "unreadable" : stateOf(read, bytes);
  const sidecarProblem =
    typeof found === "string" ? found : read === null ? "it is missing" : read.kind === "damaged" ? read.problem : null;
  if (sidecarProblem !== null && found !== null) tell(path, sidecarProblem);
  if (typeof listed === "string") tell(directory, listed);
  const names = typeof listed === "string" ? [] : listed;
  const starts = names
    .map(segmentStartOf)
    .filter((start) => start !== null)
    .sort((left, right) => left - right);
  const lost: LostSegment[] = [];
  const lostIndexes: LostIndex[] = [];
  if (sidecar !== null) {
    const home = layout.streamDirectory(sidecar.name);
    if (home !== directory) await checkHome(files, home, directory, tell);
    checkPositions(sidecar, path, tell);
    onBytes(bytes?.length ?? 0, 0);
    if (readSegments) {
      lost.push(...(await lostSegments(files, sidecar, directory, { trimmedTo, onBytes })));
      lostIndexes.push(...(await lostIndexesOf(files, sidecar, directory, { trimmedTo, onBytes })));
    }
    for (const fault of [...lost, ...lostIndexes]) tell(fault.path, fault.problem, fault.offset);
  }
  for (const stray of names.filter((file) => !isOurs(file))) tell(join(directory, stray), "it is no file of a stream");
  const accepted = names.includes(basename(lossesPath(directory)))
    ? await acceptedLosses(files, directory, sidecar, tell)
    : [];
  const refusal = typeof found === "string" || found === null ? null : refusalIn(found);
  const ofSidecar = { sidecar, sidecarProblem, sidecarState, sidecarBytes: bytes, refusal };
  return { directory, name, ...ofSidecar, accepted, starts, lost, lostIndexes, findings };
}

function stateOf(read: SidecarResult | null, bytes: Buffer | null): CheckedStream["sidecarState"] {
  if (read === null) return "missing";
  if (read.kind === "sound") return "sound";
  return isFinal(read, bytes) ? "final" : "damaged";
}

async function acceptedLosses(
  files: Files,
  directory: string,
  sidecar: Sidecar | null,
  tell: Tell,
): Promise<readonly AcceptedLoss[] | null> {
  const path = lossesPath(directory);
  const read = await attempt(() => readWhole(files, path));
  const losses = typeof read === "string" ? read : decodeLosses(read ?? Buffer.alloc(0));
  const problem =
    typeof losses === "string"
      ? losses
      : sidecar !== null && losses.id !== sidecar.id
        ? `it is of another stream of this name, ${losses.id}`
        : null;
  if (problem !== null) tell(path, problem);
  return problem !== null || typeof losses === "string" ? null : losses.accepted;
}

type Tell = (file: string, problem: string, offset?: number | null) => void;

/** What a read gave, or why it gave nothing: a file that can't be read is a finding, not the end of the work. */
export async function attempt<T>(read: () => Promise<T>): Promise<T | string> {
  try {
    return await read();
  } catch (error) {
    if (errorCode(error) === "" || isBusy(error)) throw error;
    return errorCode(error) === "ENOTDIR" ? "it is no directory" : `it can't be read: ${errorCode(error)}`;
  }
}

/** Nothing may be built in its place: it is meant so, or the stream lost records after a sound sidecar. */
function isFinal(read: Extract<SidecarResult, { kind: "damaged" }>, before: Buffer | null): boolean {
  return read.isFinal || (read.isNotice && before !== null && decodeSidecar(before).kind === "sound");
}

function isOurs(file: string): boolean {
  return (
    /^(meta\.json(\.damaged)?|losses\.json)(\.new)?$/.test(file) ||
    segmentStartOf(file) !== null ||
    indexStartOf(file) !== null
  );
}

/** The name that a damaged sidecar gives counts when its directory agrees. */
function nameFrom(layout: Layout, directory: string, bytes: Buffer | null): string | null {
  const own = layout.nameOf(directory);
  if (own !== null || bytes === null) return own;
  const written = /^"name": (".*"),$/m.exec(bytes.toString("utf8"))?.[1];
  const name = written === undefined ? null : parsedText(written);
  return name !== null && layout.streamDirectory(name) === directory ? name : null;
}

function parsedText(json: string): string | null {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "string" ? value : null;
  } catch {
    // Damage may be anywhere in it.
    return null;
  }
}

async function checkHome(files: Files, home: string, directory: string, tell: Tell): Promise<void> {
  const other = await attempt(() => readWhole(files, sidecarPath(home)));
  tell(directory, `the directory is not the one for this name${other === null ? "" : `, which ${home} claims too`}`);
}

/**
 * Segments follow each other without a gap or an overlap up to the stream's tail, from its earliest byte on; in a fork,
 * from its point on, if that is later. Those that end before are about to go.
 */
function checkPositions({ config, segments, state, earliest, claimed }: Sidecar, path: string, tell: Tell): void {
  if (claimed) return;
  let end = Math.max(earliest.position, config.forkedFrom?.point ?? 0);
  for (const segment of segments.filter(({ start, length }) => start + length > earliest.position)) {
    if (segment.start !== end) tell(path, `a segment begins at ${segment.start}, what comes before it ends at ${end}`);
    end = segment.start + segment.length;
  }
  if (end !== state.tail) tell(path, `the segments end at ${end}, the stream at ${state.tail}`);
}

/** Compares a stream's segments with their checksums. */
export async function lostSegments(
  files: Files,
  sidecar: Sidecar,
  directory: string,
  { trimmedTo, onBytes }: Omit<CheckScope, "readSegments"> = { trimmedTo: 0, onBytes: () => undefined },
): Promise<LostSegment[]> {
  const lost: LostSegment[] = [];
  const total = sidecar.segments.reduce((sum, { length }) => sum + length, 1);
  let done = 0;
  const onStep = (bytes: number): void => onBytes(bytes, (done += bytes) / total);
  for (const segment of sidecar.segments) {
    const path = segmentPath(directory, segment.start);
    if (segment.start + segment.length <= Math.max(trimmedTo, sidecar.earliest.position)) continue;
    const fault = await faultOf(files, path, segment, onStep);
    if (fault === null) continue;
    const positions = `positions ${segment.start} to ${segment.start + segment.length} of the stream`;
    lost.push({ ...segment, ...fault, path, problem: `${fault.problem}: ${positions}` });
  }
  return lost;
}

/** Compares the indexes that are in files with their checksums; returns those that are lost. */
async function lostIndexesOf(
  files: Files,
  { segments, earliest }: Sidecar,
  directory: string,
  { trimmedTo, onBytes }: Omit<CheckScope, "readSegments">,
): Promise<LostIndex[]> {
  const lost: LostIndex[] = [];
  for (const { start, length, index } of segments) {
    if (index === null || index === "one" || index.inline !== null) continue;
    if (start + length <= Math.max(trimmedTo, earliest.position)) continue;
    const path = indexPath(directory, start);
    const fault = await faultOf(files, path, index, (bytes) => onBytes(bytes, 1));
    if (fault === null) continue;
    const outcome = fault.state === "unreadable" ? "can't be told" : "is lost, the bytes are not";
    const appends = `where the appends from ${start} to ${start + length} ended ${outcome}`;
    lost.push({ ...fault, start, path, problem: `${fault.problem}: ${appends}` });
  }
  return lost;
}

/** What is wrong with a segment or an index, `null` when nothing is. */
async function faultOf(
  files: Files,
  path: string,
  expected: Pick<StoredSegment, "length" | "crc">,
  onStep: (bytes: number) => void,
): Promise<Fault | null> {
  const fault = await attempt(() => compare(files, path, expected, onStep));
  return typeof fault === "string" ? { problem: fault, offset: null, state: "unreadable" } : fault;
}

async function compare(
  files: Files,
  path: string,
  { length, crc }: Pick<StoredSegment, "length" | "crc">,
  onStep: (bytes: number) => void,
): Promise<Fault | null> {
  try {
    const file = await files.open(path, "read");
    try {
      const size = await file.size();
      if (size < length) return { problem: `it has ${size} bytes of ${length}`, offset: size, state: "wrong" };
      if ((await crcOf(file, length, onStep)) === crc) return null;
      return { problem: `its first ${length} bytes do not match their checksum`, offset: null, state: "wrong" };
    } finally {
      await file.close();
    }
  } catch (error) {
    if (errorCode(error) === "ENOENT") return { problem: "it is missing", offset: null, state: "missing" };
    throw error;
  }
}
