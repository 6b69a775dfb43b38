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

test("a writer that lost its count goes on as the page says: an answered 204 or stale-epoch was not stored, the epoch after it is", async (context) => {
  const url = `${await servePage(context)}s`;
  const type = { "Content-Type": "text/plain" };
  await fetch(url, { method: "PUT", headers: type });
  const append = (epoch: number, seq: number, body: string): Promise<Response> => {
    const producer = { "Producer-Id": "w", "Producer-Epoch": String(epoch), "Producer-Seq": String(seq) };
    return fetch(url, { method: "POST", headers: { ...type, ...producer }, body });
  };
  await append(0, 0, "a");
  await append(0, 1, "b");
  for (const [body, status] of [
    ["c", 204],
    ["d", 403],
  ] as const) {
    const first = await append(0, 0, body);
    assert.equal(first.status, status);
    const next = Number(first.headers.get("Producer-Epoch")) + 1;
    assert.equal((await append(next, 0, body)).status, 200);
  }
  assert.equal(await (await fetch(url)).text(), "abcd");
});

test("a CRLF in two appends is two line ends for who follows, and one for who reads both, as the page says", async (context) => {
  const url = `${await servePage(context, { sseLifetimeMs: 100 })}s`;
  const headers = { "Content-Type": "text/plain" };
  const followed = async (offset: string): Promise<string> => {
    const text = await (await fetch(`${url}?live=sse&offset=${offset}`)).text();
    return /^event: data\n(?:data:.*\n)+/m.exec(text)?.[0] ?? "";
  };
  await fetch(url, { method: "PUT", headers, body: "a\r" });
  const between = (await fetch(url, { method: "HEAD" })).headers.get("Stream-Next-Offset") ?? "";
  assert.equal(await followed("-1"), "event: data\ndata:a\ndata:\n");
  await fetch(url, { method: "POST", headers, body: "\nb" });
  assert.equal(await followed(between), "event: data\ndata:\ndata:b\n");
  assert.equal(await followed("-1"), "event: data\ndata:a\ndata:b\n");
});
