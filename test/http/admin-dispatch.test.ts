import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { test } from "node:test";
import { join } from "node:path";
import { RawConnection } from "../helpers/raw-connection.js";
import { requestBytes, startServer, type TestServer } from "../helpers/test-server.js";
import { AuthFile } from "../helpers/auth-file.js";
import { tempDir } from "../helpers/temp-dir.js";

interface Page {
  readonly status: number;
  readonly text: string;
}

/** Asks at the first address of `--admin-listen`. */
async function asked(server: TestServer, path: string, method = "GET", headers: Record<string, string> = {}): Promise<Page> {
  const [address = ""] = server.server.adminListening;
  const [host, port] = address.split(":");
  const place = address.startsWith("unix:") ? { socketPath: address.slice(5) } : { host, port };
  const req = request({ ...place, path, method, headers, agent: false });
  req.end();
  const [res] = (await once(req, "response")) as [import("node:http").IncomingMessage]; // as Node says
  let text = "";
  for await (const chunk of res) text += String(chunk);
  return { status: res.statusCode ?? 0, text };
}

test("an address for those who watch has four pages, without a credential, and nothing else", async (context) => {
  const file = new AuthFile();
  file.write();
  const server = await startServer(context, { auth: file.path, adminListen: "127.0.0.1:0" });
  const fine = { status: 200, text: '{"status":"ok"}' };
  for (const path of ["/livez", "/readyz", "/health"]) assert.deepEqual(await asked(server, path), fine);
  assert.match((await asked(server, "/metrics")).text, /^# HELP streamdir_build_info /);
  assert.equal((await asked(server, "/v1/stream/a")).status, 404);
  assert.equal((await asked(server, "/constructor")).status, 404);
  assert.equal((await asked(server, "/metrics", "POST")).status, 405);
  assert.equal((await asked(server, "/metrics", "HEAD")).status, 200);
  assert.equal((await server.send("GET", "/metrics")).status, 404, "they are there and nowhere else");
});

test("it may be a Unix socket", async (context) => {
  const server = await startServer(context, { adminListen: `unix:${join(tempDir(), "admin.sock")}` });
  assert.equal((await asked(server, "/livez")).status, 200);
});

test("it is for this machine's names alone, so that a page that rebinds its own reads nothing", async (context) => {
  const own = { adminListen: "127.0.0.1:0", insecure: false };
  const server = await startServer(context, { ...own, allowHost: "watch.example" });
  const statusFor = async (Host: string, path = "/metrics"): Promise<number> => (await asked(server, path, "GET", { Host })).status;
  for (const host of ["evil.example", "evil.example:9464", "192.0.2.1"]) assert.equal(await statusFor(host), 421, host);
  assert.equal(await statusFor("evil.example", "/livez"), 421);
  assert.equal(await statusFor("localhost", "http://evil.example/metrics"), 421);
  assert.match((await asked(server, "/metrics", "GET", { Host: "evil.example" })).text, /"code":"host-not-allowed"/);
  for (const host of ["localhost:1", "127.0.0.1", "[::1]:9464", "watch.example"]) assert.equal(await statusFor(host), 200, host);
});

test("it is for every name where everybody may come, and on a Unix socket", async (context) => {
  for (const own of [
    { adminListen: "127.0.0.1:0", insecure: true },
    { adminListen: `unix:${join(tempDir(), "admin.sock")}`, insecure: false },
  ]) {
    const server = await startServer(context, own);
    assert.equal((await asked(server, "/metrics", "GET", { Host: "any.example" })).status, 200);
  }
});

test("it is refused where everybody could reach it", async (context) => {
  const file = new AuthFile();
  file.write();
  const options = { auth: file.path, insecure: false, adminListen: "0.0.0.0:0" };
  await assert.rejects(startServer(context, options), /--admin-listen asks for no credential/);
  const server = await startServer(context, { ...options, insecure: true });
  assert.equal(server.server.adminListening.length, 1);
});

test("while a server stops it is alive and not ready, and its streams are served until the delay is over", async (context) => {
  const server = await startServer(context, { adminListen: "127.0.0.1:0", shutdownDelayMs: 5000 });
  const before = await server.connect();
  const stopped = server.server.close();
  assert.deepEqual(await asked(server, "/readyz"), {
    status: 503,
    text: '{"status":"unavailable","reason":"The server is shutting down."}',
  });
  assert.equal((await server.send("GET", "/readyz")).status, 503);
  assert.equal((await server.send("GET", "/health")).status, 200);
  assert.equal((await asked(server, "/livez")).status, 200);
  before.write(requestBytes("PUT", "a", { headers: { "Content-Type": "text/plain" } }));
  assert.equal((await before.answer()).status, 201);
  server.clock.advance(5000);
  await stopped;
  await assert.rejects(asked(server, "/livez"));
});

test("too many requests that wait on one of its connections end that, with an answer that says so", async (context) => {
  const server = await startServer(context, { adminListen: "127.0.0.1:0" });
  const [address = ""] = server.server.adminListening;
  const connection = await RawConnection.open(Number(address.split(":")[1]));
  context.after(() => connection.close());
  connection.write(requestBytes("GET", "/livez").toString().repeat(500));
  const statuses: number[] = [];
  while (statuses.length < 500 && statuses.at(-1) !== 503) statuses.push((await connection.answer()).status);
  assert.deepEqual(new Set(statuses), new Set([200, 503]));
  assert.ok(statuses.length > 256);
  assert.equal(await connection.rest(), "");
});
