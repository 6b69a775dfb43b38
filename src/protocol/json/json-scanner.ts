// Checks and frames JSON byte by byte.

/** Deepest nesting of arrays and objects in one message; `{}` is 1 deep. */
export const MAX_JSON_DEPTH = 1000;

/** What is wrong with a text: no JSON, JSON after a byte order mark, or nested deeper than {@link MAX_JSON_DEPTH}. */
export type JsonFault = "not-json" | "byte-order-mark" | "too-deep";

// The scanner's state between two bytes. From ZERO on it is within a number that may end there.
const START = 0;
const VALUE = 1;
const FIRST_ELEMENT = 2;
const FIRST_KEY = 3;
const KEY = 4;
const COLON = 5;
const AFTER_VALUE = 6;
const STRING = 7;
const ESCAPE = 8;
const HEX_1 = 9;
const HEX_2 = 10;
const HEX_3 = 11;
const HEX_4 = 12;
const TRUE = [13, 14, 15, AFTER_VALUE] as const;
const FALSE = [16, 17, 18, 19, AFTER_VALUE] as const;
const NULL = [20, 21, 22, AFTER_VALUE] as const;
const MARK_1 = 23;
const MARK_2 = 24;
const MINUS = 25;
const POINT = 26;
const EXPONENT = 27;
const EXPONENT_SIGN = 28;
const ZERO = 29;
const INTEGER = 30;
const FRACTION = 31;
const EXPONENT_DIGITS = 32;
const STATES = 33;

// The actions that a byte can cause instead of a new state: first those that mark only where a string begins and ends.
const OPEN_KEY = 33;
const OPEN_STRING = 34;
const CLOSE_STRING = 35;
const BRACKETS = 36;
const OPEN_OBJECT = 36;
const OPEN_ARRAY = 37;
const CLOSE_OBJECT = 38;
const CLOSE_ARRAY = 39;
const SEPARATE = 40;
const WHITE_SPACE = 41;
const LINE_BREAK = 42;
const MARKED = 43;
const FAULT = 44;

const NEWLINE = 0x0a;
const SPACE = 0x20;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** The next state for each state and byte: RFC 8259, except for what depends on the container. */
const STEPS = stepsOf();

/**
 * Checks a JSON text that comes in parts of any size, and frames it on the way: one level of array is flattened to a
 * message on each line, everything else is one message. A message keeps its bytes, but white space around it goes and
 * line breaks inside become spaces. Each byte is read once and nothing is built from it, so the time depends on the
 * text's length alone: 16 MiB of `{},` take the platform's parser seconds. That a byte beyond ASCII is part of a
 * character is checked elsewhere: here any such byte may stand inside a string.
 */
export class JsonScanner {
  /** What is wrong; `null` while nothing is. After a fault nothing more is scanned. */
  fault: JsonFault | null = null;
  #state = START;
  /** The state after the string that is open, or was last. */
  #afterString = AFTER_VALUE;
  /** Containers that are open, and 1 for each that is an object. */
  #depth = 0;
  readonly #isObject = new Uint8Array(MAX_JSON_DEPTH + 2);
  /** The depth at which messages stand: 1 in an array. */
  #messageDepth = 0;
  #messages = 0;
  /** The line that it is on, from 1, and where that began, from the beginning of the part that was scanned last. */
  line = 1;
  lineStart = 0;
  /** Where in that part the scanner stopped: at a fault, or at the end. */
  stoppedAt = 0;

  /** Starts on another text. */
  reset(): void {
    this.fault = null;
    this.#state = START;
    this.#depth = 0;
    this.#messageDepth = 0;
    this.#messages = 0;
    this.line = 1;
    this.lineStart = 0;
    this.stoppedAt = 0;
  }

  /** Whether the text may end here. */
  get isWhole(): boolean {
    return this.fault === null && this.#depth === 0 && (this.#state === AFTER_VALUE || this.#state >= ZERO);
  }

  /** Messages in a whole text; 0 for an empty array. Each but the last has its `,\n`. */
  get messages(): number {
    return this.#messageDepth === 0 ? 1 : this.#messages;
  }

