// Cuts standard input into appends.

import type { ClientInput } from "../../command/verb.js";
import { frameJson } from "../../../protocol/json/json-frame.js";
import { asArray } from "../reading/messages.js";

/** Where an append may end: anywhere, at the end of a line, or behind a JSON value that has a line to itself. */
export type Cutting = "bytes" | "lines" | "json";

/** What one append takes of the input. */
export interface Piece {
  readonly kind: "piece";
  /** What is sent; empty where the input has only blank lines, which JSON does not count. */
  readonly body: Buffer;
  /** The bytes of the input that it is of. */
  readonly source: Buffer;
  /** Lines of the input. */
  readonly lines: number;
}

/**
 * The next piece; `null` at the end of the input; what is wrong with the input, and in which line of it, from 1; or
 * that it is too short to be the input of the run before.
 */
export type NextPiece =
  Piece | null | { readonly kind: "fault"; readonly line: number; readonly words: string } | { readonly kind: "short" };

/** The options of {@link InputPieces}. */
export interface InputPiecesOptions {
  readonly cutting: Cutting;
  /** A piece has at most so many bytes of the input, but for a longer line. */
  readonly maxBytes: number;
  /** Bytes of the input that are passed over. */
  readonly skip: number;
  /** Takes them. */
  readonly onSkipped?: (bytes: Uint8Array) => void;
  /** Bytes of the first piece, which was sent before; 0 for as many as there are. */
  readonly firstBytes: number;
}

const LINE_FEED = 0x0a;
/** The input is read so many pieces ahead. */
const PIECES_AHEAD = 4;
/** A longer line is no line. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/**
 * What arrives while one append is under way goes into the next: the slower the server, the larger the appends. Memory
 * is bounded by a few pieces, or by one line.
 */
export class InputPieces {
  readonly #options: InputPiecesOptions;
  readonly #input: ClientInput;
  /** At most the option's: half as much with each piece that comes back. */
  #maxBytes: number;
  /** The last piece as the input has it. */
  #last: Buffer = Buffer.alloc(0);
  #parts: Uint8Array[] = [];
  #size = 0;
  #hasLine = false;
  #hasEnded = false;
  #fault: Error | null = null;
  #toSkip: number;
  #firstBytes: number;
  #line = 1;
  #wakeReader: (() => void) | null = null;
  #wakePump: (() => void) | null = null;

  constructor(input: ClientInput, options: InputPiecesOptions) {
    this.#options = options;
    this.#maxBytes = options.maxBytes;
    this.#input = input;
    this.#toSkip = options.skip;
    this.#firstBytes = options.firstBytes;
    this.#pump().catch((error: unknown) => this.#end(error instanceof Error ? error : new Error(String(error))));
  }

