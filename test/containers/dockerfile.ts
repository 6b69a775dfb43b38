import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

/** One instruction of a Dockerfile, its lines joined. */
export interface Instruction {
  readonly name: string;
  readonly text: string;
}

const KNOWN = new Set(["FROM", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "ENV", "HEALTHCHECK", "CMD"]);

/** The instructions of a Dockerfile, in order; fails on one that these tests do not carry out. */
export function instructionsOf(path: string | URL): Instruction[] {
  const lines = readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => !/^\s*#/.test(line))
    .join("\n")
    .replaceAll(/\s*\\\n\s*/g, " ");
  const instructions = lines.split("\n").flatMap((line): Instruction[] => {
    const [, name, text] = /^([A-Z]+)\s+(.*)$/.exec(line.trim()) ?? [];
    if (name === undefined || text === undefined) return line.trim() === "" ? [] : assert.fail(`no instruction: ${line}`);
    assert.ok(KNOWN.has(name), `${name} is not carried out here`);
    return [{ name, text }];
  });
  return instructions;
}

/** What the one instruction of a name says. */
export function only(instructions: readonly Instruction[], name: string): string {
  const [first, ...more] = instructions.filter((instruction) => instruction.name === name);
  assert.ok(first !== undefined && more.length === 0, `one ${name}`);
  return first.text;
}

/** The words of an instruction in its JSON form, like `CMD ["a", "b"]`. */
export function wordsOf(text: string): string[] {
  const words: unknown = JSON.parse(text);
  assert.ok(Array.isArray(words) && words.every((word) => typeof word === "string"));
  return words;
}

/** The command of a HEALTHCHECK, after its flags. */
export function healthcheckOf(text: string): string[] {
  const [, command = ""] = /^(?:--[\w-]+=\w+ )*CMD (.*)$/.exec(text) ?? [];
  return wordsOf(command);
}
