import assert from "node:assert/strict";
import { test } from "node:test";
import { Sessions } from "../../../src/http/http2/sessions.js";
import { ChromiumPage, lacksChromium } from "../../helpers/chromium.js";
import { ask, startSecure } from "../../helpers/secure-server.js";

const STREAMS = 100;
const TEXT = { "content-type": "text/plain" };

test("a page in a browser follows 100 streams over one connection", { skip: lacksChromium }, async (context) => {
  // The clock stands still: without a time for a stop all readers end together.
  const server = await startSecure(context, { corsOrigin: "*", shutdownTimeoutMs: 0 });
  const session = server.session();
  const names = Array.from({ length: STREAMS }, (_, at) => `s${at}`);
  await Promise.all(names.map((name) => ask(session, "PUT", name, { headers: TEXT })));
  const { mock } = context.mock.method(Sessions.prototype, "accept");
  const browser = await ChromiumPage.open(context, ["--ignore-certificate-errors"]);
  const base = `https://localhost:${server.test.port}/v1/stream/`;
  await browser.evaluate(`
    window.came = {};
    window.open = 0;
    window.follow = (name) => {
      const source = new EventSource(${JSON.stringify(base)} + name + "?offset=now&live=sse");
      source.onopen = () => { window.open += 1; };
      source.addEventListener("data", ({ data }) => { window.came[name] = (window.came[name] ?? "") + data; });
    };
    window.follow("s0");
  `);
  // Before it knows that a server speaks HTTP/2, a browser may open several connections.
  await browser.until("window.open === 1");
  await browser.evaluate(`for (let at = 1; at < ${STREAMS}; at += 1) window.follow("s" + at);`);
  await browser.until(`window.open === ${STREAMS}`);
  await Promise.all(names.map((name) => ask(session, "POST", name, { headers: TEXT, body: `to ${name}` })));
  await browser.until(`Object.keys(window.came).length === ${STREAMS}`);
  const expected = Object.fromEntries(names.map((name) => [name, `to ${name}`]));
  assert.deepEqual(await browser.evaluate("window.came"), expected);
  // The second is of a browser that had to wait for its first: of HTTP/1.1 it would open six.
  const connections = mock.callCount();
  assert.ok(connections <= 2, `${connections} connections`);
});
