import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { ChromiumPage, lacksChromium } from "../../helpers/chromium.js";
import { servePage } from "../../helpers/page-examples.js";
import { Gateway, passingProxy } from "../../helpers/passing-proxy.js";
import { startNode, type TestProcess } from "../../helpers/process.js";
import { tempDir } from "../../helpers/temp-dir.js";

const PROGRAM = fileURLToPath(new URL("../../../docs/recipes/chat-reply.mjs", import.meta.url));

/** The program, beside a server of streams. */
async function start(context: TestContext): Promise<{ streams: string; page: string; program: TestProcess }> {
  const streams = await servePage(context);
  return { streams, ...(await startProgram(context, PROGRAM, streams)) };
}

async function startProgram(context: TestContext, file: string, streams: string): Promise<{ page: string; program: TestProcess }> {
  const program = startNode(context, [file], { env: { STREAMS: streams, PORT: "0" } });
  return { program, page: await program.stdoutLine(/^http:/) };
}

/** Passes all on to a server of streams but the first three closes: one is dropped, two are answered with what passes. */
async function startProxy(context: TestContext, streams: string): Promise<string> {
  let closes = 0;
  const origin = await passingProxy(context, streams, (req, res) => {
    if (req.headers["stream-closed"] !== undefined) closes += 1;
    if (closes === 1) res.destroy();
    else if (closes === 2) res.writeHead(503, { "Retry-After": "0" }).end();
    else if (closes === 3) res.writeHead(408, { "Retry-After": "0" }).end();
    return closes >= 1 && closes <= 3;
  });
  return origin + new URL(streams).pathname;
}

/** Reads a stream live until `enough`. */
async function readUntil(url: string, enough: (text: string) => boolean): Promise<string> {
  let text = "";
  for (let offset = "-1"; !enough(text);) {
    const answer = await fetch(`${url}?live=long-poll&offset=${offset}`);
    text += await answer.text();
    offset = answer.headers.get("Stream-Next-Offset") ?? "";
  }
  return text;
}

test("a reply is there from its beginning for whoever comes, until it is stopped", async (context) => {
  const { streams, page, program } = await start(context);
  const url = streams + (await (await fetch(page, { method: "POST", body: "How many" })).text());
  const begun = await readUntil(url, (text) => text.includes(" 3 "));
  assert.match(begun, /^How many\? Let me count: 1 2 3 /);
  assert.equal((await fetch(url, { method: "POST", headers: { "Stream-Closed": "true" } })).status, 204);
  const line = await program.stdoutLine(/^stopped/);
  const whole = await (await fetch(url)).text();
  assert.ok(whole.startsWith(begun));
  assert.equal(line, `stopped after ${whole.trimEnd().split(" ").length - 5 + 1} pieces`);
});

/** Asks for a short reply, and resolves to its name when the program says that it is written. */
async function writeShort(context: TestContext, streams: string): Promise<string> {
  const short = join(tempDir(), "chat-reply.mjs");
  writeFileSync(short, readFileSync(PROGRAM, "utf8").replace("number <= 1000", "number <= 2"));
  const { page, program } = await startProgram(context, short, streams);
  const name = await (await fetch(page, { method: "POST", body: "How many" })).text();
  const failed = program.stderrLine(/./).then((line) => assert.fail(line));
  assert.equal(await Promise.race([program.stdoutLine(/^wrote/), failed]), "wrote 3 pieces");
  return name;
}

/** A short reply is stored whole and closed. */
function assertWhole(whole: { readonly text: string; readonly closed: unknown }): void {
  assert.deepEqual(whole, { text: "How many? Let me count: 1 2 ", closed: "true" });
}

test("a reply that is whole is closed, also where the first requests to close it fail", async (context) => {
  const streams = await servePage(context);
  const whole = await fetch(streams + (await writeShort(context, await startProxy(context, streams))));
  assertWhole({ text: await whole.text(), closed: whole.headers.get("Stream-Closed") });
});

/** What a model gives that is not as one wishes: pieces without text, and a fault in place of the rest. */
const MODELS: readonly { readonly says: string; readonly body: string; readonly line: RegExp; readonly text: string }[] = [
  { says: "gives empty pieces", body: 'yield ""; yield "Two "; yield ""; yield "pieces";', line: /^wrote 2 pieces/, text: "Two pieces" },
  { says: "fails", body: 'yield "Half a "; throw new Error("model");', line: /^Error: model/, text: "Half a " },
];

for (const { says, body, line, text } of MODELS) {
  test(`a reply is closed where the model ${says}`, async (context) => {
    const streams = await servePage(context);
    const changed = join(tempDir(), "chat-reply.mjs");
    const source = readFileSync(PROGRAM, "utf8");
    assert.ok(source.includes("function* replyTo(question) {"));
    writeFileSync(
      changed,
      source.replace("function* replyTo(question) {", (head) => `${head} ${body} return;`),
    );
    const { page, program } = await startProgram(context, changed, streams);
    const name = await (await fetch(page, { method: "POST", body: "What" })).text();
    await Promise.race([program.stdoutLine(line), program.stderrLine(line)]);
    const reply = await fetch(streams + name);
    assert.deepEqual({ text: await reply.text(), closed: reply.headers.get("Stream-Closed") }, { text, closed: "true" });
  });
}

