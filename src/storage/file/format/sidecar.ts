import type { Position, ProducerMark, ProducerStamp, StreamConfig } from "../../storage.js";
import { MutableState } from "../../state.js";
import type { StoredIndex } from "./append-index.js";
import { crc32 } from "./crc32.js";

/** The version of the disk format. Another one is refused, never guessed at. */
export const FORMAT = 1;

/** A segment as the sidecar knows it: synced bytes only. */
export interface StoredSegment {
  readonly start: Position;
  readonly length: number;
  readonly crc: number;
  /** When its first and its newest byte were appended. */
  readonly firstAtMs: number;
  readonly newestAtMs: number;
  /** Where its appends end: `"one"` for one append of one message, `null` where that is lost. */
  readonly index: StoredIndex | "one" | null;
}

/** What a sidecar says. */
export interface Sidecar {
  readonly id: string;
  readonly name: string;
  readonly config: StreamConfig;
  readonly state: MutableState;
  /** Where the earliest retained byte is, and where the segment of the byte before it began. */
  readonly earliest: { readonly position: Position; readonly segmentStart: Position };
  /** Its forks that are not gone, by id: where the bytes end that each needs. `null` where there are none. */
  readonly forks: Map<string, Position> | null;
  /** Deleted, but for what its forks need. */
  readonly softDeleted: boolean;
  readonly segments: readonly StoredSegment[];
  /** The journal's batch up to which all of this is complete. */
  readonly batch: number;
  /** The directory is taken for a stream that only the journal knows yet: without its record there is no stream. */
  readonly claimed: boolean;
}

/** A sidecar, or what is wrong with it. */
export type SidecarResult = { readonly kind: "sound"; readonly sidecar: Sidecar } | DamagedSidecar;

interface DamagedSidecar {
  readonly kind: "damaged";
  readonly problem: string;
  /** It is meant like this, by another version or a repair: nothing may be built in its place. */
  readonly isFinal: boolean;
  /** It says so itself: what a start could not apply was set aside. */
  readonly isNotice: boolean;
}

/** A sidecar that says no more than whose the directory is. */
export function claimedSidecar({ id, name, config }: Pick<Sidecar, "id" | "name" | "config">): Sidecar {
  const earliest = { position: 0, segmentStart: 0 };
  const nothing = { state: new MutableState(), earliest, forks: null, softDeleted: false, segments: [], batch: 0 };
  return { id, name, config, ...nothing, claimed: true };
}

/** The sidecar's JSON, one member on each line, the CRC-32 of all before it as the last. */
export function encodeSidecar(sidecar: Sidecar): Buffer {
  const { config, state } = sidecar;
  return seal([
    ["format", FORMAT],
    ["id", sidecar.id],
    ["name", sidecar.name],
    ["contentType", config.contentType],
    ["createdAtMs", config.createdAtMs],
    ["ttlSeconds", config.ttlSeconds],
    ["expiresAtMs", config.expiresAtMs],
    ["forkedFrom", config.forkedFrom],
    ["touchedAtMs", state.touchedAtMs],
    ["claimed", sidecar.claimed],
    ["batch", sidecar.batch],
    ["tail", state.tail],
    ["closed", state.closed],
    ["closedAtMs", state.closedAtMs],
    ["closedBy", state.closedBy],
    ["lastSeq", state.lastSeq],
    ["producers", [...(state.producers ?? [])].map(([id, mark]) => ({ id, ...mark }))],
    ["softDeleted", sidecar.softDeleted],
    ["forks", [...(sidecar.forks ?? [])].map(([id, neededBefore]) => ({ id, neededBefore }))],
    ["earliest", { position: sidecar.earliest.position, segmentStart: sidecar.earliest.segmentStart }],
    [
      "segments",
      sidecar.segments.map(({ start, length, crc, firstAtMs, newestAtMs, index }) => ({
        start,
        length,
        crc32: hex(crc),
        firstAtMs,
        newestAtMs,
        index: indexToJson(index),
      })),
    ],
  ]);
}

/**
 * Stands in place of the sidecar of a stream whose records could not be applied: no start forgets that. A fork's names
 * its source, so that this is kept.
 */
export function encodeNotice({ id, name, config }: Pick<Sidecar, "id" | "name" | "config">, damage: string): Buffer {
  const { forkedFrom } = config;
  return seal([
    ["format", FORMAT],
    ["id", id],
    ["name", name],
    ...(forkedFrom === null ? [] : [["forkedFrom", forkedFrom] as const]),
    ["damage", damage],
  ]);
}

