import { MutableState } from "../state.js";
import type { Position, StreamConfig } from "../storage.js";
import type { Files } from "./files.js";
import type { JournaledStream } from "./journal-survey.js";
import { isJsonFramed } from "./json-lines.js";
import { segmentPath } from "./layout.js";
import { crcOf } from "./segment-reader.js";
import type { Sidecar, SegmentEntry } from "./sidecar.js";
import { attempt, type CheckedStream } from "./stream-check.js";

/** A sidecar made anew, and in words what it could not know. */
export interface RebuiltSidecar {
  readonly sidecar: Sidecar;
  readonly unknown: string;
}

/** What a rebuilding works with. */
export interface RebuildOptions {
  readonly files: Files;
  /** Whether the segments are synced: what a sidecar vouches for must be on the disk, whoever wrote it. */
  readonly syncs: boolean;
  /** The incarnation of a stream that nothing else names. */
  readonly newId: () => string;
  readonly nowMs: number;
}

/**
 * Makes a sidecar from the stream's segments and from what the journal says of it; or says in words why that can't be
 * done. A stream of which not all is known is closed: then no retried append is stored twice, nothing follows an end
 * that readers were told of, and no position is given out again.
 */
export async function rebuildSidecar(options: RebuildOptions, checked: CheckedStream, journaled: JournaledStream | undefined): Promise<RebuiltSidecar | string> {
  const name = journaled?.identity.name ?? checked.name;
  if (name === null) return "its name can't be told from its directory: put its meta.json back from a copy, or remove the directory";
  if (journaled?.createdHere === true) return claimed(journaled);
  const limit = journaled?.firstPosition ?? Infinity;
  const segments = await attempt(() => segmentsOf(options, checked, limit));
  if (typeof segments === "string") return segments;
  const tail = endOf(segments);
  if (journaled !== undefined) {
    if (tail < limit) return `its segments end at ${tail}, but the journal says that it had ${limit} bytes: put them back from a copy`;
    return { sidecar: closedAt(journaled.identity, segments, tail), unknown: UNKNOWN_STATE };
  }
  return guess(options, name, checked.directory, segments);
}

const ORIGIN = { position: 0, segmentStart: 0 };
const NO_FORKS = { forks: null, softDeleted: false };
const UNKNOWN_STATE = "its producers, its Stream-Seq and whether it was closed are lost: it is closed";

/** All that the stream ever was is in the journal: the directory only has to be its own. */
function claimed({ identity }: JournaledStream): RebuiltSidecar {
  return { sidecar: { ...identity, state: new MutableState(), earliest: ORIGIN, ...NO_FORKS, segments: [], batch: 0, claimed: true }, unknown: "nothing is lost: the journal has all of it" };
}

async function guess({ files, newId, nowMs }: RebuildOptions, name: string, directory: string, segments: readonly SegmentEntry[]): Promise<RebuiltSidecar> {
  const paths = segments.map(({ start, length }) => ({ path: segmentPath(directory, start), length }));
  const isJson = await isJsonFramed(files, paths);
  const config: StreamConfig = { contentType: isJson ? "application/json" : "application/octet-stream", createdAtMs: nowMs, ttlSeconds: null, expiresAtMs: null, forkedFrom: null };
  const unknown = `its last bytes may be those of an append that was never acknowledged; its content type is taken to be ${config.contentType}, its lifetime is lost and without end; ${UNKNOWN_STATE}`;
  return { sidecar: closedAt({ id: newId(), name, config }, segments, endOf(segments)), unknown };
}

function closedAt(identity: Pick<Sidecar, "id" | "name" | "config">, segments: readonly SegmentEntry[], tail: Position): Sidecar {
  const state = new MutableState();
  state.tail = tail;
  state.closed = true;
  state.touchedAtMs = identity.config.createdAtMs;
  return { id: identity.id, name: identity.name, config: identity.config, state, earliest: earliestOf(segments), ...NO_FORKS, segments, batch: 0, claimed: false };
}

/** What comes before the first segment has been dropped, if there ever was anything. */
function earliestOf(segments: readonly SegmentEntry[]): Sidecar["earliest"] {
  const start = segments[0]?.start ?? 0;
  return { position: start, segmentStart: start };
}

function endOf(segments: readonly SegmentEntry[]): Position {
  const last = segments.at(-1);
  return last === undefined ? 0 : last.start + last.length;
}

/**
 * The segments that the files make up to `limit`. Only the last file may be longer than its segment: a crash may leave a
 * file that is no segment, and where two overlap nobody can tell which has the stream's bytes.
 */
async function segmentsOf({ files, syncs, nowMs }: RebuildOptions, { directory, starts }: CheckedStream, limit: Position): Promise<SegmentEntry[] | string> {
  const segments: SegmentEntry[] = [];
  const used = starts.filter((start) => start < limit);
  for (const [index, start] of used.entries()) {
    const file = await files.open(segmentPath(directory, start), syncs ? "write" : "read");
    try {
      const size = await file.size();
      const next = used[index + 1];
      const end = next ?? Math.min(limit, start + size);
      if (next !== undefined && size > end - start) return `its files overlap from ${end} on, and nobody can tell which has its bytes: put it back from a copy`;
      if (size < end - start) return `its bytes from ${start + size} to ${end} are missing: put them back from a copy`;
      if (syncs) await file.sync();
      if (end > start) segments.push({ start, length: end - start, crc: await crcOf(file, end - start), firstAtMs: nowMs, newestAtMs: nowMs });
    } finally {
      await file.close();
    }
  }
  return segments;
}
