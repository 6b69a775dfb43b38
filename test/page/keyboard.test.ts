// The page for those who use the keyboard, a screen reader, a magnifier, or speak to their computer.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { lacksChromium } from "../helpers/chromium.js";
import { JSON_TYPE, TEXT, World } from "./world.js";

/** What has the focus. */
const FOCUSED = "(document.activeElement.id || document.activeElement.className || document.activeElement.textContent)";
/** Presses a button as the keyboard does. */
const press = (world: World, label: string): Promise<void> =>
  world.clickOn(
    `Array.from(document.querySelectorAll("button")).filter((one) => one.textContent === ${JSON.stringify(label)} && one.offsetParent !== null && (one.focus(), true))[0]`,
  );

describe("the page without a mouse", { skip: lacksChromium, timeout: 900_000 }, () => {
  test("keeps the focus where something was pressed, or on what came in its place", async (context) => {
    const world = await World.open(context, { flags: ["--chunk-bytes", "700"] });
    await world.send("PUT", "j", JSON_TYPE, JSON.stringify(Array.from({ length: 450 }, (_, at) => at)));
    await world.send("PUT", "t", TEXT, `${"x".repeat(10_000)}\n`);
    await world.open("#/s/j");
    await world.sees(".status", "100 shown");
    await press(world, "Earlier messages");
    await world.sees(".status", "200 shown");
    await world.until(`${FOCUSED} === "Earlier messages"`);
    await world.page.evaluate("location.hash = '#/s/j?at=-1'");
    await world.sees(".status", "100 shown");
    // Some of it is of the first answer, the rest in others, the last of which has nothing behind it.
    for (let shown = 100; shown < 450;) {
      await press(world, "More");
      await world.until(`document.querySelectorAll(".row").length > ${shown}`);
      shown = Number(await world.page.evaluate("document.querySelectorAll('.row').length"));
      await world.until(`${FOCUSED} === "${shown < 450 ? "More" : "main"}"`);
    }
    await world.page.evaluate("location.hash = '#/s/t'");
    await press(world, "Show all 9.8 KiB");
    await world.until("document.activeElement.classList.contains('row')");
    // What was pressed is gone with its view.
    await press(world, "Close");
    await world.clickOn("document.querySelector('dialog .danger')");
    await world.sees(".badges", "closed");
    await world.until(`${FOCUSED} === "main"`);
    await press(world, "Delete");
    await world.clickOn("document.querySelector('dialog .danger')");
    await world.until(`location.hash === "#/" && ${FOCUSED} === "main"`);
    world.hasNoFaults();
  });

  test("keeps the focus in a dialog that is refused, and says what a dialog is about", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "a", TEXT);
    await world.open("#/s/a");
    await world.sees(".status", "live");
    await press(world, "Fork");
    await world.fill("dialog input", "../a");
    await world.page.evaluate("{ const fork = document.querySelector('dialog .primary'); fork.focus(); fork.click(); }");
    await world.until("document.querySelector('dialog .fault').textContent !== ''");
    assert.equal(await world.page.evaluate("document.activeElement.closest('dialog') !== null"), true);
    await world.click("Cancel");
    await press(world, "Delete");
    await world.sees("#what", "All of a goes, and does not come back.");
    assert.equal(await world.page.evaluate("document.querySelector('dialog').getAttribute('aria-describedby')"), "what");
    world.hasNoFaults(/favicon|400/);
  });

  test("skips the tree, and names each view in the title", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "a", JSON_TYPE, "[1]");
    await world.open("#/s/a");
    await world.sees(".status", "live");
    await world.page.press("Tab");
    assert.equal(await world.page.evaluate(FOCUSED), "skip");
    await world.page.press("Enter");
    await world.until(`${FOCUSED} === "main"`);
    const titles: unknown[] = [];
    for (const [hash, place] of [
      ["#/s/a", ".status"],
      ["#/s/a?tab=about", ".facts"],
      ["#/server", ".server"],
      ["#/", ".home"],
    ] as const) {
      await world.page.evaluate(`location.hash = "${hash}"`);
      await world.sees(place, "");
      titles.push(await world.page.evaluate("document.title"));
    }
    assert.deepEqual(titles, ["a · Messages · streamdir", "a · About · streamdir", "Server · streamdir", "streamdir"]);
    world.hasNoFaults();
  });

  test("leaves single letters alone where somebody wants that, also after it is loaded again", async (context) => {
    const world = await World.open(context);
    await world.open();
    await press(world, "Turn these off");
    await world.page.reload();
    await world.sees(".home", "Turn these on");
    await world.page.press("n");
    assert.equal(await world.page.evaluate("document.querySelector('dialog').open"), false);
    await press(world, "Turn these on");
    await world.page.press("n");
    await world.until("document.querySelector('dialog').open");
    world.hasNoFaults();
  });

  test("tells who listens what a filter leaves and what is missing, and not each message of a flood", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "j", JSON_TYPE, "[1,2,12,3]");
    await world.open("#/s/none");
    await world.sees("[role=alert]", "There is no stream of this name.");
    await world.page.evaluate("location.hash = '#/s/j'");
    await world.sees(".status", "4 shown");
    await world.until("document.querySelector('.rows').ariaLive === 'polite'");
    await world.fill('.toolbar input[type="search"]', "2");
    await world.sees(".unseen[role=status]", "2 of 4 shown");
    await world.send("POST", "j", JSON_TYPE, JSON.stringify(Array.from({ length: 100 }, (_, at) => at)));
    await world.until("document.querySelector('.rows').ariaLive === 'off'");
    await world.until("document.querySelector('.rows').ariaLive === 'polite'");
    world.hasNoFaults(/favicon|404/);
  });

  test("says what went wrong until something goes well, or it is clicked away", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "j", JSON_TYPE, "[1]");
    await world.page.beginWith(`{
      const real = setTimeout;
      window.setTimeout = (run, ms) => real(run, ms === 6000 ? 0 : ms);
    }`);
    await world.open("#/s/j");
    await world.sees(".status", "live");
    await world.fill(".composer textarea", "{");
    await world.click("Append");
    await world.sees("#notice.bad", "JSON");
    await world.page.evaluate("new Promise((resolve) => setTimeout(resolve, 10))");
    await world.sees("#notice.bad", "JSON");
    await world.clickOn("document.querySelector('#notice')");
    assert.deepEqual(await world.texts("#notice"), [""]);
    world.hasNoFaults(/favicon|400/);
  });

  test("shows what has the focus below what stays on top, in a window of any height", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "j", JSON_TYPE, JSON.stringify(Array.from({ length: 60 }, (_, at) => at)));
    for (const screen of [
      { width: 1200, height: 760 },
      { width: 640, height: 380 },
      { width: 320, height: 640 },
      { width: 320, height: 256 },
    ]) {
      await world.page.showOn(screen);
      await world.open("#/s/j");
      await world.sees(".status", "60 shown");
      const hidden = await world.page.evaluate(`(async () => {
        const frame = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
        document.querySelector("main").scrollTop = 1e6;
        await frame();
        const hidden = [];
        for (const one of Array.from(document.querySelectorAll(".tools button")).reverse()) {
          one.focus();
          await frame();
          const { left, top, width, height } = one.getBoundingClientRect();
          const seen = document.elementFromPoint(left + width / 2, top + height / 2);
          if (seen !== one) hidden.push([Math.round(top), seen?.outerHTML.slice(0, 200), document.querySelector(".toolbar").getBoundingClientRect().bottom]);
        }
        return hidden;
      })()`);
      assert.deepEqual(hidden, [], `${screen.width} x ${screen.height}`);
    }
    world.hasNoFaults();
  });
});
