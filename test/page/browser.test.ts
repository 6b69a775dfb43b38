// The page in a real browser, each thing that it is for.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { AuthFile } from "../helpers/auth-file.js";
import { lacksChromium, type Screen } from "../helpers/chromium.js";
import { DESK, JSON_TYPE, ROWS, TELEPHONE, TEXT, World } from "./world.js";

for (const screen of [DESK, TELEPHONE]) {
  describe(`the page in Chromium, ${screen.width} wide`, { skip: lacksChromium, timeout: 900_000 }, () => {
    test("makes a first stream without anything else", async (context) => {
      const world = await World.open(context, { screen });
      await world.open();
      await world.sees("#listed", "No stream yet");
      await world.click("New");
      await world.fill("dialog input", "chat/1");
      await world.fill("dialog textarea", '{"hello":"world"}');
      await world.click("Create");
      await world.sees("h1", "chat/1");
      await world.sees(ROWS, 'hello: "world"');
      await world.sees(".status", "live");
      await world.fill(".composer textarea", '{"n":2}');
      await world.click("Append");
      await world.until(`document.querySelectorAll(${JSON.stringify(ROWS)}).length === 2`);
      assert.deepEqual(await world.texts(ROWS), ["{n: 2}", '{hello: "world"}']);
      assert.deepEqual(await (await world.send("GET", "chat/1")).json(), [{ hello: "world" }, { n: 2 }]);
      // Nothing is wider than the screen.
      assert.equal(await world.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), true);
      // What is shown comes back with the URL.
      await world.page.reload();
      await world.sees("h1", "chat/1");
      world.hasNoFaults();
    });

    test("shows streams as a tree, finds them by typing, and follows what becomes of them", async (context) => {
      const world = await World.open(context, { screen });
      for (const name of ["chat/1", "chat/2", "jobs/a/log", "jobs/b/log", "top"]) await world.send("PUT", name, TEXT, name);
      await world.open();
      await world.sees("#listed", "5 streams");
      assert.deepEqual(await world.texts("#tree summary"), ["chat/", "jobs/"]);
      assert.deepEqual(await world.texts("#tree .name"), ["1", "2", "a/log", "b/log", "top"]);
      await world.page.press("/");
      await world.page.type("LOG".toLowerCase());
      await world.sees("#listed", "2 streams");
      assert.deepEqual(await world.texts("#tree a span.name"), ["a/log", "b/log"]);
      for (const [typed, said] of [
        ["jobs/a", "1 stream"],
        ["chat/*", "2 streams"],
        ["nothing", "No stream is called so."],
        ["", "5 streams"],
      ] as const) {
        await world.fill("#find", typed);
        await world.sees("#listed", said);
      }
      await world.send("PUT", "chat/15", TEXT);
      await world.sees("#listed", "6 streams");
      assert.deepEqual(await world.texts("#tree .name"), ["1", "15", "2", "a/log", "b/log", "top"]);
      await world.send("DELETE", "top");
      await world.sees("#listed", "5 streams");
      // By the keyboard alone.
      await world.page.evaluate("document.querySelector('#find').focus()");
      await world.page.press("ArrowDown");
      await world.page.press("ArrowDown");
      await world.page.press("Enter");
      await world.sees("h1", "chat/15");
      world.hasNoFaults();
    });

    test("pages through many streams", async (context) => {
      const world = await World.open(context, { screen });
      for (let at = 0; at < 250; at += 1) await world.send("PUT", `s/${String(at).padStart(3, "0")}`, TEXT);
      await world.open();
      await world.sees("#listed", "200 streams, and more");
      await world.click("More streams");
      await world.sees("#listed", "250 streams");
      world.hasNoFaults();
    });

    test("keeps a page that was asked for while the first one was read again", async (context) => {
      const world = await World.open(context, { screen });
      for (let at = 0; at < 250; at += 1) await world.send("PUT", `s/${String(at).padStart(3, "0")}`, TEXT);
      // The list's own events ask for the first page a second time: its answer is kept back.
      await world.page.beginWith(`{
        const real = window.fetch;
        let firstPages = 0;
        window.released = new Promise((resolve) => { window.release = resolve; });
        window.fetch = async (url, options) => {
          const answer = await real(url, options);
          if (!/streams\\?/.test(String(url)) || /after=|live=/.test(String(url)) || (firstPages += 1) !== 2) return answer;
          window.isHeld = true;
          await window.released;
          return answer;
        };
      }`);
      await world.open();
      await world.until("window.isHeld === true");
      await world.click("More streams");
      // In this time a second page that did not wait would come.
      await world.page.evaluate("fetch('../streams?after=s/200').then((answer) => answer.text())");
      await world.page.evaluate("window.release()");
      await world.sees("#listed", "250 streams");
      await world.page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))");
      await world.sees("#listed", "250 streams");
      world.hasNoFaults();
    });

    test("shows a stream the newest first, a page at a time, as JSON, text and bytes", async (context) => {
      const world = await World.open(context, { screen });
      const messages = Array.from({ length: 250 }, (_, at) => ({ at, nested: { list: [1, 2, at] } }));
      await world.send("PUT", "j", JSON_TYPE, JSON.stringify(messages));
      await world.open("#/s/j");
      await world.sees(".status", "100 shown");
      await world.sees(`${ROWS}`, "at: 249");
      await world.click("Earlier messages");
      await world.sees(".status", "200 shown");
      await world.click("Earlier messages");
      await world.sees(".status", "250 shown");
      const numbers = await world.page.evaluate(
        `Array.from(document.querySelectorAll(${JSON.stringify(ROWS)}), (row) => Number(/at: (\\d+)/.exec(row.textContent)[1]))`,
      );
      assert.deepEqual(numbers, messages.map(({ at }) => at).reverse());
      await world.page.evaluate("document.querySelector('.rows summary').click()");
      await world.sees(".rows details[open]", '"nested": ');
      await world.page.evaluate(
        "{ const mode = document.querySelector('select[aria-label=\"Show as\"]'); mode.value = 'hex'; mode.dispatchEvent(new Event('change')); }",
      );
      await world.sees(ROWS, "00000000  7b 22 61 74 22 3a 32 34");
      assert.equal(await world.page.evaluate("location.hash"), "#/s/j?show=hex");
      await world.page.reload();
      await world.sees(ROWS, "00000000  7b 22 61 74");
      await world.send("PUT", "b", {}, Buffer.from([0, 1, 2, 255]));
      await world.open("#/s/b");
      await world.sees(ROWS, "00000000  00 01 02 ff");
      await world.send("PUT", "t", TEXT, "one\ntwo\n");
      await world.open("#/s/t");
      await world.sees(ROWS, "two");
      assert.deepEqual(await world.texts(ROWS), ["two", "one"]);
      world.hasNoFaults();
    });

    test("shows earlier text once, however its lines end", async (context) => {
      const world = await World.open(context, { screen });
      const endings = ["\n", "\r\n", "\r"];
      const line = (at: number): string => `<${at}>${endings[at % 3] ?? ""}`;
      await world.send("PUT", "t", TEXT);
      for (let at = 0; at < 200; at += 1) await world.send("POST", "t", TEXT, line(at));
      await world.open("#/s/t");
      await world.sees(".status", "live");
      for (let at = 200; at < 230; at += 1) await world.send("POST", "t", TEXT, `${line(at)}x\r\n`);
      await world.sees(".rows", "<229>");
      await world.click("Earlier messages");
      await world.sees(".rows", "<50>");
      const shown = String(await world.page.evaluate("document.querySelector('.rows').textContent"));
      for (let at = 50; at < 230; at += 1) assert.equal(shown.split(`<${at}>`).length, 2, `<${at}>`);
      world.hasNoFaults();
    });

    test("follows live, with pause and filter, through a burst and a killed server", async (context) => {
      const world = await World.open(context, { screen });
      await world.send("PUT", "j", JSON_TYPE, "[0]");
      await world.open("#/s/j");
      await world.sees(".status", "live");
      await world.click("Pause");
      await world.send("POST", "j", JSON_TYPE, "[1,2]");
      await world.sees(".status", "paused · 2 new");
      assert.deepEqual(await world.texts(ROWS), ["0"]);
      await world.click("Resume");
      await world.until(`document.querySelectorAll(${JSON.stringify(ROWS)}).length === 3`);
      assert.deepEqual(await world.texts(ROWS), ["2", "1", "0"]);
      await world.fill(".toolbar input[type=search]", "1");
      await world.sees(".status", "1 of 3 shown");
      await world.fill(".toolbar input[type=search]", "");
      await world.killAndStartAgain();
      await world.send("POST", "j", JSON_TYPE, "[3]");
      await world.until(`document.querySelectorAll(${JSON.stringify(ROWS)}).length === 4`);
      assert.deepEqual(await world.texts(ROWS), ["3", "2", "1", "0"]);
      // Thousands at once: the tab draws on, and says what it left out.
      for (let burst = 0; burst < 10; burst += 1) {
        const many = Array.from({ length: 2000 }, (_, at) => ({ burst, at }));
        await world.send("POST", "j", JSON_TYPE, JSON.stringify(many));
      }
      await world.sees(ROWS, "burst: 9, at: 1999");
      await world.sees(".status", "passed unseen");
      const count = Number(await world.page.evaluate("document.querySelectorAll('.rows .row').length"));
      assert.ok(count <= 1000, String(count));
      await world.send("POST", "j", { "Stream-Closed": "true" });
      await world.sees(".status", "closed for good");
      world.hasNoFaults(/favicon|ERR_/);
    });

    test("goes to an offset, to a time, and to the last so many", async (context) => {
      const world = await World.open(context, { screen });
      const first = await world.send("PUT", "j", JSON_TYPE, "[1,2]");
      const offset = first.headers.get("stream-next-offset") ?? "";
      await world.send("POST", "j", JSON_TYPE, "[3,4]");
      await world.open("#/s/j");
      await world.sees(".status", "4 shown");
      const go = async (kind: string, place: string): Promise<void> => {
        await world.page.evaluate(
          `{ const kind = document.querySelector('select[aria-label="Go to"]'); kind.value = ${JSON.stringify(kind)}; kind.dispatchEvent(new Event('change')); }`,
        );
        await world.fill("#place", place);
        await world.click("Go");
      };
      await go("at", offset);
      await world.until(`document.querySelectorAll(${JSON.stringify(ROWS)}).length === 2`);
      assert.deepEqual(await world.texts(ROWS), ["3", "4"]);
      assert.equal(await world.page.evaluate("location.hash"), `#/s/j?at=${offset}`);
      await go("last", "3");
      await world.until(`document.querySelectorAll(${JSON.stringify(ROWS)}).length === 3`);
      assert.deepEqual(await world.texts(ROWS), ["4", "3", "2"]);
      await go("since", "2020-01-01T00:00:00Z");
      await world.until(`document.querySelectorAll(${JSON.stringify(ROWS)}).length === 4`);
      assert.deepEqual(await world.texts(ROWS), ["1", "2", "3", "4"]);
      await world.page.evaluate("history.back()");
      await world.until(`document.querySelectorAll(${JSON.stringify(ROWS)}).length === 3`);
      await go("last", "abc");
      assert.equal(await world.page.evaluate("document.querySelector('#place').checkValidity()"), false);
      assert.equal(await world.page.evaluate("location.hash"), "#/s/j?last=3");
      world.hasNoFaults();
    });

    test("forks, closes and deletes behind a confirmation, says what a stream is, and gives its requests", async (context) => {
      const world = await World.open(context, { screen });
      const producer = { "Producer-Id": "p", "Producer-Epoch": "0", "Producer-Seq": "0" };
      await world.send("PUT", "a", { ...TEXT, "Stream-TTL": "3600" }, "one\n");
      await world.send("POST", "a", { ...TEXT, ...producer }, "two\n");
      await world.open("#/s/a");
      await world.sees("h1", "a");
      await world.click("Fork");
      await world.fill("dialog input", "a/copy of it");
      await world.clickOn("document.querySelector('dialog .primary')");
      await world.sees("h1", "a/copy of it");
      await world.click("About");
      await world.sees(".facts", "Forked froma");
      assert.deepEqual(await world.texts(".family text"), ["a", "a/copy of it"]);
      await world.open("#/s/a?tab=about");
      await world.sees(".facts", "Producers1");
      await world.sees(".facts", "3600 s unused");
      await world.sees(".facts", "Size8 B (8 bytes)");
      await world.sees(".family", "a/copy of it");
      await world.click("Code");
      await world.sees(".codes", "curl -i \\");
      await world.sees(".codes", "new EventSource(");
      await world.sees(".codes", "@durable-streams/client");
      await world.open("#/s/a");
      await world.click("Close");
      await world.sees("dialog[open]", "Close for good?");
      await world.click("Cancel");
      assert.equal((await world.send("HEAD", "a")).headers.get("stream-closed"), null);
      await world.click("Close");
      await world.clickOn("document.querySelector('dialog[open] .danger')");
      await world.sees(".badges", "closed");
      assert.equal((await world.send("HEAD", "a")).headers.get("stream-closed"), "true");
      assert.equal(await world.page.evaluate("document.querySelector('.composer textarea').disabled"), true);
      await world.open("#/s/a%2Fcopy%20of%20it");
      await world.click("Delete");
      await world.clickOn("document.querySelector('dialog[open] .danger')");
      await world.sees("#listed", "1 stream");
      assert.equal((await fetch(world.url("a/copy%20of%20it"))).status, 404);
      // The page may look for the stream once more before it hears that it deleted it.
      world.hasNoFaults(/favicon|404/);
    });

    test("shows the server's figures", async (context) => {
      const world = await World.open(context, { screen });
      await world.send("PUT", "a", TEXT, "x");
      await world.open("#/server");
      await world.sees(".server .status", "reads and writes");
      await world.send("POST", "a", TEXT, "x");
      await world.until(
        "Array.from(document.querySelectorAll('.line')).some((line) => (line.getAttribute('d').match(/L/g) ?? []).length >= 1)",
      );
      assert.equal(((await world.texts("figcaption span")) as string[]).length, 9);
      world.hasNoFaults();
    });

    test("takes a token, and greys out what that may not do", async (context) => {
      const auth = new AuthFile();
      const token = auth.token("reader", [
        { streams: ["**"], allow: ["list", "read"] },
        { streams: ["b"], allow: ["append"] },
      ]);
      const listless = auth.token("listless", [{ streams: ["b"], allow: ["read", "close"] }]);
      const writer = auth.token("writer", [{ streams: ["**"], allow: ["create"] }]);
      auth.write();
      const world = await World.open(context, { screen, flags: ["--auth", auth.path] });
      for (const name of ["a", "b"]) await world.send("PUT", name, { ...TEXT, Authorization: `Bearer ${writer}` }, "x");
      await world.open("#/s/a");
      await world.sees("#listed", "This needs a token.");
      await world.click("Token");
      await world.fill("dialog input", token);
      await world.click("Use it");
      await world.sees("#listed", "2 streams");
      await world.sees("h1", "a");
      const disabled =
        "JSON.stringify(Array.from(document.querySelectorAll('.actions button:disabled, .composer :disabled'), (one) => one.textContent))";
      await world.until(`${disabled} === '["Fork","Close","Delete","","Append"]'`);
      await world.open("#/s/b");
      await world.until(`${disabled} === '["Fork","Close","Delete"]'`);
      await world.fill(".composer textarea", "y");
      await world.click("Append");
      await world.sees(ROWS, "y");
      // It is in no URL, and in nothing that outlives the tab.
      assert.equal(
        await world.page.evaluate(
          `location.href.includes("sd_") || JSON.stringify({ ...localStorage }).includes("sd_") || document.cookie !== ""`,
        ),
        false,
      );
      assert.equal(await world.page.evaluate("document.querySelector('#create').disabled"), true);
      assert.equal(await world.page.evaluate("document.querySelector('.top a[href=\"#/server\"]').getAttribute('aria-disabled')"), "true");
      assert.equal(await world.page.evaluate("document.querySelector('#token').title"), "You are token reader.");
      // Who may read a stream, and not list it, can have its address.
      await world.click("Token ✓");
      await world.fill("dialog input", listless);
      await world.click("Use it");
      await world.sees("#listed", "does not allow list");
      await world.sees("h1", "b");
      await world.sees(ROWS, "xy");
      await world.until(`${disabled} === '["Fork","Delete","","Append"]'`);
      await world.open("#/s/a");
      await world.sees(".empty", "That is not allowed here.");
      world.hasNoFaults(/favicon|40[13]/);
    });

    test("takes nothing of a stream for more than text", async (context) => {
      const world = await World.open(context, { screen });
      const evil = '<img src=x onerror="window.isHurt=1"><script>window.isHurt=1</script>';
      const name = encodeURIComponent(evil.replaceAll("/", "|"));
      await world.send("PUT", name, { "Content-Type": "text/html" }, `${evil}\n`);
      await world.send("PUT", "j", JSON_TYPE, JSON.stringify([{ [evil]: evil }, evil]));
      await world.open();
      await world.sees("#listed", "2 streams");
      for (const hash of [`#/s/${name}`, `#/s/${name}?tab=about`, `#/s/${name}?tab=code`, "#/s/j", "#/s/j?show=text", `#/s/none${evil}`]) {
        await world.open(hash);
        await world.until("document.querySelector('h1') !== null");
        await world.until("document.querySelector('.facts, .codes, .empty, .rows .row') !== null");
      }
      assert.equal(await world.page.evaluate("window.isHurt ?? document.querySelector('#main img, #main script, #tree img')"), null);
      // The stream that is not there is no fault of the page.
      world.hasNoFaults(/favicon|404/);
    });
  });
}

