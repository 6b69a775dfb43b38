// The page where something is odd: names, sizes, the way to the server, rights that end.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { AuthFile } from "../helpers/auth-file.js";
import { lacksChromium } from "../helpers/chromium.js";
import { documentedBlock, lacksNginx, Nginx, type HttpBlock } from "../proxies/nginx.js";
import { JSON_TYPE, ROWS, TEXT, World } from "./world.js";

/** The streams alone, below another path. */
const elsewhere: HttpBlock = ({ port, originPort }) => `server {
  listen 127.0.0.1:${port};
  client_max_body_size 16m;
  location /below/this/ {
    proxy_pass http://127.0.0.1:${originPort}/v1/stream/;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_buffering off;
  }
}`;

describe("the page in Chromium, where something is odd", { skip: lacksChromium, timeout: 900_000 }, () => {
  test("shows and opens streams whatever they are called", async (context) => {
    const world = await World.open(context);
    const names = ["a b", "ü/ñ/日本", "😀", "100%", "a%2Fb", "x?y#z", "__dsx", "'\"`${1}", "-1", "constructor", "__proto__/a", "a"];
    for (const name of names) await world.send("PUT", name.split("/").map(encodeURIComponent).join("/"), TEXT, `${name} it is\n`);
    await world.open();
    await world.sees("#listed", `${names.length} streams`);
    for (const name of names) {
      await world.clickOn(`Array.from(document.querySelectorAll("#tree a")).find((one) => one.title === ${JSON.stringify(name)})`);
      await world.sees("h1", name);
      await world.sees(ROWS, `${name} it is`);
      assert.equal(await world.page.evaluate("document.querySelector('h1').textContent"), name);
    }
    world.hasNoFaults();
  });

  test("shows a message of 16 MiB, and some of many that are large", async (context) => {
    const world = await World.open(context);
    const most = 16 * 1024 * 1024;
    await world.send("PUT", "huge", JSON_TYPE, JSON.stringify(["x".repeat(most - 8)]));
    await world.open("#/s/huge");
    await world.sees(".rows .tools", "16 MiB");
    assert.ok(Number(await world.page.evaluate(`document.querySelector(${JSON.stringify(ROWS)}).textContent.length`)) < 10_000);
    await world.send("PUT", "large", TEXT);
    for (let at = 0; at < 6; at += 1) await world.send("POST", "large", TEXT, `${String(at).repeat(4 * 1024 * 1024 - 1)}\n`);
    await world.open("#/s/large");
    await world.sees(ROWS, "5555");
    const shown = Number(await world.page.evaluate("document.querySelectorAll('.rows .row').length"));
    assert.ok(shown >= 1 && shown <= 6, String(shown));
    world.hasNoFaults();
  });

  test("says that the server can't be reached, and goes on when it is there again", async (context) => {
    const world = await World.open(context);
    await world.send("PUT", "t", TEXT, "one\n");
    await world.open("#/s/t");
    await world.sees(".status", "live");
    await world.kill();
    await world.sees(".status", "trying again");
    await world.sees("#listed", "can't be reached");
    await world.killAndStartAgain();
    await world.send("POST", "t", TEXT, "two\n");
    await world.sees(ROWS, "two");
    await world.sees("#listed", "1 stream");
    world.hasNoFaults(/favicon|ERR_/);
  });

  test("asks for a token where one is needed, and again for one that is refused", async (context) => {
    const auth = new AuthFile();
    const token = auth.token("owner", [{ streams: ["**"], allow: ["list", "read", "create", "admin"] }]);
    auth.write();
    const world = await World.open(context, { flags: ["--auth", auth.path] });
    await world.send("PUT", "t", { ...TEXT, Authorization: `Bearer ${token}` }, "one\n");
    const use = async (given: string): Promise<void> => {
      await world.click("Give a token");
      await world.fill("dialog[open] input", given);
      await world.click("Use it");
      await world.until("!document.querySelector('dialog')?.open");
    };
    for (const [hash, place] of [
      ["", ".home"],
      ["#/s/t", ".empty"],
      ["#/server", ".server .status"],
    ] as const) {
      await world.open(hash);
      await world.sees(place, "This needs a token.");
      await world.sees("#listed", "This needs a token.");
      await use("sd_wrong");
      await world.until("document.body.dataset.trouble === 'token'");
      // While the page asks again there is nothing in its place.
      await world.until(`/token is (unknown|not valid)/.test(document.querySelector(${JSON.stringify(place)})?.textContent ?? '')`);
      assert.equal(await world.page.evaluate("document.querySelector('#token').textContent"), "Token");
      assert.doesNotMatch(String(await world.page.evaluate("document.querySelector('#main').textContent")), /Look again|New stream/);
      await use(token);
      await world.sees("#listed", "1 stream");
      await world.sees("#token", "Token ✓");
      await world.until("!document.querySelector('#main').textContent.includes('Give a token')");
      await world.page.evaluate("sessionStorage.clear()");
    }
    world.hasNoFaults(/favicon|401/);
  });

  test("says that a right has ended while it follows", async (context) => {
    const auth = new AuthFile();
    const token = auth.token("owner", [{ streams: ["**"], allow: ["list", "read", "create", "admin"] }]);
    auth.write();
    const world = await World.open(context, { flags: ["--auth", auth.path] });
    await world.send("PUT", "t", { ...TEXT, Authorization: `Bearer ${token}` }, "one\n");
    await world.open("#/s/t");
    await world.click("Token");
    await world.fill("dialog input", token);
    await world.click("Use it");
    await world.sees(".status", "live");
    auth.removeToken("owner");
    auth.write();
    await world.reload();
    await world.sees(".status", "ended");
    await world.sees("#listed", "The token is unknown, over or revoked.");
    await world.sees(ROWS, "one");
    assert.equal(await world.page.evaluate("document.querySelector('#token').textContent"), "Token");
    world.hasNoFaults(/favicon|401/);
  });

  for (const [title, script] of [
    ["all storage", "Object.defineProperty(window, 'sessionStorage', { get() { throw new DOMException('no', 'SecurityError'); } });"],
    ["to store", "Storage.prototype.setItem = () => { throw new DOMException('no', 'QuotaExceededError'); };"],
  ] as const)
    test(`works, and keeps its token until it is loaded again, where the browser refuses ${title}`, async (context) => {
      const auth = new AuthFile();
      const token = auth.token("owner", [{ streams: ["**"], allow: ["list", "read", "create"] }]);
      auth.write();
      const world = await World.open(context, { flags: ["--auth", auth.path] });
      await world.send("PUT", "t", { ...TEXT, Authorization: `Bearer ${token}` }, "one\n");
      await world.page.beginWith(script);
      await world.open();
      await world.until("document.body.dataset.trouble === 'token'");
      await world.click("Token");
      await world.fill("dialog input", token);
      await world.click("Use it");
      await world.sees("#tree", "t");
      await world.open("#/s/t");
      await world.until("document.body.dataset.trouble === 'token'");
      world.hasNoFaults(/favicon|401/);
    });

  for (const [title, block, path] of [
    ["as docs/nginx.conf has it", documentedBlock, "v1/stream/"],
    ["below another path", elsewhere, "below/this/"],
  ] as const) {
    test(`works behind nginx, ${title}`, { skip: lacksNginx }, async (context) => {
      const world = await World.open(context, { flags: ["--ui"] });
      await world.send("PUT", "a/b", TEXT, "through nginx\n");
      const { port } = await Nginx.start(context, world.port, block);
      world.behind = `http://127.0.0.1:${port}/${path}`;
      await world.open("#/s/a/b");
      await world.sees(ROWS, "through nginx");
      await world.sees(".status", "live");
      await world.fill(".composer textarea", "and back");
      await world.click("Append");
      await world.sees(ROWS, "and back");
      await world.click("Fork");
      await world.fill("dialog input", "c");
      await world.clickOn("document.querySelector('dialog .primary')");
      await world.sees("h1", "c");
      await world.sees(ROWS, "and back");
      await world.sees("#listed", "2 streams");
      await world.open("#/server");
      await world.sees(".server .status", "No figures");
      world.hasNoFaults(/favicon|404/);
    });
  }
});