/** Whether what stands in the place of a sidecar says that the stream is damaged. */
export function isNotice(bytes: Buffer): boolean {
  const read = decodeSidecar(bytes);
  return read.kind === "damaged" && read.isNotice;
}

/** Whether a sidecar, or what stands in its place, is as it was written. */
export function isWhole(bytes: Buffer): boolean {
  const read = decodeSidecar(bytes);
  return read.kind === "sound" || read.isNotice;
}

/** A JSON object, one member on each line, the CRC-32 of all before it as the last. */
export function seal(members: readonly (readonly [string, unknown])[]): Buffer {
  const body = `{\n${members.map(([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)},\n`).join("")}`;
  return Buffer.from(`${body}"crc32": "${hex(crc32(Buffer.from(body)))}"\n}\n`);
}

const NOT_WHOLE = "it is not whole";

/** The text of sealed JSON, or in words what is wrong with it. */
export function unseal(bytes: Buffer): { readonly text: string } | { readonly problem: string } {
  const text = bytes.toString("utf8");
  const match = /"crc32": "([0-9a-f]{8})"\n\}\n$/.exec(text);
  if (match === null) return { problem: NOT_WHOLE };
  const isSound = hex(crc32(bytes.subarray(0, Buffer.byteLength(text.slice(0, match.index))))) === match[1];
  return isSound ? { text } : { problem: "its checksum does not match" };
}

const REFUSAL = /^\{\n"format": 1,\n"refused": "([^"\\]*)"\n\}\n$/;

/** Why a repair refused the stream whose sidecar these bytes are; `null` when none did. */
export function refusalIn(bytes: Buffer): string | null {
  return REFUSAL.exec(bytes.toString("utf8"))?.[1] ?? null;
}

/** What takes a sidecar's place when its stream is to be refused until somebody decides; `reason` is plain words. */
export function encodeRefusal(reason: string): Buffer {
  return Buffer.from(`{\n"format": ${FORMAT},\n"refused": ${JSON.stringify(reason)}\n}\n`);
}

/** Reads a sidecar. */
export function decodeSidecar(bytes: Buffer): SidecarResult {
  const text = bytes.toString("utf8");
  const version = /^\{\n"format": (\d+),\n/.exec(text)?.[1];
  if (version !== undefined && Number(version) !== FORMAT) {
    return damaged(`format ${version} is not known to this version, which writes format ${FORMAT}`, "final");
  }
  const refusal = refusalIn(bytes);
  if (refusal !== null) return damaged(refusal, "final");
  const sealed = unseal(bytes);
  if (version === undefined || ("problem" in sealed && sealed.problem === NOT_WHOLE))
    return damaged("it is not a whole sidecar");
  if ("problem" in sealed) return damaged(sealed.problem);
  return understood(text) ?? damaged("its checksum fits, but it can't be understood");
}

/** What sealed JSON says; `null` where neither encodeSidecar nor encodeNotice can have written it. */
function understood(text: string): SidecarResult | null {
  try {
    // The checksum has vouched for the text; what is of another shape throws, or has no such numbers.
    const json = JSON.parse(text) as SidecarJson | Notice;
    if ("damage" in json) return typeof json.damage === "string" ? damaged(json.damage, "notice") : null;
    const sidecar = fromJson(json);
    return isPlausible(sidecar) ? { kind: "sound", sidecar } : null;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return null;
    throw error;
  }
}

function isPlausible({ id, name, config, state, earliest, segments, batch }: Sidecar): boolean {
  const counts = [state.tail, earliest.position, earliest.segmentStart, batch];
  for (const { start, length, crc } of segments) counts.push(start, length, crc);
  const areTexts = [id, name, config.contentType].every((text) => typeof text === "string");
  return areTexts && counts.every((count) => Number.isSafeInteger(count) && count >= 0);
}

const NAME = /^"name": "(.*)",$/m;
const ORIGIN = /^"forkedFrom": (?:null|\{"name":("(?:[^"\\]|\\.)*")),/m;

/** What a sidecar or a notice says of its stream's source, as far as it can be read. */
export interface StatedOrigin {
  /** The source's name as JSON; `null` where the stream was forked from none. */
  readonly source: string | null;
}

/** What a sidecar, damaged or not, or a notice says of its stream's source; `null` where it says nothing of that. */
export function originIn(bytes: Buffer): StatedOrigin | null {
  const text = bytes.toString("utf8");
  // Without the journal's record there is no such stream, and with it the journal names it.
  if (text.includes('\n"claimed": true,\n')) return { source: null };
  const match = ORIGIN.exec(text);
  if (match !== null) return { source: match[1] ?? null };
  return isNotice(bytes) ? { source: null } : null;
}

/** Whether a sidecar, damaged or not, lists forks; `null` where nobody can tell. */
export function listsForks(bytes: Buffer): boolean | null {
  const match = /^"forks": \[(\]|\{)/m.exec(bytes.toString("utf8"));
  return match === null ? null : match[1] === "{";
}

/** The name in a sidecar, damaged or not, or a notice; "" where there is none. */
export function nameIn(bytes: Buffer): string {
  const read = decodeSidecar(bytes);
  return read.kind === "sound" ? read.sidecar.name : (NAME.exec(bytes.toString("utf8"))?.[1] ?? "");
}

/** Something that is no sidecar, or is meant to be none. */
export function damaged(problem: string, meant?: "final" | "notice"): SidecarResult {
  return { kind: "damaged", problem, isFinal: meant === "final", isNotice: meant === "notice" };
}

interface Notice {
  readonly damage: string;
}

interface SidecarJson extends StreamConfig {
  readonly id: string;
  readonly name: string;
  readonly touchedAtMs: number;
  readonly claimed: boolean;
  readonly batch: number;
  readonly tail: number;
  readonly closed: boolean;
  readonly closedAtMs: number | null;
  readonly closedBy: ProducerStamp | null;
  readonly lastSeq: string | null;
  readonly producers: readonly (ProducerMark & { readonly id: string })[];
  readonly softDeleted: boolean;
  readonly forks: readonly { readonly id: string; readonly neededBefore: Position }[];
  readonly earliest: Sidecar["earliest"];
  readonly segments: readonly (Omit<StoredSegment, "crc" | "index"> & {
    readonly crc32: string;
    readonly index: IndexJson;
  })[];
}

/** An index in a sidecar: its bytes in base64, or the checksum of its file. */
type IndexJson =
  | "one"
  | null
  | (Pick<StoredIndex, "messages" | "atMs" | "length"> & ({ readonly bytes: string } | { readonly crc32: string }));

function indexToJson(index: StoredSegment["index"]): IndexJson {
  if (index === null || index === "one") return index;
  const { messages, atMs, length, inline, crc } = index;
  return inline === null
    ? { messages, atMs, length, crc32: hex(crc) }
    : { messages, atMs, length, bytes: Buffer.from(inline).toString("base64") };
}

function indexFromJson(json: IndexJson): StoredSegment["index"] {
  if (json === null || json === "one") return json;
  const { messages, atMs, length } = json;
  if ("crc32" in json) return { messages, atMs, length, inline: null, crc: parseInt(json.crc32, 16) };
  // A copy of its own: Node's pool would be kept by what is in it.
  return { messages, atMs, length, inline: Uint8Array.from(Buffer.from(json.bytes, "base64")), crc: 0 };
}

function fromJson(json: SidecarJson): Sidecar {
  const { id, name, contentType, createdAtMs, ttlSeconds, expiresAtMs, forkedFrom, batch, claimed } = json;
  const state = new MutableState();
  state.tail = json.tail;
  state.closed = json.closed;
  state.closedAtMs = json.closedAtMs;
  state.closedBy = json.closedBy;
  state.lastSeq = json.lastSeq;
  state.touchedAtMs = json.touchedAtMs;
  if (json.producers.length > 0) {
    state.producers = new Map(
      json.producers.map(({ id: producer, epoch, seq, atMs }) => [producer, { epoch, seq, atMs }]),
    );
  }
  return {
    id,
    name,
    config: { contentType, createdAtMs, ttlSeconds, expiresAtMs, forkedFrom },
    state,
    forks: json.forks.length === 0 ? null : new Map(json.forks.map((fork) => [fork.id, fork.neededBefore])),
    softDeleted: json.softDeleted,
    earliest: json.earliest,
    segments: json.segments.map(({ start, length, crc32: crc, firstAtMs, newestAtMs, index }) => ({
      start,
      length,
      crc: parseInt(crc, 16),
      firstAtMs,
      newestAtMs,
      index: indexFromJson(index),
    })),
    batch,
    claimed,
  };
}

function hex(crc: number): string {
  return crc.toString(16).padStart(8, "0");
}
