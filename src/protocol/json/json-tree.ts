// Parses JSON that people write, or that decides who may do what: strictly, and with the place of each value.

/** A JSON value, and at which character it begins. Members keep their order; no key is there twice. */
export type JsonTree =
  | { readonly kind: "object"; readonly at: number; readonly members: ReadonlyMap<string, JsonMember> }
  | { readonly kind: "array"; readonly at: number; readonly items: readonly JsonTree[] }
  | { readonly kind: "string"; readonly at: number; readonly value: string }
  | { readonly kind: "number"; readonly at: number; readonly value: number }
  | { readonly kind: "boolean"; readonly at: number; readonly value: boolean }
  | { readonly kind: "null"; readonly at: number };

/** A member of an object; `at` is where its key begins. */
export interface JsonMember {
  readonly at: number;
  readonly value: JsonTree;
}

/** Why a text is not taken, as words that follow "the file", and at which character. */
export interface JsonFault {
  readonly kind: "fault";
  readonly at: number;
  readonly words: string;
}

const MAX_DEPTH = 32;
const WHITE_SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const FIRST_PRINTABLE = 0x20;

/** Parses RFC 8259 JSON; refuses a key that is there twice, and more than 32 levels. Never throws. */
export function parseJsonTree(text: string): JsonTree | JsonFault {
  try {
    return new Parser(text).document();
  } catch (error) {
    if (error instanceof Refused) return { kind: "fault", at: error.at, words: error.message };
    throw error;
  }
}

class Refused extends Error {
  readonly at: number;

  constructor(at: number, words: string) {
    super(words);
    this.at = at;
  }
}

class Parser {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): JsonTree {
    const value = this.#value();
    this.#skipSpace();
    if (this.#at < this.#text.length) throw new Refused(this.#at, "has more text after its end");
    return value;
  }

  #value(): JsonTree {
    this.#skipSpace();
    const at = this.#at;
    switch (this.#text[at]) {
      case "{":
        return { kind: "object", at, members: this.#nested(() => this.#members()) };
      case "[":
        return { kind: "array", at, items: this.#nested(() => this.#items()) };
      case '"':
        return { kind: "string", at, value: this.#string() };
      case "t":
        return { kind: "boolean", at, value: this.#word("true", true) };
      case "f":
        return { kind: "boolean", at, value: this.#word("false", false) };
      case "n":
        this.#word("null", null);
        return { kind: "null", at };
      default:
        return { kind: "number", at, value: this.#number() };
    }
  }

  #nested<T>(read: () => T): T {
    if (++this.#depth > MAX_DEPTH) throw new Refused(this.#at, `is nested more than ${MAX_DEPTH} levels deep`);
    this.#at++;
    const value = read();
    this.#depth--;
    return value;
  }

  #members(): Map<string, JsonMember> {
    const members = new Map<string, JsonMember>();
    if (this.#takes("}")) return members;
    do {
      this.#skipSpace();
      const at = this.#at;
      if (this.#text[at] !== '"') throw this.#unexpected("a key in double quotes");
      const key = this.#string();
      if (members.has(key)) throw new Refused(at, `has the key ${JSON.stringify(key)} twice in one object`);
      if (!this.#takes(":")) throw this.#unexpected(`":" after the key ${JSON.stringify(key)}`);
      members.set(key, { at, value: this.#value() });
    } while (this.#takes(","));
    if (!this.#takes("}")) throw this.#unexpected('"," or "}"');
    return members;
  }

  #items(): JsonTree[] {
    const items: JsonTree[] = [];
    if (this.#takes("]")) return items;
    do items.push(this.#value());
    while (this.#takes(","));
    if (!this.#takes("]")) throw this.#unexpected('"," or "]"');
    return items;
  }

  #string(): string {
    const start = this.#at;
    for (let at = start + 1; ; at++) {
      const code = this.#text.charCodeAt(at);
      if (code === QUOTE) {
        this.#at = at + 1;
        return unescaped(this.#text.slice(start, at + 1), start);
      }
      // Not a number: the text ends within the string.
      if (!(code >= FIRST_PRINTABLE)) throw new Refused(start, "has a text without its closing quote");
      if (code === BACKSLASH) at++;
    }
  }

  #number(): number {
    NUMBER.lastIndex = this.#at;
    const [written] = NUMBER.exec(this.#text) ?? [];
    if (written === undefined) throw this.#unexpected("a value");
    this.#at += written.length;
    return Number(written);
  }

  #word<T>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) throw this.#unexpected("a value");
    this.#at += word.length;
    return value;
  }

  #takes(mark: string): boolean {
    this.#skipSpace();
    const isThere = this.#text[this.#at] === mark;
    if (isThere) this.#at++;
    return isThere;
  }

  #skipSpace(): void {
    WHITE_SPACE.lastIndex = this.#at;
    WHITE_SPACE.test(this.#text);
    this.#at = WHITE_SPACE.lastIndex;
  }

  #unexpected(wanted: string): Refused {
    const found = String.fromCodePoint(this.#text.codePointAt(this.#at) ?? 0);
    const what = this.#at < this.#text.length ? JSON.stringify(found) : "the end";
    return new Refused(this.#at, `has ${what} where ${wanted} belongs`);
  }
}

function unescaped(quoted: string, at: number): string {
  try {
    const value: unknown = JSON.parse(quoted);
    return String(value);
  } catch {
    throw new Refused(at, "has a text with an escape that JSON does not have");
  }
}
