import assert from "node:assert/strict";
import test from "node:test";
import { PROBLEMS } from "../../src/http/encoding/problems.js";
import { bash, Page, PAGE_ORIGIN, servePage, type CodeBlock } from "../helpers/page-examples.js";

const PAGE = new Page("docs/api.md");

/** What differs from server to server and from run to run: the check in an offset, ids, cursors, times, words for people. */
const CHANGING: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [/(\d{16}_\d{10})\d{6}/g, "$1……"],
  [/^(etag: )"[^":]+:/gim, '$1"ID:'],
  [/("streamCursor":"|^stream-cursor: )\d+/gim, "$1CURSOR"],
  [/^(stream-ttl: )\d+/gim, "$1SECONDS"],
  [/^retry: \d+\n/gm, ""],
  [/("closedAt":)"[^"]*"/g, '$1"TIME"'],
  [/,"detail":"[^"]*"/g, ""],
];

function settled(text: string): string {
  return CHANGING.reduce((result, [pattern, replacement]) => result.replaceAll(pattern, replacement), text.replaceAll("\r\n", "\n"));
}

/** The shown answer is a part of the real one: its status, some of its headers, all of its body. */
function assertAnswer(real: string, shown: string): void {
  const [realHead = "", realBody = ""] = halves(settled(real));
  const [shownHead = "", shownBody = ""] = halves(settled(shown));
  const lines = new Set(realHead.split("\n").map(lowerName));
  const missing = shownHead
    .trimEnd()
    .split("\n")
    .map(lowerName)
    .filter((line) => !lines.has(line));
  assert.deepEqual(missing, [], realHead);
  assert.equal(realBody.trimEnd(), shownBody.trimEnd());
}

function halves(answer: string): string[] {
  const end = answer.indexOf("\n\n");
  return end === -1 ? [answer, ""] : [answer.slice(0, end), answer.slice(end + 2)];
}

function lowerName(line: string): string {
  return line.replace(/^[^:]+/, (name) => name.toLowerCase());
}

/** The commands of the page in turn, each with the answer that it shows for the last of them. */
function steps(blocks: readonly CodeBlock[]): { commands: string; answer: string | null }[] {
  return blocks.flatMap(({ language, code }, index) => {
    const next = blocks[index + 1];
    return language === "sh" ? [{ commands: code, answer: next?.language === "http" ? next.code : null }] : [];
  });
}

test("each example of the page gives the answer that is shown", async (context) => {
  const url = new URL(await servePage(context, { longPollTimeoutMs: 100 }));
  const session = steps(PAGE.blocks);
  const script = session.map(({ commands }) => `${commands.replaceAll("curl ", "curl -s ")}printf '\\0'\n`).join("");
  const outputs = (await bash(script.replaceAll(PAGE_ORIGIN, url.origin))).replaceAll(url.origin, PAGE_ORIGIN).split("\0");
  assert.ok(session.filter(({ answer }) => answer !== null).length > 12);
  for (const [index, { answer }] of session.entries()) {
    if (answer !== null) assertAnswer(outputs[index] ?? "", answer);
  }
});

/** The codes of a text, each with the status in the brackets behind it: `a`, `b` (400), `c` (409, with …). */
function codesIn(text: string): { code: string; status: number }[] {
  return [...text.matchAll(/`([a-z-]+)`|\((\d{3})\b/g)].flatMap(([, code], index, all) => {
    if (code === undefined || !(code in PROBLEMS)) return [];
    const [, , status] = all.slice(index).find(([, , status]) => status !== undefined) ?? [];
    return [{ code, status: Number(status) }];
  });
}

test("every error is under an operation that has it, before its status", () => {
  const named = PAGE.text
    .split(/\n\n/)
    .filter((paragraph) => paragraph.startsWith("**Errors"))
    .flatMap(codesIn);
  for (const { code, status } of named) assert.equal(Object.entries(PROBLEMS).find(([name]) => name === code)?.[1].status, status, code);
  assert.deepEqual([...new Set(named.map(({ code }) => code))].sort(), Object.keys(PROBLEMS).sort());
});
