// What the page makes of names that no stream has, and of those that one has already.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { lacksChromium } from "../helpers/chromium.js";
import { JSON_TYPE, ROWS, World } from "./world.js";

describe("names in the page", { skip: lacksChromium, timeout: 900_000 }, () => {
  test("a link to what would be another address sends nothing there, and so no token", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "b", JSON_TYPE, "[1]");
    for (const name of ["../../health", "a/../b", "a/./b", "..", "%2e%2e/%2e%2e/health", "/..//none.test/x"]) {
      await world.open(`#/s/${name}`);
      await world.sees("#main", "No stream can have this name.");
    }
    for (const name of ["//none.test/x", "/b"]) {
      await world.open(`#/s/${name}`);
      await world.until("document.querySelector('#main .empty') !== null");
    }
    const asked = await world.page.evaluate("performance.getEntriesByType('resource').map((one) => one.name).join(' ')");
    for (const url of String(asked).split(" ")) assert.ok(url.startsWith(world.url()), url);
    world.hasNoFaults(/favicon|40[04]/);
  });

  test("a stream that was deleted and made anew while it is shown is looked for again when somebody asks", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "a", JSON_TYPE, '[{"n":1}]');
    await world.open("#/s/a");
    await world.sees(".status", "live");
    await world.send("DELETE", "a");
    await world.sees(".status", "ended");
    await world.send("PUT", "a", JSON_TYPE, '[{"n":2}]');
    await world.sees(ROWS, "n: 1");
    await world.page.evaluate(
      "for (let count = 0; count < 3; count += 1) document.dispatchEvent(new KeyboardEvent('keydown', { key: 'p', bubbles: true }))",
    );
    await world.sees(ROWS, "n: 2");
    await world.sees(".status", "live");
    assert.equal(await world.page.evaluate("document.querySelectorAll('.messages').length"), 1);
    assert.match(await (await world.send("GET", "__ds/streams")).text(), /"liveReaders":1\b/);
    await world.send("DELETE", "a");
    await world.sees(".status", "ended");
    await world.click("Look again");
    await world.sees("#main .empty", "There is no stream of this name.");
    world.hasNoFaults(/favicon|404/);
  });

  test("a new stream whose name is taken is said to be there already, and nothing is appended", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "a", JSON_TYPE, '[{"n":1}]');
    await world.open();
    await world.click("New");
    await world.fill("dialog input", "a");
    await world.fill("dialog textarea", '{"n":2}');
    await world.click("Create");
    await world.sees("#notice", "a was there already: nothing was appended.");
    await world.sees(ROWS, "n: 1");
    assert.deepEqual(await (await world.send("GET", "a")).json(), [{ n: 1 }]);
    await world.click("New");
    await world.fill("dialog input", "../x");
    await world.click("Create");
    await world.sees("dialog", "No stream can have this name.");
    world.hasNoFaults();
  });
});
