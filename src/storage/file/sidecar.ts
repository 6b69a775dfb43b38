import type { Position, ProducerMark, ProducerStamp, StreamConfig } from "../storage.js";
import { MutableState } from "../state.js";
import { crc32 } from "./crc32.js";

/** The version of the disk format. Another one is refused, never guessed at. */
export const FORMAT = 1;

/** A segment as the sidecar knows it: synced bytes only. */
export interface SegmentEntry {
  readonly start: Position;
  readonly length: number;
  readonly crc: number;
}

/** What a sidecar says. */
export interface Sidecar {
  readonly id: string;
  readonly name: string;
  readonly config: StreamConfig;
  readonly state: MutableState;
  readonly segments: readonly SegmentEntry[];
  /** The journal's batch up to which all of this is complete. */
  readonly batch: number;
  /** The directory is taken for a stream that only the journal knows yet: without its record there is no stream. */
  readonly claimed: boolean;
}

/** A sidecar, or what is wrong with it. */
export type SidecarResult =
  | { readonly kind: "sound"; readonly sidecar: Sidecar }
  /** `isNotice`: a sidecar that says so itself. */
  | { readonly kind: "damaged"; readonly problem: string; readonly isNotice?: true };

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
    ["touchedAtMs", state.touchedAtMs],
    ["claimed", sidecar.claimed],
    ["batch", sidecar.batch],
    ["tail", state.tail],
    ["closed", state.closed],
    ["closedBy", state.closedBy],
    ["lastSeq", state.lastSeq],
    ["producers", [...(state.producers ?? [])].map(([id, mark]) => ({ id, ...mark }))],
    ["segments", sidecar.segments.map(({ start, length, crc }) => ({ start, length, crc32: hex(crc) }))],
  ]);
}

/** What stands in place of the sidecar of a stream whose journal records could not be applied: no start forgets that. */
export function encodeNotice({ id, name }: Pick<Sidecar, "id" | "name">, damage: string): Buffer {
  return seal([["format", FORMAT], ["id", id], ["name", name], ["damage", damage]]);
}

function seal(members: readonly (readonly [string, unknown])[]): Buffer {
  const body = `{\n${members.map(([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)},\n`).join("")}`;
  return Buffer.from(`${body}"crc32": "${hex(crc32(Buffer.from(body)))}"\n}\n`);
}

/** Reads a sidecar. */
export function decodeSidecar(bytes: Buffer): SidecarResult {
  const text = bytes.toString("utf8");
  const match = /"crc32": "([0-9a-f]{8})"\n\}\n$/.exec(text);
  const version = /^\{\n"format": (\d+),\n/.exec(text)?.[1];
  if (version !== undefined && Number(version) !== FORMAT) {
    return { kind: "damaged", problem: `format ${version} is not known to this version, which writes format ${FORMAT}` };
  }
  if (match === null || version === undefined) return { kind: "damaged", problem: "it is not a whole sidecar" };
  if (hex(crc32(bytes.subarray(0, Buffer.byteLength(text.slice(0, match.index))))) !== match[1]) {
    return { kind: "damaged", problem: "its checksum does not match" };
  }
  // The checksum has vouched for the text: it is what encodeSidecar or encodeNotice wrote.
  const json = JSON.parse(text) as SidecarJson | Notice;
  return "damage" in json ? { kind: "damaged", problem: json.damage, isNotice: true } : { kind: "sound", sidecar: fromJson(json) };
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
  readonly closedBy: ProducerStamp | null;
  readonly lastSeq: string | null;
  readonly producers: readonly (ProducerMark & { readonly id: string })[];
  readonly segments: readonly { readonly start: number; readonly length: number; readonly crc32: string }[];
}

function fromJson(json: SidecarJson): Sidecar {
  const { id, name, contentType, createdAtMs, ttlSeconds, expiresAtMs, batch, claimed } = json;
  const state = new MutableState();
  state.tail = json.tail;
  state.closed = json.closed;
  state.closedBy = json.closedBy;
  state.lastSeq = json.lastSeq;
  state.touchedAtMs = json.touchedAtMs;
  if (json.producers.length > 0) {
    state.producers = new Map(json.producers.map(({ id: producer, epoch, seq, atMs }) => [producer, { epoch, seq, atMs }]));
  }
  return {
    id,
    name,
    config: { contentType, createdAtMs, ttlSeconds, expiresAtMs },
    state,
    segments: json.segments.map((segment) => ({ start: segment.start, length: segment.length, crc: parseInt(segment.crc32, 16) })),
    batch,
    claimed,
  };
}

function hex(crc: number): string {
  return crc.toString(16).padStart(8, "0");
}
