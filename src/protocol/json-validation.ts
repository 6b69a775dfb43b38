import { isUtf8 } from "node:buffer";

/** Deepest nesting of arrays and objects in one message; `{}` is 1 deep. */
export const MAX_JSON_DEPTH = 1000;

/**
 * Bodies up to this are parsed at once, larger ones in pieces of about this size, so that what the parser builds stays
 * small: `[{},{},...]` takes some twenty times its own size in memory.
 */
export const PIECE_BYTES = 64 * 1024;

/** What a request body is: one value, an array with at most so many elements, or not acceptable. */
export type JsonShape =
  | { readonly kind: "value" }
  | { readonly kind: "array"; readonly maxElements: number }
  | { readonly kind: "invalid"; readonly detail: string };

const VALUE: JsonShape = { kind: "value" };
const NOT_UTF8: JsonShape = { kind: "invalid", detail: "The body is not valid UTF-8." };
const NOT_JSON: JsonShape = { kind: "invalid", detail: "The body is not valid JSON." };
const HAS_BOM: JsonShape = { kind: "invalid", detail: "The body begins with a byte order mark, which JSON does not allow." };
const TOO_DEEP: JsonShape = { kind: "invalid", detail: `A JSON message is nested deeper than ${MAX_JSON_DEPTH} levels.` };

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * Checks that `body` is one JSON text of valid UTF-8 in linear time, with the platform's parser. The parser gets the
 * bytes as latin1: a byte beyond ASCII is allowed inside a string only, whatever character it is part of.
 */
export function inspectJson(body: Buffer): JsonShape {
  if (!isUtf8(body)) return NOT_UTF8;
  const shape = body.length <= PIECE_BYTES ? inspectWhole(body) : inspectInPieces(body);
  return shape === NOT_JSON && beginsWithBom(body) ? HAS_BOM : shape;
}

function beginsWithBom(body: Buffer): boolean {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf;
}

function inspectWhole(body: Buffer): JsonShape {
  const value = parsed(body.toString("latin1"));
  if (value === undefined) return NOT_JSON;
  const isArray = Array.isArray(value);
  if (depthOf(body) > MAX_JSON_DEPTH + (isArray ? 1 : 0)) return TOO_DEEP;
  return isArray ? { kind: "array", maxElements: value.length } : VALUE;
}

/** The value of a JSON text; `undefined`, which no text has, if it is not valid. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** How deep the containers of a valid JSON text nest; 0 for a text too short to be deeper than allowed. */
function depthOf(body: Buffer): number {
  if (body.length <= 2 * MAX_JSON_DEPTH) return 0;
  let depth = 0;
  let deepest = 0;
  for (let at = 0; at < body.length; at++) {
    const byte = body[at];
    if (byte === QUOTE) at = closingQuote(body, at);
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) deepest = Math.max(deepest, ++depth);
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--;
  }
  return deepest;
}

/** The place of the quote that ends the string which begins at `quote`; the body's length if none does. */
function closingQuote(body: Buffer, quote: number): number {
  for (let at = quote + 1; at < body.length; at++) {
    const byte = body[at];
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at++;
  }
  return body.length;
}

/**
 * Walks through a large body and gives the parser, in brackets of their own, runs of a container's elements that end at
 * one of its commas. A container larger than a piece is parsed that way by itself and then stands as `[]` in the run
 * of its parent: `[]` may stand wherever a container may, and does not merge with what is next to it. So each byte
 * is parsed once, and a body is valid exactly if all its runs are.
 */
function inspectInPieces(body: Buffer): JsonShape {
  const root = new Container(null, 0);
  const isArray = body[firstNonSpace(body)] === OPEN_BRACKET;
  const maxDepth = MAX_JSON_DEPTH + (isArray ? 1 : 0);
  let top = root;
  let commas = 0;
  for (let at = 0; at < body.length; at++) {
    const byte = body[at];
    if (byte === QUOTE) at = closingQuote(body, at);
    else if (byte === COMMA) {
      if (top.depth === 1) commas++;
      if (!top.endElement(body, at)) return NOT_JSON;
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (top.depth === maxDepth) return TOO_DEEP;
      top = top.openChild(byte, at);
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      const { parent } = top;
      if (parent === null || !top.close(byte, body, at)) return NOT_JSON;
      top = parent;
    }
  }
  if (top !== root || !root.endBody(body)) return NOT_JSON;
  return isArray ? { kind: "array", maxElements: commas + 1 } : VALUE;
}

/** The place of the first byte that is not JSON white space. */
export function firstNonSpace(body: Buffer): number {
  let at = 0;
  while (at < body.length && isJsonSpace(body[at])) at++;
  return at;
}

/** Space, tab, line feed or carriage return. */
export function isJsonSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** A container on the way through a large body, or the body itself (the root). Its run is what is not parsed yet. */
class Container {
  readonly parent: Container | null;
  readonly depth: number;
  /** Kept for the next child, so that a body of a million containers makes as many objects as it is deep. */
  #child: Container | null = null;
  #opening = 0;
  #openedAt = 0;
  /** The run is `#head`, the part with large children in it, and the body from `#runFrom` on. */
  #head = "";
  #runFrom = 0;
  #hasEarlierRuns = false;

  constructor(parent: Container | null, depth: number) {
    this.parent = parent;
    this.depth = depth;
  }

  openChild(opening: number, at: number): Container {
    const child = (this.#child ??= new Container(this, this.depth + 1));
    child.#opening = opening;
    child.#openedAt = at;
    child.#head = "";
    child.#runFrom = at + 1;
    child.#hasEarlierRuns = false;
    return child;
  }

  /** At a comma: parses the run if it is long enough. False if it is not valid. */
  endElement(body: Buffer, at: number): boolean {
    if (this.parent === null || this.#head.length + at - this.#runFrom < PIECE_BYTES) return true;
    const run = this.#runUntil(body, at);
    this.#head = "";
    this.#runFrom = at + 1;
    this.#hasEarlierRuns = true;
    return !isBlank(run) && this.#isValid(run);
  }

  /** At the closing bracket: leaves a small container to its parent's run, parses the last run of a large one. */
  close(closing: number, body: Buffer, at: number): boolean {
    if (closing !== closingOf(this.#opening)) return false;
    if (at - this.#openedAt <= PIECE_BYTES) return true;
    const run = this.#runUntil(body, at);
    const { parent } = this;
    if (parent !== null) parent.#replaceChild(body, this.#openedAt, at + 1);
    return !(this.#hasEarlierRuns && isBlank(run)) && this.#isValid(run);
  }

  /** At the end of the body: parses the root's run, which is the whole body with large containers as `[]`. */
  endBody(body: Buffer): boolean {
    return parsed(this.#runUntil(body, body.length)) !== undefined;
  }

  #replaceChild(body: Buffer, from: number, to: number): void {
    this.#head = `${this.#runUntil(body, from)}[]`;
    this.#runFrom = to;
  }

  #runUntil(body: Buffer, at: number): string {
    return this.#head + body.toString("latin1", this.#runFrom, at);
  }

  #isValid(run: string): boolean {
    return parsed(this.#opening === OPEN_BRACE ? `{${run}}` : `[${run}]`) !== undefined;
  }
}

function closingOf(opening: number): number {
  return opening === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET;
}

function isBlank(text: string): boolean {
  return text.trim() === "";
}
