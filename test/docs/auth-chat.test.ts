import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { freePort } from "../helpers/free-ports.js";
import { ChromiumPage, lacksChromium } from "../helpers/chromium.js";
import { Page } from "../helpers/page-examples.js";
import { passingProxy } from "../helpers/passing-proxy.js";
import { startNode, startStreamdir, type TestProcess } from "../helpers/process.js";
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

/** What the page shows. */
const SHOWN = "JSON.stringify(Array.from(document.querySelectorAll('#messages li'), (item) => item.textContent))";

/** The chat as the page sets it up, but for the ports, and for tickets that last for two seconds; `passing` gives what a browser opens. */
async function startChat(context: TestContext, passing = async (url: string): Promise<string> => url) {
  const cwd = tempDir();
  const commands = blockWith("CHAT_TOKEN=$(streamdir");
  const adding = /streamdir (token add .*)\)/.exec(commands)?.[1] ?? "";
  const { status, stdout } = await startStreamdir(context, flagsOf(adding), { cwd }).ended;
  assert.equal(status, 0);
  const token = stdout.trim();
  const keying = /streamdir (token key .*)/.exec(commands)?.[1] ?? "";
  assert.equal((await startStreamdir(context, flagsOf(keying), { cwd }).ended).status, 0);

  const owning = ["token", "add", "--auth", "auth.json", "--id", "owner", "--allow", "create,delete", "--streams", "**"];
  const owner = (await startStreamdir(context, owning, { cwd }).ended).stdout.trim();

  const serving = /streamdir (serve .*) &/.exec(blockWith("streamdir serve"))?.[1] ?? "";
  const port = await freePort();
  const serve = async (): Promise<TestProcess> => {
    const server = startStreamdir(context, [...flagsOf(serving), "--port", String(port)], { cwd });
    await server.stdoutLine(/serv/);
    return server;
  };
  const server = await serve();
  const chat = `http://127.0.0.1:${port}/v1/stream/chat/42`;
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  assert.equal((await fetch(chat, { method: "PUT", headers: { "Content-Type": "application/json" } })).status, 401);
  assert.equal((await fetch(chat, { method: "PUT", headers })).status, 201);

  const pagePort = await freePort();
  const backend = blockWith("createHmac").replaceAll("4437", String(port)).replaceAll("8080", String(pagePort)).replaceAll("3600", "2");
  writeFileSync(join(cwd, "chat.mjs"), backend);
  writeFileSync(join(cwd, "chat.html"), blockWith("<!doctype html>"));
  const program = startNode(context, ["chat.mjs"], { cwd, env: { CHAT_TOKEN: token } });
  await program.stdoutLine(/^http:/);

  const browser = await ChromiumPage.open(context);
  await browser.goTo(await passing(`http://127.0.0.1:${pagePort}/`));
  await browser.until("document.readyState === 'complete' && document.forms.length === 1");
  const say = (text: string): Promise<unknown> => browser.evaluate(`{ text.value = ${JSON.stringify(text)}; form.requestSubmit(); }`);
  return { chat, owner, server, serve, browser, say };
}

test("the page's chat works in a browser, and gets a new ticket when its own is over", { skip: lacksChromium }, async (context) => {
  const { server, browser, say } = await startChat(context);
  await say("one");
  await browser.until(`${SHOWN} === '["one"]' && text.value === ''`);
  // What is used up to now is refused from here on: the page has to come with a new ticket, and goes on where it was.
  const tickets = "performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/ticket')).length";
  await browser.until(`${tickets} >= 2`);
  await say("two");
  await browser.until(`${SHOWN} === '["one","two"]'`);
  assert.equal(server.stderrText().includes("ticket="), false, "no ticket in the log");
});

test("while the server is away a text stays in its field, and the chat goes on afterwards", { skip: lacksChromium }, async (context) => {
  const { server, serve, browser, say } = await startChat(context);
  await say("one");
  await browser.until(`${SHOWN} === '["one"]'`);
  server.kill("SIGTERM");
  await server.ended;
  await browser.evaluate(
    `{ const ask = fetch;
       window.fetch = (...asked) => ask(...asked).then((answer) => { if (answer.status === 502) window.isRefused = true; return answer; }); }`,
  );
  await say("two");
  await browser.until("window.isRefused");
  assert.equal(await browser.evaluate("text.value"), "two");
  await serve();
  await browser.evaluate("form.requestSubmit()");
  await browser.until(`${SHOWN} === '["one","two"]' && text.value === ''`);
});

test("the chat shows a stream that was made anew, and stops when there is none", { skip: lacksChromium }, async (context) => {
  const { chat, owner, browser, say } = await startChat(context);
  const headers = { Authorization: `Bearer ${owner}`, "Content-Type": "application/json" };
  await say("one");
  await browser.until(`${SHOWN} === '["one"]'`);
  // The page asks for nothing until the new stream is there.
  await browser.evaluate(
    `{ const [ask, held] = [fetch, new Promise((go) => (window.goOn = go))];
       window.fetch = (...asked) => held.then(() => ask(...asked)); }`,
  );
  assert.equal((await fetch(chat, { method: "DELETE", headers })).status, 204);
  assert.equal((await fetch(chat, { method: "PUT", headers, body: '{"text":"anew"}' })).status, 201);
  await browser.evaluate("goOn()");
  await browser.until(`${SHOWN} === '["anew"]'`);
  await fetch(chat, { method: "DELETE", headers });
  await browser.until('document.body.textContent.includes("This chat can\'t be read.")');
});

test("the chat goes on where the answer with its ticket broke off", { skip: lacksChromium }, async (context) => {
  const { browser, say } = await startChat(context, (url) => {
    let tickets = 0;
    return passingProxy(context, url, (req, res) => {
      if (req.url !== "/ticket" || ++tickets > 1) return false;
      res.writeHead(200, { "Content-Length": "100" }).write("http://", () => res.destroy());
      return true;
    });
  });
  await say("one");
  await browser.until(`${SHOWN} === '["one"]'`);
});