  /** Resolves when there is something to send, or nothing more. Rejects when the input can't be read. */
  async next(): Promise<NextPiece> {
    while (!this.#isReady()) await new Promise<void>((resolve) => (this.#wakeReader = resolve));
    if (this.#fault !== null) throw this.#fault;
    if (this.#hasEnded && (this.#toSkip > 0 || this.#size < this.#firstBytes)) return { kind: "short" };
    if (this.#size === 0) return null;
    const whole = Buffer.concat(this.#parts, this.#size);
    const length = this.#cut(whole);
    if (length > MAX_LINE_BYTES + this.#maxBytes)
      return { kind: "fault", line: this.#line, words: `is longer than ${MAX_LINE_BYTES} bytes` };
    this.#firstBytes = 0;
    const rest = whole.subarray(length);
    this.#parts = rest.length === 0 ? [] : [rest];
    this.#size = rest.length;
    this.#hasLine = rest.includes(LINE_FEED);
    this.#wakePump?.();
    this.#last = whole.subarray(0, length);
    return this.#pieceOf(this.#last);
  }

  /** Takes the last piece back, and gives out at most half as much from now on; false where it can't be cut. */
  halve(): boolean {
    const { length } = this.#last;
    const end = this.#options.cutting === "bytes" ? 0 : this.#last.indexOf(LINE_FEED);
    if (length < 2 || end < 0 || end === length - 1) return false;
    this.#maxBytes = Math.ceil(length / 2);
    this.#line -= linesOf(this.#last).length;
    this.#parts.unshift(this.#last);
    this.#size += length;
    this.#hasLine ||= this.#last.includes(LINE_FEED);
    return true;
  }

  /** Ends the input here: what was read and not given out is dropped. */
  stop(): void {
    this.#parts = [];
    this.#size = 0;
    this.#end(null);
    this.#input.destroy?.();
  }

  async #pump(): Promise<void> {
    for await (const bytes of this.#input) {
      if (this.#hasEnded) return;
      this.#take(bytes);
      while (this.#isFull() && !this.#hasEnded) await new Promise<void>((resolve) => (this.#wakePump = resolve));
    }
    this.#end(null);
  }

  #take(bytes: Uint8Array): void {
    const skipped = Math.min(this.#toSkip, bytes.length);
    this.#toSkip -= skipped;
    const part = bytes.subarray(skipped);
    if (skipped > 0) this.#options.onSkipped?.(bytes.subarray(0, skipped));
    for (const byte of bytes.subarray(0, skipped)) if (byte === LINE_FEED) this.#line += 1;
    if (part.length === 0) return;
    this.#parts.push(part);
    this.#size += part.length;
    this.#hasLine ||= part.includes(LINE_FEED);
    this.#wakeReader?.();
  }

  #end(fault: Error | null): void {
    // What breaks after the end is the end's own doing.
    if (!this.#hasEnded) this.#fault = fault;
    this.#hasEnded = true;
    this.#wakeReader?.();
    this.#wakePump?.();
  }

  #isReady(): boolean {
    if (this.#hasEnded || this.#size > MAX_LINE_BYTES + this.#maxBytes) return true;
    if (this.#firstBytes > 0) return this.#size >= this.#firstBytes;
    return this.#options.cutting === "bytes" ? this.#size > 0 : this.#hasLine;
  }

  #isFull(): boolean {
    return this.#size >= this.#maxBytes * PIECES_AHEAD && this.#isReady();
  }

  #cut(whole: Buffer): number {
    const { cutting } = this.#options;
    const maxBytes = this.#maxBytes;
    if (this.#firstBytes > 0) return Math.min(this.#firstBytes, whole.length);
    if (cutting === "bytes") return Math.min(maxBytes, whole.length);
    const within = whole.lastIndexOf(LINE_FEED, maxBytes - 1);
    const end = within >= 0 ? within : whole.indexOf(LINE_FEED);
    return end >= 0 ? end + 1 : whole.length;
  }

  #pieceOf(bytes: Buffer): NextPiece {
    const first = this.#line;
    const texts = linesOf(bytes);
    const lines = texts.length;
    this.#line += lines;
    if (this.#options.cutting !== "json") return { kind: "piece", body: bytes, source: bytes, lines };
    const values: Buffer[] = [];
    for (const [at, text] of texts.entries()) {
      if (isBlank(text)) continue;
      const framed = frameJson(text);
      // An empty array is one value here, for the array around all values is the one that is taken away.
      if (framed.kind === "invalid") return { kind: "fault", line: first + at, words: wordsOf(framed.detail) };
      values.push(text);
    }
    const body = values.length === 0 ? Buffer.alloc(0) : asArray(values);
    return { kind: "piece", body, source: bytes, lines };
  }
}

/** The lines, without their line feeds; the last may lack one. */
function linesOf(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let from = 0; from < bytes.length;) {
    const end = bytes.indexOf(LINE_FEED, from);
    lines.push(bytes.subarray(from, end < 0 ? bytes.length : end));
    from = end < 0 ? bytes.length : end + 1;
  }
  return lines;
}

function isBlank(line: Buffer): boolean {
  return line.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}

/** What is wrong with a line, of what is wrong with a body that is one line. */
function wordsOf(detail: string): string {
  return detail.replace(/^The body /, "it ").replace(/ at line 1, (column \d+)\.$/, " at $1");
}
