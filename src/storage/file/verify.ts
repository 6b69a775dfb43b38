import { join } from "node:path";
import type { Files, OpenFile } from "./files.js";
import { errorCode, readWhole } from "./files.js";
import { LOST_FRAMES, readJournalFile } from "./journal-reader.js";
import { journalSequenceOf, segmentPath, sidecarPath, type Layout } from "./layout.js";
import { decodeRecords, RecordKind, type Frame, type JournalRecord, type StreamIdentity } from "./record.js";
import { crcOf } from "./segment-reader.js";
import { decodeSidecar, type SegmentEntry, type Sidecar } from "./sidecar.js";

/** Something that is not as it should be. */
export interface Finding {
  /** The stream's name, `null` where it is not known or the finding is about no stream. */
  readonly stream: string | null;
  readonly file: string;
  /** The byte in the file, `null` where it is about the whole file. */
  readonly offset: number | null;
  readonly problem: string;
}

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

/** A large payload that only its segment holds: its record has the checksum. */
interface LargePayload {
  readonly batch: number;
  readonly segmentStart: number;
  readonly from: number;
  readonly length: number;
  readonly crc: number;
}

/** Streams looked at together: reading one overlaps with the checksum of another. */
const CONCURRENCY = 4;

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
  /** Streams that the journal speaks of: their files may be behind it. */
  readonly #journaled = new Set<string>();
  readonly #journaledDirectories = new Set<string>();
  /** By the stream's id. */
  readonly #largePayloads = new Map<string, LargePayload[]>();
  /** Streams whose deletion the journal holds: what is left of their files is nobody's. */
  readonly #deleted = new Set<string>();
  #streams = 0;
  #bytes = 0;
  #findings = 0;
  #done = 0;

  constructor(options: VerifyOptions) {
    this.#options = options;
  }

  async run(): Promise<VerifySummary> {
    const { files, layout } = this.#options;
    const journalFiles = await this.#checkJournal();
    const shards = await files.list(layout.streams);
    for (const [index, shard] of shards.entries()) {
      this.#done = index / shards.length;
      await this.#checkShard(join(layout.streams, shard));
    }
    return { streams: this.#streams, bytes: this.#bytes, journalFiles, findings: this.#findings };
  }

  #report(stream: string | null, file: string, problem: string, offset: number | null = null): void {
    this.#findings += 1;
    this.#options.report({ stream, file, offset, problem });
  }

  async #checkJournal(): Promise<number> {
    const { files, layout, directoryId } = this.#options;
    const sequences = (await files.list(layout.journal)).map(journalSequenceOf).filter((sequence) => sequence !== null);
    let lastBatch: number | null = null;
    let unused: string | null = null;
    for (const sequence of sequences.sort((left, right) => left - right)) {
      const path = layout.journalFile(sequence);
      const bytes = (await readWhole(files, path)) ?? Buffer.alloc(0);
      const { frames, damage } = readJournalFile(bytes, { sequence, directoryId, lastBatch });
      if (damage !== null) this.#report(null, path, damage.problem, damage.offset);
      const identities = new Map<number, StreamIdentity>();
      for (const frame of frames) this.#noteRecords(frame, identities);
      if (frames.length > 0 && lastBatch === null && unused !== null) this.#report(null, unused, LOST_FRAMES, 0);
      lastBatch = frames.at(-1)?.batch ?? lastBatch;
      unused ??= frames.length === 0 ? path : null;
      this.#bytes += bytes.length;
    }
    if (lastBatch === null) this.#report(null, layout.journal, "the journal is missing");
    return sequences.length;
  }

  #noteRecords(frame: Frame, identities: Map<number, StreamIdentity>): void {
    for (const record of decodeRecords(frame)) {
      const { kind, handle, identity } = record;
      if (identity !== null) {
        identities.set(handle, identity);
        this.#noteJournaled(identity);
      }
      const id = identities.get(handle)?.id ?? "";
      if (kind === RecordKind.delete) this.#deleted.add(id);
      this.#noteLargePayload(id, record, frame.batch);
    }
  }

  #noteLargePayload(id: string, { position, segmentStart, bypassed }: JournalRecord, batch: number): void {
    if (bypassed === null) return;
    const payload = { batch, segmentStart, from: position - segmentStart, ...bypassed };
    const known = this.#largePayloads.get(id);
    if (known === undefined) this.#largePayloads.set(id, [payload]);
    else known.push(payload);
  }

  #noteJournaled({ id, name }: { readonly id: string; readonly name: string }): void {
    if (this.#journaled.has(id)) return;
    this.#journaled.add(id);
    this.#journaledDirectories.add(this.#options.layout.streamDirectory(name));
  }

  async #checkShard(shard: string): Promise<void> {
    const rest = (await this.#options.files.list(shard)).values();
    const worker = async (): Promise<void> => {
      for (const entry of rest) await this.#checkStream(join(shard, entry));
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  }

  async #checkStream(directory: string): Promise<void> {
    const { files, progress } = this.#options;
    const path = sidecarPath(directory);
    const bytes = await readWhole(files, path);
    if (bytes === null) return this.#checkOrphans(directory);
    this.#bytes += bytes.length;
    const read = decodeSidecar(bytes);
    if (read.kind === "damaged") this.#report(null, path, read.problem);
    else if (!this.#deleted.has(read.sidecar.id)) await this.#checkSidecar(read.sidecar, directory);
    this.#streams += 1;
    progress({ streams: this.#streams, bytes: this.#bytes, done: this.#done });
  }

  /** Segments without a sidecar belong to a stream that only the journal knows, or to one that lost it. */
  async #checkOrphans(directory: string): Promise<void> {
    if (this.#journaledDirectories.has(directory)) return;
    const segments = (await this.#options.files.list(directory)).filter((file) => file.endsWith(".seg"));
    if (segments.length > 0) this.#report(null, sidecarPath(directory), "it is missing");
  }

  async #checkSidecar(sidecar: Sidecar, directory: string): Promise<void> {
    const { layout } = this.#options;
    const { name, segments, state } = sidecar;
    if (layout.streamDirectory(name) !== directory) this.#report(name, directory, "the directory is not the one for this name");
    let end = segments[0]?.start ?? 0;
    for (const segment of segments) {
      if (segment.start !== end) this.#report(name, sidecarPath(directory), `a segment begins at ${segment.start}, the one before ends at ${end}`);
      end = segment.start + segment.length;
      await this.#checkSegment(sidecar, directory, segment);
    }
    if (end !== state.tail) this.#report(name, sidecarPath(directory), `the segments end at ${end}, the stream at ${state.tail}`);
    // A stream that was never created has only claimed its directory, and none of these.
    for (const payload of this.#largePayloads.get(sidecar.id) ?? []) {
      if (payload.batch > sidecar.batch) await this.#checkLargePayload(name, segmentPath(directory, payload.segmentStart), payload);
    }
  }

  async #checkLargePayload(name: string, path: string, { from, length, crc }: LargePayload): Promise<void> {
    const end = from + length;
    await this.#withFile(name, path, async (file) => {
      const size = await file.size();
      if (size < end) this.#report(name, path, `it has ${size} bytes of ${end}`, size);
      else if ((await crcOf(file, length, from)) !== crc) this.#report(name, path, `the ${length} bytes there do not match their checksum in the journal`, from);
      this.#bytes += length;
    });
  }

  async #checkSegment(sidecar: Sidecar, directory: string, segment: SegmentEntry): Promise<void> {
    const { name } = sidecar;
    const path = segmentPath(directory, segment.start);
    await this.#withFile(name, path, async (file) => {
      const size = await file.size();
      if (size < segment.length) this.#report(name, path, `it has ${size} bytes of ${segment.length}`, size);
      else if ((await crcOf(file, segment.length)) !== segment.crc) {
        this.#report(name, path, `its first ${segment.length} bytes do not match their checksum`);
      }
      this.#bytes += Math.min(size, segment.length);
    });
  }

  async #withFile(name: string, path: string, look: (file: OpenFile) => Promise<void>): Promise<void> {
    try {
      const file = await this.#options.files.open(path, "read");
      try {
        await look(file);
      } finally {
        await file.close();
      }
    } catch (error) {
      if (errorCode(error) !== "ENOENT") throw error;
      this.#report(name, path, "it is missing");
    }
  }
}
