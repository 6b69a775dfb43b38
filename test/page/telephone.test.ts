// The page in a hand: what is touched stays where it is, and what was typed is there, whatever the network does.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { lacksChromium } from "../helpers/chromium.js";
import { JSON_TYPE, ROWS, TELEPHONE, TEXT, World } from "./world.js";

/** What gets room below what it follows. */
const top = (selector: string): string => `Math.round(document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect().top)`;

describe("the page in a hand", { skip: lacksChromium, timeout: 900_000 }, () => {
  test("keeps the streams where they are while others come, and the one that is pressed", async (context) => {
    const world = await World.open(context, { screen: TELEPHONE });
    for (let at = 100; at < 200; at += 1) await world.send("PUT", `s/${at}`, TEXT);
    await world.page.beginWith(`{
      const real = setTimeout;
      window.setTimeout = (run, ms) => real(() => ((window.redraws += ms === 250 ? 1 : 0), run()), ms);
    }`);
    await world.open();
    await world.sees("#listed", "100 streams");
    await world.page.evaluate("document.querySelector('#tree').scrollTop = 1000");
    const row = "[data-name='s/150']";
    const before = await world.page.evaluate(top(row));
    for (let at = 0; at < 5; at += 1) await world.send("PUT", `s/0${at}`, TEXT);
    await world.sees("#listed", "105 streams");
    assert.equal(await world.page.evaluate(top(row)), before);
    await world.page.evaluate(
      `(window.pressed = document.querySelector("${row}")).dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }))`,
    );
    await world.page.evaluate("window.redraws = 0");
    await world.send("PUT", "a", TEXT);
    await world.until("window.redraws > 2");
    assert.equal(await world.page.evaluate("window.pressed.isConnected"), true);
    await world.page.evaluate("window.dispatchEvent(new Event('pointerup'))");
    await world.sees("#listed", "106 streams");
    // What a menu opens for is no press that ends.
    await world.page.evaluate(
      `document.querySelector("${row}").dispatchEvent(new PointerEvent("pointerdown", { bubbles: true, button: 2 }))`,
    );
    await world.send("PUT", "aa", TEXT);
    await world.sees("#listed", "107 streams");
    assert.equal(await world.page.evaluate(top(row)), before);
    world.hasNoFaults();
  });

  test("keeps the messages where they are while others come, also in browsers that do not", async (context) => {
    const world = await World.open(context, { screen: TELEPHONE });
    await world.page.beginWith("CSS.supports = () => false");
    await world.send("PUT", "j", JSON_TYPE, JSON.stringify(Array.from({ length: 100 }, (_, at) => at)));
    await world.open("#/s/j");
    await world.sees(".status", "live · 100 shown");
    await world.page.evaluate(
      "{ const main = document.querySelector('main'); main.style.overflowAnchor = 'none'; main.scrollTop = 1500; }",
    );
    await world.page.evaluate("document.elementFromPoint(100, 500).closest('.row').id = 'seen'");
    const before = await world.page.evaluate(top("#seen"));
    await world.send("POST", "j", JSON_TYPE, "[100,101,102,103,104]");
    await world.sees(".status", "105 shown");
    assert.equal(await world.page.evaluate(top("#seen")), before);
    world.hasNoFaults();
  });

  test("leaves a message that is selected as it is, and shows what came once it is not", async (context) => {
    const world = await World.open(context, { screen: TELEPHONE });
    await world.send("PUT", "t", TEXT, "grow");
    await world.open("#/s/t");
    await world.sees(".status", "live");
    await world.page.evaluate(`getSelection().selectAllChildren(document.querySelector(${JSON.stringify(ROWS)}))`);
    await world.send("POST", "t", TEXT, "ing\nand more\n");
    await world.sees(".status", "paused");
    await world.sees(".status", "1 new");
    assert.equal(await world.page.evaluate("String(getSelection())"), "grow");
    await world.page.evaluate("getSelection().removeAllRanges()");
    await world.sees(".status", "live · 2 shown");
    assert.deepEqual(await world.texts(ROWS), ["and more", "growing"]);
    await world.page.evaluate(`getSelection().selectAllChildren(document.querySelector(${JSON.stringify(ROWS)}))`);
    await world.send("POST", "t", TEXT, "the last\n");
    await world.click("Resume");
    await world.sees(".status", "live · 3 shown");
    await world.click("Pause");
    await world.sees(".status", "paused");
    world.hasNoFaults();
  });

  test("reads a connection anew that has been silent for long, without a word", async (context) => {
    const world = await World.open(context, { screen: TELEPHONE });
    await world.send("PUT", "j", JSON_TYPE, "[1]");
    // Time goes by when the test says so.
    await world.page.beginWith(`{
      const real = setTimeout;
      const ask = fetch;
      window.silences = [];
      window.said = [];
      window.follows = 0;
      window.setTimeout = (run, ms) => (ms === 45_000 ? window.silences.push(run) : real(run, ms));
      window.fetch = (url, init) => ((window.follows += String(url).includes("/j?live=sse") ? 1 : 0), ask(url, init));
      new MutationObserver(() => window.said.push(document.querySelector(".status")?.textContent)).observe(document, { subtree: true, childList: true, characterData: true });
    }`);
    await world.open("#/s/j");
    await world.sees(".status", "live");
    assert.equal(await world.page.evaluate("window.follows"), 1);
    await world.page.evaluate("window.silences.forEach((run) => run())");
    await world.until("window.follows === 2");
    await world.send("POST", "j", JSON_TYPE, "[2]");
    await world.sees(ROWS, "2");
    assert.doesNotMatch(String(await world.page.evaluate("window.said.join()")), /trying again|ended/);
    world.hasNoFaults();
  });

  test("looks again by itself once there is a network", async (context) => {
    const world = await World.open(context, { screen: TELEPHONE });
    await world.send("PUT", "j", JSON_TYPE, "[1]");
    await world.page.beginWith(`{
      const ask = fetch;
      window.isOut = true;
      window.fetch = (url, init) => (window.isOut && !String(url).includes("streams") ? Promise.reject(new TypeError("out")) : ask(url, init));
    }`);
    await world.open("#/s/j");
    await world.sees("#main .empty", "can't be reached");
    assert.deepEqual(await world.texts("h1"), ["j"]);
    await world.page.evaluate("window.isOut = false; dispatchEvent(new Event('online'))");
    await world.sees(ROWS, "1");
    world.hasNoFaults();
  });

  test("says which stream it is before it has found it", async (context) => {
    const world = await World.open(context, { screen: TELEPHONE });
    await world.send("PUT", "j", JSON_TYPE, "[1]");
    await world.page.beginWith(`{
      const ask = fetch;
      const isLetIn = new Promise((resolve) => (window.letIn = resolve));
      window.fetch = (url, init) => (String(url).includes("prefix=j") ? isLetIn.then(() => ask(url, init)) : ask(url, init));
    }`);
    await world.open("#/s/j");
    await world.sees("h1", "j");
    await world.sees("#main", "Looking for it");
    await world.page.evaluate("window.letIn()");
    await world.sees(ROWS, "1");
    world.hasNoFaults();
  });

  test("asks nothing more of a stream that was gone back from, and goes back to none that was deleted", async (context) => {
    const world = await World.open(context, { screen: TELEPHONE });
    for (const name of ["a", "b"]) await world.send("PUT", name, JSON_TYPE, "[1]");
    await world.open("#/s/a");
    await world.sees(".status", "live");
    await world.page.evaluate("location.hash = '#/s/b'");
    await world.sees("h1", "b");
    await world.sees(".status", "live");
    await world.click("Delete");
    await world.until("document.querySelector('dialog').open");
    await world.page.evaluate("history.back()");
    await world.sees("h1", "a");
    assert.equal(await world.page.evaluate("document.querySelector('dialog').open"), false);
    await world.page.evaluate("history.forward()");
    await world.sees("h1", "b");
    await world.click("Delete");
    await world.clickOn("document.querySelector('dialog .danger')");
    await world.until("location.hash === '#/'");
    await world.page.evaluate("history.back()");
    await world.sees("h1", "a");
    world.hasNoFaults();
  });

  test("keeps what was typed for a stream that was not made, and where a refused append was typed", async (context) => {
    const world = await World.open(context, { screen: TELEPHONE });
    await world.open();
    await world.click("New");
    await world.fill("dialog input", "j");
    await world.fill("dialog textarea", "[1]");
    await world.click("Cancel");
    await world.click("New");
    assert.equal(await world.page.evaluate("document.querySelector('dialog textarea').value"), "[1]");
    await world.click("Create");
    await world.sees(".status", "live");
    await world.click("Append");
    await world.fill(".composer textarea", "{");
    await world.click("Append");
    await world.sees("#notice.bad", "JSON");
    assert.equal(await world.page.evaluate("document.activeElement.tagName"), "TEXTAREA");
    await world.page.evaluate("document.querySelector('.composer').requestSubmit(); document.querySelector('#place').focus()");
    await world.until("document.querySelector('.composer button').disabled === false");
    assert.equal(await world.page.evaluate("document.activeElement.id"), "place");
    await world.open();
    await world.click("New");
    assert.equal(await world.page.evaluate("document.querySelector('dialog textarea').value"), "");
    world.hasNoFaults(/favicon|400/);
  });

  test("makes the stream that was asked for, and keeps what is typed for the next one meanwhile", async (context) => {
    const world = await World.open(context, { screen: TELEPHONE });
    await world.page.beginWith(`{
      const ask = fetch;
      const isLetIn = new Promise((resolve) => (window.letIn = resolve));
      window.fetch = (url, init) => (init?.method === "PUT" ? isLetIn.then(() => ask(url, init)) : ask(url, init));
    }`);
    await world.open();
    await world.click("New");
    await world.fill("dialog input", "made");
    await world.click("Create");
    await world.click("Cancel");
    await world.click("New");
    await world.fill("dialog input", "second");
    await world.fill("dialog textarea", "[2]");
    await world.page.evaluate("window.letIn()");
    await world.sees("#notice", "made created.");
    await world.sees("h1", "made");
    await world.page.evaluate("location.hash = '#/'");
    await world.sees("#listed", "1 stream");
    await world.click("New");
    assert.equal(await world.page.evaluate("document.querySelector('dialog textarea').value"), "[2]");
    world.hasNoFaults();
  });

  test("leaves the keys to whoever types while the network comes back", async (context) => {
    const world = await World.open(context, { screen: TELEPHONE });
    await world.send("PUT", "j", JSON_TYPE, "[1]");
    await world.page.beginWith(`{
      const ask = fetch;
      window.isOut = true;
      window.fetch = (url, init) => (window.isOut && String(url).includes("last=") ? Promise.reject(new TypeError("out")) : ask(url, init));
    }`);
    await world.open("#/s/j");
    await world.sees(".messages .empty", "can't be reached");
    await world.fill(".composer textarea", "2");
    await world.page.evaluate("window.isOut = false; dispatchEvent(new Event('online'))");
    await world.sees(".status", "live");
    await world.page.type("3");
    assert.match(String(await world.page.evaluate("document.querySelector('.composer textarea').value")), /^(23|32)$/);
    world.hasNoFaults();
  });

  test("has room for a finger, shows what others show below a mouse, and fits a small screen", async (context) => {
    const world = await World.open(context, { screen: { ...TELEPHONE, width: 320 } });
    await world.send("PUT", "j", JSON_TYPE, "[1]");
    await world.open("#/s/j");
    await world.sees(".status", "live");
    assert.equal(await world.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), true);
    assert.equal(
      await world.page.evaluate("document.querySelector('main').scrollWidth <= document.querySelector('main').clientWidth"),
      true,
    );
    const small = `Array.from(document.querySelectorAll("button, input, select, .tabs a")).filter((one) => one.offsetParent !== null && one.offsetHeight < 30).map((one) => one.outerHTML)`;
    assert.deepEqual(await world.page.evaluate(small), []);
    await world.page.showOn({ ...TELEPHONE, width: 1024 });
    assert.equal(await world.page.evaluate("getComputedStyle(document.querySelector('.tools button')).opacity"), "1");
    world.hasNoFaults();
  });
});
