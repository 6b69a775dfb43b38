import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createHandler, createServer } from "../../../src/server.js";
import { tempDir } from "../../helpers/temp-dir.js";
import { startServer } from "../../helpers/test-server.js";

const UI = "__ds/ui/";
const FOLDER = new URL("../../../src/page/", import.meta.url);
const POLICY = "default-src 'self'; worker-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

describe("the page's files", () => {
  test("are answered with a type, a policy of their own, and an ETag", async (context) => {
    const server = await startServer(context, { ui: true });
    for (const [file, type] of [
      ["", "text/html; charset=utf-8"],
      ["index.html", "text/html; charset=utf-8"],
      ["style.css", "text/css; charset=utf-8"],
      ["app.js", "text/javascript; charset=utf-8"],
      ["icon.svg", "image/svg+xml"],
    ] as const) {
      const answer = await server.send("GET", UI + file);
      assert.deepEqual([answer.status, answer.headers["content-type"]], [200, type], file);
      assert.deepEqual(answer.body, readFileSync(new URL(file === "" ? "index.html" : file, FOLDER)));
      assert.equal(answer.headers["content-security-policy"], POLICY);
      assert.equal(answer.headers["cross-origin-resource-policy"], "same-origin");
      assert.equal(answer.headers["x-content-type-options"], "nosniff");
      assert.equal(answer.headers["referrer-policy"], "no-referrer");
      assert.equal(answer.headers["access-control-allow-origin"], undefined);
      const etag = answer.headers["etag"] ?? "";
      const again = await server.send("GET", UI + file, { headers: { "If-None-Match": etag } });
      assert.deepEqual([again.status, again.text, again.headers["etag"]], [304, "", etag]);
      const head = await server.send("HEAD", UI + file);
      assert.deepEqual([head.status, head.headers["content-length"]], [200, answer.headers["content-length"]]);
    }
  });

  test("are no others, and take no other method", async (context) => {
    const server = await startServer(context, { ui: true });
    for (const file of ["none.js", "app.ts", "style.css/", "%2e%2e/server.ts", "..%2fserver.ts", "constructor", "__proto__"]) {
      const answer = await server.send("GET", UI + file);
      assert.deepEqual([answer.status, answer.headers["content-security-policy"]], [404, "sandbox; default-src 'none'"], file);
    }
    for (const method of ["POST", "PUT", "DELETE"]) {
      const answer = await server.send(method, UI);
      assert.deepEqual([answer.status, answer.headers["allow"]], [405, "GET, HEAD, OPTIONS"]);
    }
    const { status, headers } = await server.send("GET", "__ds/ui");
    assert.deepEqual([status, headers["location"]], [308, "ui/"]);
    assert.notEqual((await server.send("GET", "__ds/uix")).status, 200);
  });

  test("are for loopback, with ui for everybody, and the front page names them", async (context) => {
    const path = join(tempDir(), "socket");
    for (const [ui, status] of [
      ["loopback", 400],
      [true, 200],
    ] as const) {
      const server = await createServer({ dir: tempDir(), listen: `127.0.0.1:0,unix:${path}`, logLevel: "silent", ui });
      context.after(() => server.close());
      const front = await fetch(new URL("/", server.url), { headers: { Accept: "application/json" } });
      const facts = (await front.json()) as { page: string };
      assert.equal(facts.page, `${server.url}${UI}`);
      assert.equal((await fetch(facts.page)).status, 200);
      const socket = connect(path);
      socket.end(`GET /v1/stream/${UI} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
      const [bytes] = await once(socket, "data");
      assert.match(String(bytes), new RegExp(`^HTTP/1.1 ${status} `));
      await server.close();
    }
  });

  test("are not for those who come through a proxy on this machine, unless with ui", async (context) => {
    for (const ui of ["loopback", true] as const) {
      const settings = { dir: tempDir(), port: 0, logLevel: "silent", allowHost: "streams.example.com", ui } as const;
      const server = await createServer(settings);
      context.after(() => server.close());
      const { port } = new URL(server.url);
      for (const lines of [`Host: localhost:${port}\r\nX-Forwarded-For: 192.0.2.7`, "Host: streams.example.com"]) {
        const socket = connect(Number(port), "127.0.0.1");
        socket.end(`GET /v1/stream/${UI} HTTP/1.1\r\n${lines}\r\nConnection: close\r\n\r\n`);
        const [bytes] = await once(socket, "data");
        assert.match(String(bytes), new RegExp(`^HTTP/1.1 ${ui === true ? 200 : 400} `), lines);
      }
    }
  });

  test("are nobody's without ui, and the front page does not name them", async (context) => {
    const server = await createServer({ dir: tempDir(), port: 0, logLevel: "silent", ui: false });
    context.after(() => server.close());
    const front = await fetch(new URL("/", server.url), { headers: { Accept: "application/json" } });
    assert.ok(!JSON.stringify(await front.json()).includes(UI));
    const answer = await fetch(`${server.url}${UI}`);
    assert.equal(answer.status, 400);
    assert.match(await answer.text(), /"detail":"The page is not served here; the server's option --ui serves it to all."/);
  });

  test("are not an embedding server's, unless it asks", async (context) => {
    for (const [ui, status] of [
      ["loopback", 400],
      [false, 400],
      [true, 200],
    ] as const) {
      const handler = await createHandler({ dir: tempDir(), logLevel: "silent", ui });
      const server = createHttpServer(handler).listen(0, "127.0.0.1");
      await once(server, "listening");
      context.after(async () => (server.close(), await handler.close()));
      const { port } = server.address() as AddressInfo; // it listens on a port
      const url = `http://127.0.0.1:${port}/v1/stream/${UI}`;
      assert.equal((await fetch(url)).status, status);
      // Its own metrics are the embedding server's: nobody is to send a token there.
      if (status === 200) assert.match(await (await fetch(`${url}facts`)).text(), /"metrics":null/);
    }
  });
});

test("no file of the page makes anything but text of what it is given", () => {
  for (const file of readdirSync(FOLDER)) {
    const text = readFileSync(new URL(file, FOLDER), "utf8");
    assert.doesNotMatch(
      text,
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\.style\b|\sstyle=|javascript:|https?:\/\/(?!www\.w3\.org)/,
      file,
    );
    if (file.endsWith(".html")) assert.doesNotMatch(text, /<script(?![^>]* src=)|\son\w+=/);
  }
});
