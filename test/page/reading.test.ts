// Reading back in a real browser: nothing between two pages is left out, and nothing is shown otherwise than it is.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { lacksChromium } from "../helpers/chromium.js";
import { JSON_TYPE, ROWS, TEXT, World } from "./world.js";

/** How many messages are on the page. */
const ROW_COUNT = "document.querySelectorAll('.rows .row').length";

/** Reads back until there is nothing before. */
async function readBack(world: World): Promise<void> {
  for (;;) {
    const before = Number(await world.page.evaluate(ROW_COUNT));
    if (await world.page.evaluate("document.querySelector('.more button')?.hidden !== false")) return;
    await world.click("Earlier messages");
    await world.until(`${ROW_COUNT} > ${before} || document.querySelector('.more button')?.hidden !== false`);
  }
}

function downFrom(count: number): string[] {
  return Array.from({ length: count }, (_, at) => String(count - 1 - at));
}

describe("the messages of a stream in Chromium", { skip: lacksChromium, timeout: 900_000 }, () => {
  test("are read back to the first, also where one append has thousands of lines", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "t", TEXT, `${downFrom(2500).reverse().join("\n")}\n`);
    await world.open("#/s/t");
    await world.sees(".status", "1000 shown");
    await readBack(world);
    assert.deepEqual(await world.texts(ROWS), downFrom(2500));
    await world.send("PUT", "j", JSON_TYPE, `[${downFrom(2500).reverse().join()}]`);
    await world.open("#/s/j?last=1200");
    await world.sees(".status", "1000 shown");
    await readBack(world);
    assert.deepEqual(await world.texts(ROWS), downFrom(2500));
    world.hasNoFaults();
  });

  test("are read back over those that made room for newer ones", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "j", JSON_TYPE, `[${downFrom(1200).reverse().join()}]`);
    await world.open("#/s/j?last=1000");
    await world.sees(".status", "live · 1000 shown");
    await world.send("POST", "j", JSON_TYPE, "[1200,1201,1202]");
    await world.sees(ROWS, "1202");
    await world.sees(".status", "1000 shown");
    await readBack(world);
    assert.deepEqual(await world.texts(ROWS), downFrom(1203));
    world.hasNoFaults();
  });

  test("are read back with those that were read and not shown yet when newer ones came", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "j", JSON_TYPE, `[${downFrom(2500).reverse().join()}]`);
    await world.open("#/s/j?last=1200");
    await world.sees(".status", "live · 1000 shown");
    await world.send("POST", "j", JSON_TYPE, "[2500,2501,2502]");
    await world.sees(ROWS, "2502");
    await readBack(world);
    assert.deepEqual(await world.texts(ROWS), downFrom(2503));
    world.hasNoFaults();
  });

  test("are cut at the ends of lines where they are read on, not at those of answers", async (context) => {
    const world = await World.open(context, { flags: ["--chunk-bytes", "8"] });
    await world.send("PUT", "t", TEXT, "on");
    for (const part of ["e\ntwo", Buffer.from("€\n").subarray(0, 1), Buffer.from("€\n").subarray(1)])
      await world.send("POST", "t", TEXT, part);
    await world.open("#/s/t?at=-1");
    await world.until("document.querySelector('.more button')?.textContent === 'More'");
    while (!(await world.page.evaluate("document.querySelector('.more button')?.hidden ?? true"))) {
      await world.click("More");
      await world.until("!document.querySelector('.status').textContent.startsWith('reading')");
    }
    await world.sees(".status", "up to the tail");
    assert.deepEqual(await world.texts(ROWS), ["one", "two€"]);
    world.hasNoFaults();
  });

  test("are read back a few at a time where they are long", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "t", TEXT);
    for (let at = 0; at < 7; at += 1) await world.send("POST", "t", TEXT, `${at}${"x".repeat(1536 * 1024)}\n`);
    await world.open("#/s/t");
    await world.sees(".status", "live · 4 shown");
    await world.click("Earlier messages");
    await world.sees(".status", "6 shown");
    const firsts = await world.page.evaluate(`Array.from(document.querySelectorAll(${JSON.stringify(ROWS)}), (row) => row.textContent[0])`);
    assert.deepEqual(firsts, ["6", "5", "4", "3", "2", "1"]);
    world.hasNoFaults();
  });

  test("have their numbers to the digit, and their keys as often as they were written", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "j", JSON_TYPE, '[{"b":1.0,"1":12345678901234567890,"b":1e400},12345678901234567.10]');
    await world.open("#/s/j");
    await world.sees(".status", "2 shown");
    assert.deepEqual(await world.texts(ROWS), ["12345678901234567.10", "{b: 1.0, 1: 12345678901234567890, b: 1e400}"]);
    await world.page.evaluate("document.querySelector('.rows summary').click()");
    await world.until("document.querySelectorAll('.rows .member').length === 3");
    assert.deepEqual(await world.texts(".rows .member"), ['"b": 1.0', '"1": 12345678901234567890', '"b": 1e400']);
    world.hasNoFaults();
  });

  test("have no way to earlier ones where the place is none", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "t", TEXT, "x\n");
    await world.open("#/s/t?at=nowhere");
    await world.sees("#notice", "An offset is");
    assert.equal(await world.page.evaluate("document.querySelector('.more button').hidden"), true);
    world.hasNoFaults(/favicon|400/);
  });

  test("have their size beside the stream's name, as it grows and until it is closed", async (context) => {
    const world = await World.open(context);
    await world.open();
    await world.sees("#listed", "No stream yet");
    await world.click("New");
    await world.fill("dialog input", "j");
    await world.fill("dialog textarea", '{"hello":"world"}');
    await world.click("Create");
    await world.sees(".badges", "19 B");
    await world.sees("#tree .hint", "19 B");
    await world.send("POST", "j", JSON_TYPE, "[12345678]");
    await world.sees(".badges", "29 B");
    await world.sees("#tree .hint", "29 B");
    await world.send("POST", "j", { "Stream-Closed": "true" });
    await world.sees(".badges", "closed");
    await world.sees("#tree .hint", "closed");
    world.hasNoFaults();
  });

  test("are deleted under the name that the stream has, not under one that it looks like", async (context) => {
    const world = await World.open(context);
    const name = encodeURIComponent("\u202eevil");
    await world.send("PUT", name, TEXT, "x\n");
    await world.open(`#/s/${name}`);
    await world.sees("h1", "\\u202eevil");
    await world.sees("#tree .name", "\\u202eevil");
    await world.click("Delete");
    await world.sees("dialog b", "\\u202eevil");
    await world.clickOn("document.querySelector('dialog[open] .danger')");
    await world.sees("#listed", "No stream yet");
    world.hasNoFaults(/favicon|404/);
  });
});
