import { byteChanges } from "../survey/crc-changes.js";
import { crc32 } from "../format/crc32.js";
import { decodeSidecar, type Sidecar } from "../format/sidecar.js";
import type { LostIndex } from "../survey/stream-check.js";

/** A sidecar that was put right, and what it was before. */
export interface MendedSidecar {
  readonly bytes: Buffer;
  readonly sidecar: Sidecar;
  /** The byte that was wrong. */
  readonly offset: number;
}

/** `"crc32": "xxxxxxxx"`, a line feed, a brace and another line feed. */
const TRAILER_BYTES = 22;

/**
 * Puts a sidecar right in which one byte is wrong: a CRC-32 tells which byte it was and what it should be. `null` when
 * no change of one byte, or more than one, makes a whole sidecar.
 */
export function mendSidecar(bytes: Buffer): MendedSidecar | null {
  if (bytes.length <= TRAILER_BYTES) return null;
  const body = bytes.subarray(0, bytes.length - TRAILER_BYTES);
  const found = [...candidates(bytes, body)].map(soundSidecar).filter((mended) => mended !== null);
  return found.length === 1 ? (found[0] ?? null) : null;
}

interface Candidate {
  readonly bytes: Buffer;
  readonly offset: number;
}

function* candidates(bytes: Buffer, body: Buffer): Generator<Candidate> {
  const written = /"([0-9a-f]{8})"/.exec(bytes.toString("latin1", body.length))?.[1];
  const trailer = Buffer.from(`"crc32": "${crc32(body).toString(16).padStart(8, "0")}"\n}\n`);
  const wrong = [...trailer.keys()].filter((index) => trailer[index] !== bytes[body.length + index]);
  const [only] = wrong;
  if (only !== undefined && wrong.length === 1)
    yield { bytes: Buffer.concat([body, trailer]), offset: body.length + only };
  if (written === undefined) return;
  for (const { offset, change } of byteChanges((crc32(body) ^ parseInt(written, 16)) >>> 0, body.length)) {
    const changed = Buffer.from(bytes);
    changed.writeUInt8(bytes.readUInt8(offset) ^ change, offset);
    yield { bytes: changed, offset };
  }
}

function soundSidecar(candidate: Candidate): MendedSidecar | null {
  try {
    const read = decodeSidecar(candidate.bytes);
    return read.kind === "sound" ? { ...candidate, sidecar: read.sidecar } : null;
  } catch {
    // The checksum matches by chance, and it is no JSON.
    return null;
  }
}

/** The sidecar without these indexes of its segments: where their appends end is not known any more. */
export function withoutIndexes(sidecar: Sidecar, lost: readonly LostIndex[]): Sidecar {
  const starts = new Set(lost.map(({ start }) => start));
  return {
    ...sidecar,
    segments: sidecar.segments.map((segment) => (starts.has(segment.start) ? { ...segment, index: null } : segment)),
  };
}
