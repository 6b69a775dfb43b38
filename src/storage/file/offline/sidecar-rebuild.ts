import { MutableState } from "../../state.js";
import type { Position, StreamConfig } from "../../storage.js";
import type { JournaledStream } from "../survey/journaled-stream.js";
import { isJsonFramed } from "./json-lines.js";
import { segmentPath } from "../format/layout.js";
import { crcOf } from "../segments/segment-reader.js";
import { newStreamId } from "../../stream-id.js";
import type { Relatives } from "./relatives.js";
import type { RepairOptions } from "./repair-steps.js";
import { claimedSidecar, type Sidecar, type StoredSegment } from "../format/sidecar.js";
import { attempt, type CheckedStream } from "../survey/stream-check.js";

/** A sidecar made anew, and in words what it could not know. */
export interface RebuiltSidecar {
  readonly sidecar: Sidecar;
  readonly unknown: string;
}

type Options = Pick<RepairOptions, "files" | "apply" | "nowMs">;

/**
 * Makes a sidecar from the stream's segments and from what the journal says of it; or says in words why that can't be
 * done. A stream of which not all is known is closed: then no retried append is stored twice, nothing follows an end
 * that readers were told of, and no position is given out again.
 */
export async function rebuildSidecar(
  options: Options,
  checked: CheckedStream,
  journaled: JournaledStream | undefined,
  relatives: Relatives,
): Promise<RebuiltSidecar | string> {
  const name = journaled?.identity.name ?? checked.name;
  if (name === null)
    return "its name can't be told from its directory: put its meta.json back from a copy, or remove the directory";
  // All that the stream ever was is in the journal: the directory only has to be its own.
  if (journaled?.createdHere === true)
    return { sidecar: claimedSidecar(journaled.identity), unknown: "nothing is lost: the journal has all of it" };
  const limit = journaled?.firstPosition ?? Infinity;
  const segments = await attempt(() => segmentsOf(options, checked, limit));
  if (typeof segments === "string") return segments;
  const extent = extentOf(segments, relatives);
  if (typeof extent === "string") return extent;
  const tooShort = (why: string): string => `its segments end at ${extent.tail}, but ${why}: put them back from a copy`;
  // What the journal goes on with comes after the segments.
  if (Math.max(extent.tail, journaled?.tail ?? 0) < relatives.lastPoint)
    return tooShort(`a fork of it begins at ${relatives.lastPoint}`);
  if (journaled === undefined) return guess(options, name, checked, extent, relatives);
  if (extent.tail < limit) return tooShort(`the journal says that it had ${limit} bytes`);
  return {
    sidecar: closedAt(journaled.identity, extent, relatives),
    unknown: `${unknownBefore(extent, relatives)}${UNKNOWN_STATE}`,
  };
}

/** Which positions a stream has, and the segments with its own. */
interface Extent {
  readonly earliest: Sidecar["earliest"];
  readonly tail: Position;
  readonly segments: readonly StoredSegment[];
}

/** A fork that shares bytes has its own after them. What came before any other first segment has been dropped. */
function extentOf(segments: readonly StoredSegment[], { forkedFrom, keepsInherited }: Relatives): Extent | string {
  const point = keepsInherited ? forkedFrom?.point : undefined;
  const start = segments[0]?.start ?? point ?? 0;
  if (point !== undefined && start !== point)
    return `its bytes from ${point} to ${start} are missing: put them back from a copy`;
  const earliest =
    keepsInherited && forkedFrom !== null ? forkedFrom.earliest : { position: start, segmentStart: start };
  const last = segments.at(-1);
  return { earliest, tail: last === undefined ? start : last.start + last.length, segments };
}

/** What can't be known of the stream's beginning, in words. */
function unknownBefore({ earliest: { position } }: Extent, { forkedFrom, keepsInherited }: Relatives): string {
  const shared = `whether it has dropped any of what it shares with ${JSON.stringify(forkedFrom?.name)} is not known`;
  if (keepsInherited) return `${shared}: it has all of it from ${position} on; `;
  return position === 0
    ? ""
    : `it begins at ${position}, and the offset that readers have for this place may be refused; `;
}

const UNKNOWN_STATE = "its producers, its Stream-Seq and whether it was closed are lost: it is closed";

async function guess(
  { files, nowMs }: Options,
  name: string,
  { directory }: CheckedStream,
  extent: Extent,
  relatives: Relatives,
): Promise<RebuiltSidecar> {
  const { forkedFrom, forks } = relatives;
  const paths = extent.segments.map(({ start, length }) => ({ path: segmentPath(directory, start), length }));
  const contentType = (await isJsonFramed(files, paths)) ? "application/json" : "application/octet-stream";
  const config: StreamConfig = { contentType, createdAtMs: nowMs, ttlSeconds: null, expiresAtMs: null, forkedFrom };
  const dropped =
    extent.earliest.position > 0 && forkedFrom === null ? "what was before is dropped, or lost if it was a fork; " : "";
  const deleted = forks === null ? "" : "if it was deleted and kept for its forks, delete it again; ";
  const last = "its last bytes may be those of an append that was never acknowledged";
  const rest = `its content type is taken to be ${contentType}, its lifetime is lost and without end; ${UNKNOWN_STATE}`;
  const unknown = `${unknownBefore(extent, relatives)}${dropped}${deleted}${last}; ${rest}`;
  return { sidecar: closedAt({ id: relatives.id ?? newStreamId(), name, config }, extent, relatives), unknown };
}

function closedAt(
  { id, name, config }: Pick<Sidecar, "id" | "name" | "config">,
  { earliest, tail, segments }: Extent,
  { forks }: Relatives,
): Sidecar {
  const state = new MutableState(tail);
  state.closed = true;
  state.touchedAtMs = config.createdAtMs;
  return { id, name, config, state, earliest, forks, softDeleted: false, segments, batch: 0, claimed: false };
}

/**
 * The segments that the files make up to `limit`. Only the last file may be longer than its segment: a crash may leave
 * a file that is no segment, and where two overlap nobody can tell which has the stream's bytes.
 */
async function segmentsOf(
  { files, apply, nowMs }: Options,
  { directory, starts }: CheckedStream,
  limit: Position,
): Promise<StoredSegment[] | string> {
  const segments: StoredSegment[] = [];
  const used = starts.filter((start) => start < limit);
  for (const [index, start] of used.entries()) {
    const file = await files.open(segmentPath(directory, start), apply ? "write" : "read");
    try {
      const size = await file.size();
      const next = used[index + 1];
      const end = next ?? Math.min(limit, start + size);
      if (next !== undefined && size > end - start)
        return `its files overlap from ${end} on, and nobody can tell which has its bytes: put it back from a copy`;
      if (size < end - start) return `its bytes from ${start + size} to ${end} are missing: put them back from a copy`;
      // What a sidecar vouches for must be on the disk, whoever wrote it.
      if (apply) await file.sync();
      const length = end - start;
      const crc = await crcOf(file, length);
      if (length > 0) segments.push({ start, length, crc, firstAtMs: nowMs, newestAtMs: nowMs, index: null });
    } finally {
      await file.close();
    }
  }
  return segments;
}
