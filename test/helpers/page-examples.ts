import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { createServer, type ServerOptions } from "../../src/server.js";
import { startNode, type TestScope } from "./process.js";
import { tempDir } from "./temp-dir.js";

const ROOT = new URL("../../", import.meta.url);
const INDEX = new URL("src/index.ts", ROOT).href;

/** Makes `streamdir` in a shell example the command from its sources. */
export const STREAMDIR_IN_SHELL = `streamdir() { ${[
  process.execPath,
  "--import",
  import.meta.resolve("tsx"),
  fileURLToPath(new URL("src/cli/main.ts", ROOT)),
]
  .map((word) => JSON.stringify(word))
  .join(" ")} "$@"; }\n`;

/** Where the pages' examples expect a server. */
export const PAGE_ORIGIN = "http://127.0.0.1:4437";

/** A block of code: what stands behind its opening fence, and what it holds. */
export interface CodeBlock {
  readonly language: string;
  readonly code: string;
}

/** A page of the documentation, and the code that it shows. */
export class Page {
  readonly text: string;

  /** `path` is from the root of the project. */
  constructor(path: string) {
    this.text = readFileSync(new URL(path, ROOT), "utf8");
  }

  /** All of its code, in order. */
  get blocks(): CodeBlock[] {
    return blocksOf(this.text);
  }

  /** The code under a heading of the second level. */
  blocksUnder(heading: string): string[] {
    const section = this.text.split(/^## /m).find((part) => part.startsWith(`${heading}\n`));
    assert.ok(section !== undefined, `there is no heading ${heading}`);
    return blocksOf(section).map(({ code }) => code);
  }

  onlyBlock(heading: string): string {
    const [block = "", ...more] = this.blocksUnder(heading);
    assert.equal(more.length, 0, `one example under ${heading}`);
    return block;
  }

  /** Compares the table between `<!-- NAME:begin -->` and `<!-- NAME:end -->`; with UPDATE_DOCS it is written anew instead. */
  assertTable(path: string, name: string, table: string): void {
    const [begin, end] = [`<!-- ${name}:begin -->\n`, `\n<!-- ${name}:end -->`];
    const from = this.text.indexOf(begin) + begin.length;
    const to = this.text.indexOf(end);
    assert.ok(from >= begin.length && to >= from, `${path} has a table ${name}`);
    if (process.env["UPDATE_DOCS"] !== undefined)
      writeFileSync(new URL(path, ROOT), this.text.slice(0, from) + table + this.text.slice(to));
    else assert.equal(this.text.slice(from, to), table, "UPDATE_DOCS=1 writes it anew");
  }
}

function blocksOf(markdown: string): CodeBlock[] {
  return [...markdown.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = "", code = ""]) => ({ language, code }));
}

/** A server for one test; its address is what replaces that of the pages. */
export async function servePage(context: TestScope, options: Partial<ServerOptions> = {}): Promise<string> {
  const server = await createServer({ dir: tempDir(), port: 0, ...options });
  context.after(() => server.close());
  return server.url;
}

/** Runs a script and gives what it printed; fails when a command of it does. */
export async function bash(script: string): Promise<string> {
  const child = spawn("bash", ["-euo", "pipefail", "-c", script], { stdio: ["ignore", "pipe", "inherit"] });
  const [output, [status]] = await Promise.all([text(child.stdout), once(child, "close")]);
  assert.equal(status, 0, script);
  return output;
}

/** What an example of the library is run with. */
export interface ExampleChange {
  /** The beginning of a line of the example. */
  readonly at: string;
  /** Code that is put in front of that line. */
  readonly before: string;
}

/** Runs an example of the library in a process of its own, on a directory of its own, and gives what it printed. */
export async function runExample(scope: TestScope, example: string, { at, before }: ExampleChange): Promise<string> {
  const dir = tempDir();
  const code = example
    .replace('"streamdir"', JSON.stringify(INDEX))
    .replace('"./data"', JSON.stringify(join(dir, "data")))
    .replace("8080", "0")
    .replace(at, `${before}\n${at}`);
  const file = join(dir, "example.mjs");
  writeFileSync(file, code);
  const ended = await startNode(scope, ["--import", import.meta.resolve("tsx"), file]).ended;
  assert.equal(ended.status, 0, ended.stderr);
  return ended.stdout;
}
