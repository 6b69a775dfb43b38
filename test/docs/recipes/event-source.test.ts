import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { ChromiumPage, lacksChromium } from "../../helpers/chromium.js";
import { servePage } from "../../helpers/page-examples.js";
import { Gateway } from "../../helpers/passing-proxy.js";

const PAGE = readFileSync(new URL("../../../docs/recipes/event-source.html", import.meta.url));

/** A web server of this machine, as the README of the recipes has one; resolves to the page's URL. */
async function serveRecipe(context: TestContext): Promise<string> {
  const server = createServer((_req, res) => res.setHeader("Content-Type", "text/html; charset=utf-8").end(PAGE));
  const listening = once(server, "listening");
  server.listen(0, "127.0.0.1");
  await listening;
  context.after(() => void server.close().closeAllConnections());
  return `http://localhost:${(server.address() as AddressInfo).port}/event-source.html`; // of a port
}

/** What the page shows of a stream, as JSON. */
const PARTS = "JSON.stringify(Array.from(document.querySelectorAll('li'), (item) => item.innerText))";

test(
  "the page shows messages, text and bytes as they come, over several connections, and stops at the end",
  { skip: lacksChromium },
  async (context) => {
    // Each connection ends at once when the reader has all there is: the page has to come back.
    const streams = await servePage(context, { sseLifetimeMs: 200 });
    const page = await serveRecipe(context);
    const browser = await ChromiumPage.open(context);
    const cases = [
      { type: "application/json", bodies: ['[{"n":1},"two"]', "3"], shown: ['{"n":1}', '"two"', "3"] },
      { type: "text/plain", bodies: ["a\nb", "c"], shown: ["a\nb", "c"] },
      { type: 'text/plain; charset="UTF-8"', bodies: ["\u00e9", "c"], shown: ["\u00e9", "c"] },
      { type: "text/plain; charset=iso-8859-1", bodies: [Uint8Array.of(0xe9), Uint8Array.of(0x41)], shown: ["e9", "41"] },
      { type: "application/octet-stream", bodies: [Uint8Array.of(0, 255), Uint8Array.of(16)], shown: ["00 ff", "10"] },
    ];
    for (const [index, { type, bodies, shown }] of cases.entries()) {
      const url = `${streams}s${index}`;
      const headers = { "Content-Type": type };
      const [first = "", second = ""] = bodies;
      await fetch(url, { method: "PUT", headers, body: first });
      await browser.goTo("about:blank");
      await browser.goTo(`${page}#${url}`);
      await browser.until("document.querySelector('#state')?.textContent === 'reconnecting'");
      await fetch(url, { method: "POST", headers: { ...headers, "Stream-Closed": "true" }, body: second });
      await browser.until("document.querySelector('#state').textContent === 'closed'");
      assert.deepEqual(JSON.parse(String(await browser.evaluate(PARTS))), shown);
    }
  },
);

test("the page goes on after a proxy's 502, and not after a refusal that stays", { skip: lacksChromium }, async (context) => {
  const gateway = await Gateway.start(context, await servePage(context));
  const url = `${gateway.streams}s`;
  const headers = { "Content-Type": "text/plain" };
  await fetch(url, { method: "PUT", headers, body: "a" });
  const browser = await ChromiumPage.open(context);
  await browser.goTo(`${await serveRecipe(context)}#${url}`);
  const is = (state: string): string => `document.querySelector('#state')?.textContent === '${state}'`;
  await browser.until(is("up to date"));
  await gateway.loseServer();
  await browser.until(is("reconnecting"));
  gateway.findServer();
  await fetch(url, { method: "POST", headers, body: "b" });
  await browser.until(`${is("up to date")} && ${PARTS} === '["a","b"]'`);
  await fetch(url, { method: "DELETE" });
  await browser.until(is("refused"));
});

test(
  "the page shows a stream that was made anew from its beginning, and nothing of the old one",
  { skip: lacksChromium },
  async (context) => {
    const streams = await servePage(context);
    const gateway = await Gateway.start(context, streams);
    const make = (type: string, body: string) => fetch(`${streams}s`, { method: "PUT", headers: { "Content-Type": type }, body });
    await make("text/plain", "old");
    const browser = await ChromiumPage.open(context);
    await browser.goTo(`${await serveRecipe(context)}#${gateway.streams}s`);
    await browser.until(`document.querySelector('#state')?.textContent === 'up to date' && ${PARTS} === '["old"]'`);
    await gateway.loseServer();
    await fetch(`${streams}s`, { method: "DELETE" });
    await make("application/json", "[1]");
    gateway.findServer();
    await browser.until("document.querySelector('#state').textContent !== 'reconnecting'");
    assert.equal(await browser.evaluate("document.querySelector('#state').textContent"), "up to date");
    assert.deepEqual(JSON.parse(String(await browser.evaluate(PARTS))), ["1"]);
  },
);
