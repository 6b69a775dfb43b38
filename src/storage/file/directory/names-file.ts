// What the file of names holds (docs/format.md, The names).

import { nextTurn } from "../../../ops/turns.js";
import type { NameRange } from "../../../protocol/names/name-range.js";
import { crc32 } from "../format/crc32.js";
import { FORMAT } from "../format/sidecar.js";

/** One section of the file; its names are in order. */
export interface NamesSection<Names = readonly string[]> {
  /** With the sections before it, it has every stream that was there after this batch of the journal. */
  readonly batch: number;
  /** Names of streams that were made. */
  readonly made: Names;
  /** Names of streams that were deleted and not made again. */
  readonly gone: Names;
}

/** The sound beginning of a file. */
export interface NamesRead {
  readonly sections: readonly NamesSection<NameLines>[];
  /** Where the first of them ends, and where the last does. */
  readonly baseEnd: number;
  readonly end: number;
}

/** A head is shorter: the check of one costs no more, whatever follows. */
const MAX_HEAD_BYTES = 256;
/** Bytes that are decoded at a time, and names that are encoded in one turn of the event loop. */
const PIECE_BYTES = 256 * 1024;
const PIECE_NAMES = 8192;
const LINE_END = 0x0a;

/** A section as bytes. */
export async function encodeSection(directoryId: Buffer, { batch, made, gone }: NamesSection): Promise<Buffer> {
  const [first, second] = [await linesOf(made), await linesOf(gone)];
  const body = Buffer.concat([first, second]);
  return Buffer.concat([headOf(directoryId, { batch, made: first.length, gone: second.length }, body), body]);
}

/** The sections up to the first that is not sound, or not of this directory. */
export function decodeSections(directoryId: Buffer, bytes: Buffer): NamesRead {
  const sections: NamesSection<NameLines>[] = [];
  let [end, baseEnd] = [0, 0];
  for (let last = 0; ;) {
    const lineEnd = bytes.subarray(end, end + MAX_HEAD_BYTES).indexOf(LINE_END);
    const head = bytes.toString("latin1", end, end + lineEnd);
    const counts = countsOf(head);
    if (lineEnd < 0 || counts === null || counts.batch < last) return { sections, baseEnd, end };
    const from = end + lineEnd + 1;
    const body = bytes.subarray(from, from + counts.made + counts.gone);
    if (!headOf(directoryId, counts, body).equals(bytes.subarray(end, from))) return { sections, baseEnd, end };
    const [made, gone] = [new NameLines(body.subarray(0, counts.made)), new NameLines(body.subarray(counts.made))];
    sections.push({ batch: counts.batch, made, gone });
    last = counts.batch;
    end = from + body.length;
    if (sections.length === 1) baseEnd = end;
  }
}

/** Names in order as the file has them, a line each: only those that are asked for become text. */
export class NameLines {
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** The first names of a range, at most `count`. */
  slice({ from, to }: NameRange, count: number): string[] {
    const names: string[] = [];
    for (let at = this.#placeOf(from); at < this.#bytes.length && names.length < count;) {
      const line = this.#lineAt(at);
      if (to !== null && line.name >= to) break;
      names.push(line.name);
      at = line.end;
    }
    return names;
  }

  /** All names, some thousands at a time. */
  *pieces(): Generator<readonly string[]> {
    for (let at = 0; at < this.#bytes.length;) {
      const end = this.#bytes.indexOf(LINE_END, Math.min(at + PIECE_BYTES, this.#bytes.length - 1)) + 1;
      yield this.#bytes.toString("utf8", at, end - 1).split("\n");
      at = end;
    }
  }

  /** Where the first line is whose name is at `from` or after it. */
  #placeOf(from: string): number {
    let [low, high] = [0, this.#bytes.length];
    while (low < high) {
      const middle = this.#bytes.lastIndexOf(LINE_END, ((low + high) >>> 1) - 1) + 1;
      const line = this.#lineAt(Math.max(low, middle));
      if (line.name >= from) high = Math.max(low, middle);
      else low = line.end;
    }
    return low;
  }

  #lineAt(at: number): { readonly name: string; readonly end: number } {
    const end = this.#bytes.indexOf(LINE_END, at);
    return { name: this.#bytes.toString("utf8", at, end), end: end + 1 };
  }
}

/** What a head says. */
interface Counts {
  readonly batch: number;
  readonly made: number;
  readonly gone: number;
}

/** The checksum is that of head and body: a head of zeros vouches for nothing. */
function headOf(directoryId: Buffer, { batch, made, gone }: Counts, body: Buffer): Buffer {
  const head = { format: FORMAT, directory: directoryId.toString("hex"), batch, made, gone };
  const sum = crc32(body, crc32(Buffer.from(JSON.stringify(head))));
  return Buffer.from(`${JSON.stringify({ ...head, crc32: sum.toString(16).padStart(8, "0") })}\n`);
}

function countsOf(head: string): Counts | null {
  const found = /"batch":(\d{1,15}),"made":(\d{1,15}),"gone":(\d{1,15}),/.exec(head);
  if (found === null) return null;
  return { batch: Number(found[1]), made: Number(found[2]), gone: Number(found[3]) };
}

/** No name has a line break in it. */
async function linesOf(names: readonly string[]): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for (let at = 0; at < names.length; at += PIECE_NAMES) {
    if (at > 0) await nextTurn();
    pieces.push(Buffer.from(`${names.slice(at, at + PIECE_NAMES).join("\n")}\n`));
  }
  return Buffer.concat(pieces);
}