  /** Scans `text` and writes what is stored of it to `out`; returns its length, at most {@link framedRoom}. */
  scan(text: Buffer, out: Buffer): number {
    let state = this.#state;
    let length = 0;
    this.lineStart -= this.stoppedAt;
    for (let at = 0; at < text.length; at++) {
      const byte = text[at] ?? 0;
      const step = STEPS[(state << 8) | byte] ?? FAULT;
      if (step < STATES) {
        out[length++] = byte;
        state = step;
        // Most bytes of most texts are in strings.
        if (step === STRING) while (at + 1 < text.length && isPlain(text[at + 1] ?? 0)) out[length++] = text[++at] ?? 0;
      } else if (step < BRACKETS) {
        out[length++] = byte;
        if (step === CLOSE_STRING) state = this.#afterString;
        else {
          this.#afterString = step === OPEN_KEY ? COLON : AFTER_VALUE;
          state = STRING;
        }
      } else if (step === WHITE_SPACE || step === LINE_BREAK) {
        if (this.#depth > this.#messageDepth) out[length++] = step === LINE_BREAK ? SPACE : byte;
        if (state >= ZERO) state = AFTER_VALUE;
        if (byte === NEWLINE) this.#beginLine(at + 1);
      } else if (step === SEPARATE && this.#depth > 0) {
        out[length++] = byte;
        if (this.#depth === this.#messageDepth) out[length++] = this.#nextMessage();
        state = this.#isObject[this.#depth] === 1 ? KEY : VALUE;
      } else {
        // An array of messages is one level deeper on the inner side of its brackets than on the outer side.
        const depthBefore = this.#depth;
        state = this.#bracket(step, state);
        if (this.fault !== null) {
          this.stoppedAt = at;
          return length;
        }
        if (Math.min(depthBefore, this.#depth) >= this.#messageDepth) out[length++] = byte;
      }
    }
    this.#state = state;
    this.stoppedAt = text.length;
    return length;
  }

  #beginLine(start: number): void {
    this.line += 1;
    this.lineStart = start;
  }

  #nextMessage(): number {
    this.#messages += 1;
    return NEWLINE;
  }

  /** The state after a bracket, or after a byte that is not allowed here. */
  #bracket(step: number, state: number): number {
    switch (step) {
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        return this.#open(step === OPEN_OBJECT);
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        return this.#close(step === CLOSE_OBJECT, state);
      default:
        return this.#fail(step === MARKED ? "byte-order-mark" : "not-json");
    }
  }

  #open(isObject: boolean): number {
    if (this.#depth === MAX_JSON_DEPTH + this.#messageDepth) return this.#fail("too-deep");
    if (this.#depth === 0 && !isObject) this.#messageDepth = 1;
    this.#depth += 1;
    this.#isObject[this.#depth] = isObject ? 1 : 0;
    return isObject ? FIRST_KEY : FIRST_ELEMENT;
  }

  #close(isObject: boolean, state: number): number {
    if (this.#depth === 0 || this.#isObject[this.#depth] !== (isObject ? 1 : 0)) return this.#fail("not-json");
    if (this.#depth === this.#messageDepth && state !== FIRST_ELEMENT) this.#messages += 1;
    this.#depth -= 1;
    return AFTER_VALUE;
  }

  #fail(fault: JsonFault): number {
    this.fault = fault;
    return START;
  }
}

/** The most that scanning `length` bytes writes: of two bytes at most one ends a message, and gets a line break. */
export function framedRoom(length: number): number {
  return length + (length >>> 1) + 1;
}

/** Whether a byte inside a string stands for itself. */
function isPlain(byte: number): boolean {
  return byte >= SPACE && byte !== QUOTE && byte !== BACKSLASH;
}

function stepsOf(): Uint8Array {
  const steps = new Uint8Array(STATES << 8).fill(FAULT);
  const lead = (states: readonly number[], characters: string, step: number): void => {
    for (const state of states) for (const byte of Buffer.from(characters, "latin1")) steps[(state << 8) | byte] = step;
  };
  const digits = "0123456789";
  const numbers = [ZERO, INTEGER, FRACTION, EXPONENT_DIGITS];
  const values = [START, VALUE, FIRST_ELEMENT];
  const spaced = [...values, FIRST_KEY, KEY, COLON, AFTER_VALUE, ...numbers];
  lead(spaced, " \t", WHITE_SPACE);
  lead(spaced, "\n\r", LINE_BREAK);

  lead(values, "{", OPEN_OBJECT);
  lead(values, "[", OPEN_ARRAY);
  lead(values, '"', OPEN_STRING);
  lead([FIRST_KEY, KEY], '"', OPEN_KEY);
  lead([COLON], ":", VALUE);
  lead([AFTER_VALUE, ...numbers], ",", SEPARATE);
  lead([AFTER_VALUE, ...numbers, FIRST_KEY], "}", CLOSE_OBJECT);
  lead([AFTER_VALUE, ...numbers, FIRST_ELEMENT], "]", CLOSE_ARRAY);

  for (let byte = 0; byte < 256; byte++) if (isPlain(byte)) steps[(STRING << 8) | byte] = STRING;
  lead([STRING], '"', CLOSE_STRING);
  lead([STRING], "\\", ESCAPE);
  lead([ESCAPE], '"\\/bfnrt', STRING);
  lead([ESCAPE], "u", HEX_1);
  const hexadecimal = [HEX_1, HEX_2, HEX_3, HEX_4];
  hexadecimal.forEach((state, at) => lead([state], `${digits}abcdefABCDEF`, hexadecimal[at + 1] ?? STRING));

  for (const [word, states] of [
    ["true", TRUE],
    ["false", FALSE],
    ["null", NULL],
  ] as const) {
    [...word].forEach((letter, at) => {
      const before = states[at - 1];
      lead(before === undefined ? values : [before], letter, states[at] ?? AFTER_VALUE);
    });
  }

  lead(values, "-", MINUS);
  lead([...values, MINUS], "0", ZERO);
  lead([...values, MINUS], "123456789", INTEGER);
  lead([INTEGER], digits, INTEGER);
  lead([ZERO, INTEGER], ".", POINT);
  lead([POINT, FRACTION], digits, FRACTION);
  lead([ZERO, INTEGER, FRACTION], "eE", EXPONENT);
  lead([EXPONENT], "+-", EXPONENT_SIGN);
  lead([EXPONENT, EXPONENT_SIGN, EXPONENT_DIGITS], digits, EXPONENT_DIGITS);

  lead([START], "\xef", MARK_1);
  lead([MARK_1], "\xbb", MARK_2);
  lead([MARK_2], "\xbf", MARKED);
  return steps;
}