describe("the pictures of the page", { skip: lacksChromium, timeout: 900_000 }, () => {
  const pictures: readonly [file: string, hash: string, screen: Screen][] = [
    ["page-light.png", "#/s/chat/42", DESK],
    ["page-dark.png", "#/s/chat/42-b?tab=about", { ...DESK, isDark: true }],
    ["page-telephone.png", "#/s/chat/42", TELEPHONE],
    ["page-server.png", "#/server", { ...DESK, isDark: true }],
  ];
  test("looks like its pictures, which UPDATE_DOCS=1 takes", { skip: process.env["UPDATE_DOCS"] !== "1" }, async (context) => {
    const world = await World.open(context);
    const chat = [
      "Which streams does a crash lose?",
      "None that was acknowledged.",
      "And in what order do I read them?",
      "As they were written, to the byte.",
    ];
    await world.send("PUT", "chat/42", JSON_TYPE);
    for (const [at, content] of chat.entries()) {
      const message = { role: at % 2 === 0 ? "user" : "assistant", content, tokens: { input: 11 * at + 8, output: 17 * at + 5 } };
      await world.send("POST", "chat/42", JSON_TYPE, JSON.stringify(message));
    }
    await world.send("PUT", "chat/42-b", { ...JSON_TYPE, "Stream-Forked-From": "/v1/stream/chat/42" });
    for (const name of ["chat/7", "jobs/1/log", "jobs/2/log", "agents/planner/history", "feeds/orders"])
      await world.send("PUT", name, TEXT, "step 1 done\nstep 2 done\n");
    const load = setInterval(() => void world.send("POST", "feeds/orders", TEXT, "order\n".repeat(50)).catch(() => {}), 20);
    context.after(() => clearInterval(load));
    for (const [file, hash, screen] of pictures) {
      await world.page.showOn(screen);
      await world.open(hash);
      await world.sees("#listed", "7 streams");
      if (hash === "#/server") await world.until("(document.querySelector('.line').getAttribute('d').match(/L/g) ?? []).length >= 12");
      else await world.sees(".badges", "application/json");
      if (!hash.includes("tab")) await world.until("(document.querySelector('.status')?.textContent ?? '').length > 10");
      writeFileSync(new URL(`../../docs/${file}`, import.meta.url), await world.page.screenshot());
    }
  });

  test("has its pictures in the documentation", () => {
    for (const [file] of pictures) assert.ok(readFileSync(new URL(`../../docs/${file}`, import.meta.url)).length < 150 * 1024, file);
  });
});
