// What is done once more in the page: asked again, pressed again, looked at again.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { lacksChromium } from "../helpers/chromium.js";
import { JSON_TYPE, ROWS, TELEPHONE, TEXT, World } from "./world.js";

/** What can be done with the stream that is shown. */
const USABLE = ".composer textarea:enabled, .composer button:enabled, .actions button:enabled";

describe("the page, asked again", { skip: lacksChromium, timeout: 900_000 }, () => {
  test("shows a stream that was missing, when it is there or was made", async (context) => {
    const world = await World.open(context);
    await world.open("#/s/a");
    await world.sees("#main .empty", "There is no stream of this name.");
    await world.click("New");
    await world.fill("dialog input", "a");
    await world.fill("dialog textarea", "1");
    await world.click("Create");
    await world.sees(ROWS, "1");
    await world.open("#/s/b");
    await world.sees("#main .empty", "There is no stream of this name.");
    await world.send("PUT", "b", JSON_TYPE, "[2]");
    await world.click("Look again");
    await world.sees(ROWS, "2");
    world.hasNoFaults(/favicon|404/);
  });

  test("appends once for the keys that are pressed twice, and keeps what was typed meanwhile", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "a", JSON_TYPE);
    await world.open("#/s/a");
    await world.sees(".status", "live");
    await world.fill(".composer textarea", "1");
    await world.page.evaluate(`{
      const field = document.querySelector(".composer textarea");
      const press = () => field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true }));
      press();
      press();
      field.value = "typed meanwhile";
    }`);
    await world.sees(ROWS, "1");
    await world.until("document.querySelector('.composer button')?.disabled === false");
    assert.equal(await world.page.evaluate("document.querySelector('.composer textarea').value"), "typed meanwhile");
    assert.deepEqual(await (await world.send("GET", "a")).json(), [1]);
    world.hasNoFaults();
  });

  test("gives a stream of JSON that takes several answers as one array, and text as it is", async (context) => {
    const world = await World.open(context, { flags: ["--chunk-bytes", "16"] });
    const values = Array.from({ length: 9 }, (_, at) => `message ${at}`);
    await world.send("PUT", "j", JSON_TYPE, JSON.stringify(values));
    await world.send("PUT", "t", TEXT, "one\n");
    await world.send("POST", "t", TEXT, `${"two ".repeat(10)}\n`);
    for (const [name, text] of [
      ["j", JSON.stringify(values)],
      ["t", `one\n${"two ".repeat(10)}\n`],
    ] as const) {
      await world.open(`#/s/${name}`);
      await world.page.evaluate("URL.createObjectURL = (blob) => ((window.saved = blob), 'data:,'), null");
      await world.click("Download");
      await world.until("window.saved !== undefined");
      const saved = String(await world.page.evaluate("window.saved.text()"));
      assert.equal(await world.page.evaluate("window.saved.type"), "application/octet-stream", "opened, it is no page of this origin");
      assert.deepEqual(name === "j" ? JSON.parse(saved) : saved, name === "j" ? JSON.parse(text) : text);
    }
    world.hasNoFaults();
  });

  test("begins a line with each append to a text whose first message had no end", async (context) => {
    const world = await World.open(context);
    await world.open();
    await world.click("New");
    await world.fill("dialog input", "t");
    await world.fill("dialog input[list]", "text/plain");
    await world.fill("dialog textarea", "hello");
    await world.click("Create");
    await world.sees(ROWS, "hello");
    assert.match(String(await world.page.evaluate("document.querySelector('.composer textarea').placeholder")), /line feed/);
    await world.fill(".composer textarea", "world");
    await world.click("Append");
    await world.sees(ROWS, "world");
    await world.page.reload();
    await world.sees(".status", "2 shown");
    assert.deepEqual(await world.texts(ROWS), ["world", "hello"]);
    world.hasNoFaults();
  });

  test("appends to a stream that was made by the keyboard, by the keyboard", async (context) => {
    const world = await World.open(context);
    await world.open();
    await world.until("document.querySelector('#create')?.disabled === false");
    await world.page.press("n");
    await world.page.type("a");
    await world.page.press("Enter");
    await world.sees(".status", "live");
    await world.page.type("1");
    assert.equal(await world.page.evaluate("document.querySelector('.composer textarea').value"), "1");
    // Whoever comes back to it has the keys again.
    await world.open("#/s/a");
    await world.sees(".status", "live");
    assert.equal(await world.page.evaluate("document.activeElement === document.body"), true);
    world.hasNoFaults();
  });

  test("takes away what it said of a refusal once the next request succeeds", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "j", JSON_TYPE, "[1,2]");
    await world.open("#/s/j");
    await world.sees(".status", "live");
    for (const [refused, why, place] of [
      ["at=garbage", "offset", "since=2020-01-01T00:00:00Z"],
      ["last=1000001", "1000000", "last=2"],
    ] as const) {
      await world.page.evaluate(`location.hash = "#/s/j?${refused}"`);
      await world.sees("#notice.bad", why);
      await world.page.evaluate(`location.hash = "#/s/j?${place}"`);
      await world.sees(".status", "2 shown");
      assert.equal(await world.page.evaluate("document.querySelector('#notice').textContent"), "");
    }
    await world.fill(".composer textarea", "{");
    await world.click("Append");
    await world.sees("#notice.bad", "JSON");
    await world.fill(".composer textarea", "3");
    await world.click("Append");
    await world.until("document.querySelector('.composer textarea')?.value === ''");
    assert.equal(await world.page.evaluate("document.querySelector('#notice').textContent"), "");
    world.hasNoFaults(/favicon|400/);
  });

  test("keeps the filter when it goes to another place", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "j", JSON_TYPE, "[1,2,12,3]");
    await world.open("#/s/j");
    await world.sees(".status", "4 shown");
    await world.fill('.toolbar input[type="search"]', "2");
    await world.sees(".status", "2 of 4 shown");
    await world.click("Go");
    await world.until("location.hash === '#/s/j?filter=2'");
    await world.sees(".status", "2 of 4 shown");
    await world.click("Code");
    await world.sees(".codes", "curl");
    await world.page.evaluate("document.querySelector('.tabs a').focus()");
    await world.click("Messages");
    await world.sees(".status", "2 of 4 shown");
    assert.equal(await world.page.evaluate("document.activeElement.textContent"), "Messages");
    world.hasNoFaults();
  });

  test("has a bound for the tree, also where streams are made while it is open", async (context) => {
    const world = await World.open(context);
    await world.open();
    await world.sees("#listed", "No stream yet");
    for (let at = 0; at < 1050; at += 50)
      await Promise.all(Array.from({ length: 50 }, (_, one) => world.send("PUT", `s${String(at + one).padStart(4, "0")}`)));
    await world.sees("#listed", "1000 streams, and more");
    assert.equal(await world.page.evaluate("document.querySelectorAll('#tree a').length"), 1000);
    await world.click("More streams");
    await world.sees("#listed", "1050 streams");
    world.hasNoFaults();
  });

  test("waits before it asks a server again that ends each answer at once", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "a", JSON_TYPE, "[1]");
    await world.page.beginWith(`{
      const real = fetch;
      window.follows = 0;
      window.fetch = (url, init) => {
        if (!String(url).includes("/a?live=sse")) return real(url, init);
        window.follows += 1;
        return Promise.resolve(new Response("", { status: 200 }));
      };
    }`);
    await world.open("#/s/a");
    await world.sees(".status", "trying again");
    assert.ok(Number(await world.page.evaluate("window.follows")) < 5);
    world.hasNoFaults();
  });

  test("does nothing to a stream that has the name of the one it shows", async (context) => {
    const world = await World.open(context);
    const anew = async (name: string): Promise<void> => {
      await world.send("DELETE", name);
      await world.send("PUT", name, JSON_TYPE, "[2]");
    };
    for (const name of ["a", "b"]) await world.send("PUT", name, JSON_TYPE, "[1]");
    await world.open("#/s/a");
    await world.sees(".status", "live");
    await anew("a");
    await world.sees(".status", "ended");
    assert.deepEqual(await world.texts(USABLE), []);
    await world.click("Look again");
    await world.sees(ROWS, "2");
    assert.equal(((await world.texts(USABLE)) as unknown[]).length, 6);
    // Nothing there tells of what becomes of it.
    await world.open("#/s/b?tab=about");
    await world.sees(".facts", "b");
    await anew("b");
    await world.click("Delete");
    await world.clickOn("document.querySelector('dialog .danger')");
    await world.sees("dialog .fault", "made anew");
    assert.deepEqual(await (await world.send("GET", "b")).json(), [2]);
    // It asked before the stream was there anew, or after that.
    world.hasNoFaults(/favicon|404|410/);
  });

  test("offers nothing that a stream refuses which others have closed", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "a", JSON_TYPE, "[1]");
    await world.open("#/s/a");
    await world.sees(".status", "live");
    await world.send("POST", "a", { "Stream-Closed": "true" });
    await world.sees(".status", "closed for good");
    assert.deepEqual(await world.texts(USABLE), ["Fork", "Download", "Delete"]);
    world.hasNoFaults();
  });

  test("says that a fork was there already", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "a", JSON_TYPE, "[1]");
    for (const said of ["a-fork forked.", "a-fork was there already"]) {
      await world.open("#/s/a");
      await world.sees(".status", "live");
      await world.click("Fork");
      await world.clickOn("document.querySelector('dialog .primary')");
      await world.sees("#notice", said);
    }
    world.hasNoFaults();
  });

  test("is no wider than a telephone, whatever the names", async (context) => {
    const world = await World.open(context, { screen: TELEPHONE });
    await world.send("PUT", encodeURIComponent(`${"folder".repeat(20)}/${"n".repeat(300)}`), TEXT, "x".repeat(500));
    for (const hash of ["", `#/s/${"folder".repeat(20)}/${"n".repeat(300)}`]) {
      await world.open(hash);
      await world.sees(hash === "" ? "#listed" : ROWS, hash === "" ? "1 stream" : "x");
      const [wide, seen] = (await world.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")) as [number, number];
      assert.ok(wide <= seen, `${wide} of ${seen} at ${hash.slice(0, 4)}`);
    }
    world.hasNoFaults();
  });

  test("keeps what was typed and not sent, until it is sent", async (context) => {
    const world = await World.open(context);
    const comesBackTo = async (typed: string): Promise<void> => {
      await world.click("About");
      await world.sees(".facts", "application/json");
      await world.click("Messages");
      await world.sees(".status", "live");
      assert.equal(await world.page.evaluate("document.querySelector('.composer textarea').value"), typed);
    };
    await world.send("PUT", "a", JSON_TYPE, "[1]");
    await world.open("#/s/a");
    await world.sees(".status", "live");
    await world.fill(".composer textarea", "2");
    await comesBackTo("2");
    await world.click("Append");
    await world.sees(ROWS, "2");
    await comesBackTo("");
    world.hasNoFaults();
  });

  test("stays where the keyboard is when it goes to another place", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "j", JSON_TYPE, "[1,2,3]");
    await world.open("#/s/j");
    await world.sees(".status", "3 shown");
    await world.fill("#place", "2");
    await world.page.evaluate("document.querySelector('.goto').requestSubmit()");
    await world.sees(".status", "live · 2 shown");
    await world.until("document.activeElement?.id === 'place' && document.activeElement.value === '2'");
    world.hasNoFaults();
  });

  test("says at once that a token can't be sent, and keeps the one that it has", async (context) => {
    const world = await World.open(context);
    await world.open();
    await world.click("Token");
    await world.fill("dialog input", "kéy\u{1f511}");
    await world.click("Use it");
    await world.sees("dialog .fault", "characters that can't be sent");
    await world.click("Cancel");
    assert.deepEqual(await world.texts("#token"), ["Token"]);
    await world.sees("#listed", "No stream yet");
    world.hasNoFaults();
  });

  test("says that it reads, as long as it has not read", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "t", TEXT, "one\n");
    await world.open();
    await world.page.evaluate(`{
      const own = window.fetch;
      window.fetch = async (url, init) => {
        if (/last=|offset=/.test(String(url))) await new Promise((resolve) => (window.letIn = resolve));
        return own(url, init);
      };
      location.hash = "#/s/t";
    }`);
    await world.sees(".status", "reading · 0 shown");
    await world.until("(window.letIn?.(), document.querySelector('.status').textContent.includes('live · 1 shown'))");
    await world.page.evaluate("location.hash = '#/s/t?at=-1'");
    await world.sees(".status", "reading · 0 shown");
    await world.until("(window.letIn?.(), document.querySelector('.status').textContent === 'up to the tail · 1 shown')");
    world.hasNoFaults();
  });

  test("shows no more of a long line than the page can bear", async (context) => {
    const world = await World.open(context);
    for (const [name, chars, label, shown] of [
      ["whole", 200_000, "Show all 195 KiB", 200_000],
      ["cut", 2_000_000, "Show more of 1.9 MiB", 256 * 1024 + 1],
    ] as const) {
      await world.send("PUT", name, TEXT, `${"x".repeat(chars)}\n`);
      await world.open(`#/s/${name}`);
      await world.click(label);
      await world.until(
        `(document.querySelector(".row .body > div") ?? document.querySelector(".row .body")).firstChild.length === ${shown}`,
      );
    }
    world.hasNoFaults();
  });
});
