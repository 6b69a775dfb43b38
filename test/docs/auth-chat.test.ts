import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { freePort } from "../helpers/free-ports.js";
import { ChromiumPage, lacksChromium } from "../helpers/chromium.js";
import { Page } from "../helpers/page-examples.js";
import { startNode, startStreamdir } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";

const BLOCKS = new Page("docs/auth.md").blocksUnder("From nothing to a chat");

function blockWith(part: string): string {
  const block = BLOCKS.find((code) => code.includes(part));
  assert.ok(block !== undefined, part);
  return block;
}

/** The flags of a command of the page. */
function flagsOf(command: string): string[] {
  return [...command.matchAll(/'([^']*)'|([^\s')]+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? "");
}

test("the page's chat works in a browser, and gets a new ticket when its own is over", { skip: lacksChromium }, async (context) => {
  const cwd = tempDir();
  const commands = blockWith("CHAT_TOKEN=$(streamdir");
  const adding = /streamdir (token add .*)\)/.exec(commands)?.[1] ?? "";
  const { status, stdout } = await startStreamdir(context, flagsOf(adding), { cwd }).ended;
  assert.equal(status, 0);
  const token = stdout.trim();
  const keying = /streamdir (token key .*)/.exec(commands)?.[1] ?? "";
  assert.equal((await startStreamdir(context, flagsOf(keying), { cwd }).ended).status, 0);

  const serving = /streamdir (serve .*) &/.exec(blockWith("streamdir serve"))?.[1] ?? "";
  const port = await freePort();
  const server = startStreamdir(context, [...flagsOf(serving), "--port", String(port)], { cwd });
  await server.stdoutLine(/serv/);
  const chat = `http://127.0.0.1:${port}/v1/stream/chat/42`;
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  assert.equal((await fetch(chat, { method: "PUT", headers: { "Content-Type": "application/json" } })).status, 401);
  assert.equal((await fetch(chat, { method: "PUT", headers })).status, 201);

  // As on the page, but for the ports, and for tickets that last for two seconds.
  const pagePort = await freePort();
  const backend = blockWith("createHmac").replaceAll("4437", String(port)).replaceAll("8080", String(pagePort)).replaceAll("3600", "2");
  writeFileSync(join(cwd, "chat.mjs"), backend);
  writeFileSync(join(cwd, "chat.html"), blockWith("<!doctype html>"));
  const env = { CHAT_TOKEN: token };
  const program = startNode(context, ["chat.mjs"], { cwd, env });
  await program.stdoutLine(/^http:/);

  const browser = await ChromiumPage.open(context);
  const shown = "JSON.stringify(Array.from(document.querySelectorAll('#messages li'), (item) => item.textContent))";
  await browser.goTo(`http://127.0.0.1:${pagePort}/`);
  await browser.until("document.readyState === 'complete' && document.forms.length === 1");
  const say = (text: string): Promise<unknown> => browser.evaluate(`{ text.value = ${JSON.stringify(text)}; form.requestSubmit(); }`);
  await say("one");
  await browser.until(`${shown} === '["one"]'`);
  // What is used up to now is refused from here on: the page has to come with a new ticket, and goes on where it was.
  const tickets = "performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/ticket')).length";
  await browser.until(`${tickets} >= 2`);
  await say("two");
  await browser.until(`${shown} === '["one","two"]'`);
  assert.equal(server.stderrText().includes("ticket="), false, "no ticket in the log");
});