test("a reply is written whole where the server limits its rate", async (context) => {
  const streams = await servePage(context, { rateLimit: "1" });
  let limited = 0;
  const watching = await passingProxy(context, streams, (_req, res) => {
    res.on("finish", () => (limited += Number(res.statusCode === 429)));
    return false;
  });
  const name = await writeShort(context, watching + new URL(streams).pathname);
  assert.ok(limited > 0, "pieces were refused");
  // Another address has a rate of its own.
  const reading = get(streams + name, { localAddress: "127.0.0.2" });
  const [whole] = (await once(reading, "response")) as [IncomingMessage]; // as http has it
  assertWhole({ text: await text(whole), closed: whole.headers["stream-closed"] });
});

test("the page shows the reply again after a reload, and Stop stops the writer", { skip: lacksChromium }, async (context) => {
  const { page, program } = await start(context);
  const browser = await ChromiumPage.open(context);
  const reply = "document.querySelector('#reply').textContent";
  await browser.goTo(page);
  await browser.until("document.readyState === 'complete' && document.forms.length === 1");
  await browser.evaluate("document.querySelector('form button').click()");
  await browser.until(`${reply}.includes(' 3 ')`);
  await browser.reload();
  await browser.until(`${reply}.includes(' 9 ')`);
  assert.match(String(await browser.evaluate(reply)), /^How many\? Let me count: 1 2 3 4 5 6 7 8 9 /);
  await browser.evaluate("document.querySelector('#stop').click()");
  await program.stdoutLine(/^stopped/);
  await browser.until("document.querySelector('#stop').hidden");
});

test("the page shows the reply of its address, and says what can't be had", { skip: lacksChromium }, async (context) => {
  const { streams, page } = await start(context);
  const name = await (await fetch(page, { method: "POST", body: "How far" })).text();
  const browser = await ChromiumPage.open(context);
  const [reply, note] = ["#reply", "#note"].map((selector) => `document.querySelector('${selector}').textContent`);
  await browser.goTo(`${page}#chat/none`);
  await browser.until(`document.readyState === 'complete' && ${note} === 'There is no such reply, or no more.'`);
  assert.equal(await browser.evaluate("document.querySelector('#stop').hidden"), true);
  await browser.evaluate(`location.hash = ${JSON.stringify(name)}`);
  await browser.until(`${reply}.startsWith('How far? Let me count: 1 ') && ${note} === ''`);
  // The page asks a server that refuses in place of the program.
  await browser.evaluate(`{ const ask = fetch; window.fetch = (url, asked) => ask(url === "/" ? "${streams}" : url, asked); }`);
  await browser.evaluate("document.querySelector('form button').click()");
  await browser.until(`${note} === 'The question was not taken: ask again.'`);
  assert.equal(await browser.evaluate("location.hash"), `#${name}`);
});

test("the page goes on after a proxy's 502, while the server was away", { skip: lacksChromium }, async (context) => {
  const gateway = await Gateway.start(context, await servePage(context));
  const { page } = await startProgram(context, PROGRAM, gateway.streams);
  const name = await (await fetch(page, { method: "POST", body: "How far" })).text();
  const browser = await ChromiumPage.open(context);
  const [reply, note] = ["document.querySelector('#reply').textContent", "document.querySelector('#note').textContent"] as const;
  await browser.goTo(`${page}#${name}`);
  await browser.until(`document.readyState === 'complete' && ${reply}.includes(' 3 ')`);
  await gateway.loseServer();
  const shown = String(await browser.evaluate(reply));
  gateway.findServer();
  await browser.until(`${reply}.length > ${shown.length + 10}`);
  const numbers = Array.from({ length: 1000 }, (_, index) => `${index + 1} `).join("");
  assert.ok(`How far? Let me count: ${numbers}`.startsWith(String(await browser.evaluate(reply))), "each piece once");
  assert.equal(await browser.evaluate(note), "");
});

test(
  "seven tabs show a reply, the last one stops it, and the first goes on when it is seen again",
  { skip: lacksChromium },
  async (context) => {
    const { streams, page, program } = await start(context);
    const name = await (await fetch(page, { method: "POST", body: "How far" })).text();
    const browser = await ChromiumPage.open(context, ["--disable-popup-blocking"]);
    const shows = (tab: string): Promise<void> =>
      browser.until(`${tab}.document.querySelector('#reply')?.textContent.startsWith('How far? Let me count: 1 2 3 ')`);
    await browser.goTo(`${page}#${name}`);
    await shows("window");
    await browser.evaluate("void (window.tabs = [])");
    for (let tab = 0; tab < 6; tab++) {
      // A tab that is opened hides the one before.
      await browser.evaluate("void tabs.push(open(location.href))");
      await shows(`tabs[${tab}]`);
    }
    await browser.evaluate("tabs[5].document.querySelector('#stop').click()");
    await program.stdoutLine(/^stopped/);
    await browser.evaluate("for (const tab of tabs) tab.close()");
    await browser.until("document.querySelector('#stop').hidden");
    const whole = await (await fetch(streams + name)).text();
    assert.equal(await browser.evaluate("document.querySelector('#reply').textContent"), whole);
  },
);

test("the page says that a reply was not stopped", { skip: lacksChromium }, async (context) => {
  const { page } = await start(context);
  const name = await (await fetch(page, { method: "POST", body: "How far" })).text();
  const browser = await ChromiumPage.open(context);
  await browser.goTo(`${page}#${name}`);
  await browser.until("document.querySelector('#reply')?.textContent !== ''");
  await browser.evaluate("window.fetch = () => Promise.reject(new TypeError('Failed to fetch'))");
  await browser.evaluate("document.querySelector('#stop').click()");
  await browser.until("document.querySelector('#note').textContent === 'It was not stopped: try again.'");
});
