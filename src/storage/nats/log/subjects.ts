import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import type { SubjectKind } from "./replicated-log.js";

/** Characters of the hash that stands for a source's name in the subjects of its forks' edges. */
const HASH_CHARACTERS = 22;

/** Names of subjects in one bucket. A subject's third token is its shard, from 0 on. */
export class Subjects {
  readonly #bucket: string;
  /** How many shards there are. */
  readonly shards: number;

  /** `bucket` has letters and digits only; `shards` never changes while the bucket has data. */
  constructor(bucket: string, shards: number) {
    this.#bucket = bucket;
    this.shards = shards;
  }

  /** The subject of the stream of this name. */
  ofStream(name: string): string {
    return `sd.${this.#bucket}.${this.shardOf(name)}.s.${tokenOf(name)}`;
  }

  /** Where reads of the stream are noted. */
  ofTouch(name: string): string {
    return `sdt.${this.#bucket}.${tokenOf(name)}`;
  }

  /** The edges of the forks of one incarnation of a stream. */
  ofEdges(source: string, id: string): string {
    return this.ofEdge(source, id, "*");
  }

  /** The edge of one fork: that it is there keeps the source's bytes. */
  ofEdge(source: string, id: string, forkId: string): string {
    const hash = createHash("sha256").update(source).digest("base64url").slice(0, HASH_CHARACTERS);
    return `sd.${this.#bucket}.${this.shardOf(source)}.f.${hash}.${id}.${forkId}`;
  }

  /** Where what is stored of streams is told again, soon after. */
  republished(subject: string): string {
    return `sdr${subject.slice("sd".length)}`;
  }

  /** All streams of a shard, or all edges of forks whose sources are there. */
  ofAllIn(shard: number, kind: SubjectKind): string {
    return `sd.${this.#bucket}.${shard}.${kind === "streams" ? "s" : "f"}.>`;
  }

  /** Messages that hold room in a shard. */
  ofReserve(shard: number): string {
    return `sd.${this.#bucket}.${shard}.r`;
  }

  /** Who sweeps now. */
  get ofSweepLease(): string {
    return `sd.${this.#bucket}.0.l.sweep`;
  }

  /** Where front ends tell each other what they may miss. */
  get ofAnnouncements(): string {
    return `sda.${this.#bucket}`;
  }

  /** The shard of a stream. */
  shardOf(name: string): number {
    return crc32(Buffer.from(name)) % this.shards;
  }
}

/** What each byte of a name is in a token: each publish asks for the subject of its stream. */
const TOKENS = Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte);
  return /[A-Za-z0-9-]/.test(character) ? character : `_${byte.toString(16).padStart(2, "0").toUpperCase()}`;
});

/** A name as one token of a subject: letters, digits and `-` as they are, any other byte of its UTF-8 as `_HH`. */
export function tokenOf(name: string): string {
  let token = "";
  for (const byte of Buffer.from(name)) token += TOKENS[byte] ?? "";
  return token;
}
