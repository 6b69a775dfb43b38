// Reads JSON that a person wrote: what is wrong is said with the file, the line, and what would be right.

import { parseJsonTree } from "../protocol/json/json-tree.js";
import type { JsonTree } from "../protocol/json/json-tree.js";

/** Why an auth file is not taken: one line that begins with the file and the line. */
export class AuthFileError extends Error {}

/** The same where the system could not read a file: it may be able to later. */
export class UnreadFileError extends AuthFileError {}

/** A file that was read. */
export interface SourceText {
  readonly file: string;
  readonly text: string;
}

/** What is wrong at a character of a file. */
export function faultAt({ file, text }: SourceText, at: number, words: string): AuthFileError {
  let line = 1;
  for (let next = text.indexOf("\n"); next >= 0 && next < at; next = text.indexOf("\n", next + 1)) line++;
  return new AuthFileError(`${file}:${line}: ${words}`);
}

/** The document in a file; throws where it is no JSON. */
export function checkedDocument(source: SourceText): Checked {
  const tree = parseJsonTree(source.text);
  if (tree.kind === "fault") throw faultAt(source, tree.at, `the file ${tree.words}`);
  return new Checked(source, tree, "the file");
}

/** The members of an object, each of which is known. */
export interface CheckedMembers {
  required(key: string): Checked;
  /** `null` where it is not there. */
  optional(key: string): Checked | null;
}

/** A value of a file, with its name for refusals, like `tokens[3].id`. Each method throws {@link AuthFileError}. */
export class Checked {
  readonly #source: SourceText;
  readonly #tree: JsonTree;
  readonly #name: string;

  constructor(source: SourceText, tree: JsonTree, name: string) {
    this.#source = source;
    this.#tree = tree;
    this.#name = name;
  }

  /** What is wrong with it, in words that follow its name. */
  fault(words: string): AuthFileError {
    return faultAt(this.#source, this.#tree.at, `${this.#name} ${words}`);
  }

  /** Its members; refuses any that is not among `known`. */
  members(known: readonly string[]): CheckedMembers {
    const tree = this.#tree;
    if (tree.kind !== "object") throw this.fault("must be an object, in { }");
    for (const [key, { at }] of tree.members) {
      if (!known.includes(key))
        throw faultAt(
          this.#source,
          at,
          `${this.#name} has the unknown key ${short(key)}; known are ${known.join(", ")}`,
        );
    }
    const optional = (key: string): Checked | null => {
      const member = tree.members.get(key);
      return member === undefined ? null : new Checked(this.#source, member.value, this.#nameOf(`.${key}`));
    };
    return {
      optional,
      required: (key) => {
        const member = optional(key);
        if (member === null) throw this.fault(`needs the key "${key}"`);
        return member;
      },
    };
  }

  /** Its items: at least one, at most `max`. */
  list(max: number): Checked[] {
    const tree = this.#tree;
    if (tree.kind !== "array") throw this.fault("must be a list, in [ ]");
    if (tree.items.length === 0) throw this.fault("must not be empty; leave its key out instead");
    if (tree.items.length > max) throw this.fault(`has ${tree.items.length} items; at most ${max} are taken`);
    return tree.items.map((item, at) => new Checked(this.#source, item, this.#nameOf(`[${at}]`)));
  }

  /** A text that is not empty. */
  text(maxChars: number): string {
    const tree = this.#tree;
    if (tree.kind !== "string") throw this.fault("must be a text, in double quotes");
    if (tree.value === "") throw this.fault("must not be empty");
    if (tree.value.length > maxChars) throw this.fault(`must have at most ${maxChars} characters`);
    return tree.value;
  }

  boolean(): boolean {
    if (this.#tree.kind !== "boolean") throw this.fault("must be true or false");
    return this.#tree.value;
  }

  #nameOf(step: string): string {
    return this.#name === "the file" ? step.replace(/^\./, "") : `${this.#name}${step}`;
  }
}

/** Refuses the second of two items that have the same `key`. */
export function refuseTwice<T>(items: readonly Checked[], values: readonly T[], keyOf: (value: T) => string): void {
  const seen = new Set<string>();
  for (const [at, value] of values.entries()) {
    const key = keyOf(value);
    if (seen.has(key)) throw items[at]?.fault(`is the second one with the name ${short(key)}; each needs its own`);
    seen.add(key);
  }
}

/** A text as a refusal repeats it. */
export function short(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}...` : text);
}
