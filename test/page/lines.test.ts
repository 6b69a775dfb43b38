// Text in a real browser: a line that comes in parts is one message, and its bytes are those that are stored.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { lacksChromium } from "../helpers/chromium.js";
import { ROWS, TEXT, World } from "./world.js";

describe("the lines of a text in Chromium", { skip: lacksChromium, timeout: 900_000 }, () => {
  test("are the same live and read again, whatever they were appended in", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "t", TEXT);
    const tokens = Array.from({ length: 150 }, (_, at) => `w${at} `);
    for (const token of tokens) await world.send("POST", "t", TEXT, token);
    await world.open("#/s/t");
    await world.sees(".status", "live · 1 shown");
    assert.deepEqual(await world.texts(ROWS), [tokens.join("")]);
    for (const token of ["en", "d", "\nsecond", " line\n", "third"]) await world.send("POST", "t", TEXT, token);
    await world.sees(ROWS, "third");
    const lines = ["third", "second line", `${tokens.join("")}end`];
    assert.deepEqual(await world.texts(ROWS), lines);
    await world.click("Pause");
    for (const token of [" goes", " on\nfour", "th"]) await world.send("POST", "t", TEXT, token);
    await world.sees(".status", "1 new");
    assert.deepEqual(await world.texts(ROWS), lines);
    await world.click("Resume");
    await world.sees(ROWS, "fourth");
    const all = ["fourth", "third goes on", ...lines.slice(1)];
    assert.deepEqual(await world.texts(ROWS), all);
    await world.page.reload();
    await world.sees(".status", "live · 4 shown");
    assert.deepEqual(await world.texts(ROWS), all);
    world.hasNoFaults();
  });

  test("are whole again when what is before is read", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "t", TEXT);
    for (const part of ["o", "ne\ntw", "o\n", "th", "re", "e"]) await world.send("POST", "t", TEXT, part);
    await world.open("#/s/t?last=2");
    await world.sees(".status", "live · 1 shown");
    assert.deepEqual(await world.texts(ROWS), ["ree"]);
    await world.click("Earlier messages");
    await world.sees(".status", "3 shown");
    assert.deepEqual(await world.texts(ROWS), ["three", "two", "one"]);
    world.hasNoFaults();
  });

  test("have the bytes that are stored", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "t", TEXT, Buffer.from([0xef, 0xbb, 0xbf, 0xff, 0x0d, 0x0a, 0xc3]));
    await world.open("#/s/t?show=hex");
    await world.sees(".status", "live · 2 shown");
    assert.deepEqual(
      ((await world.texts(ROWS)) as string[]).map((row) => row.slice(10, 22).trim()),
      ["c3", "ef bb bf ff"],
    );
    world.hasNoFaults();
  });

  test("stay as long as they were asked for while they grow, and go on in another row beyond what a row can bear", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "t", TEXT, "x".repeat(5000));
    await world.open("#/s/t");
    await world.click("Show all 4.9 KiB");
    await world.send("POST", "t", TEXT, "y".repeat(5000));
    await world.until(`document.querySelector(".row .body").textContent === "x".repeat(5000) + "y".repeat(5000)`);
    await world.send("POST", "t", TEXT, "z".repeat(300_000));
    await world.sees(".status", "2 shown");
    await world.sees(ROWS, "zzz");
    world.hasNoFaults();
  });
});
