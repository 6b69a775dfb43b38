import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { AuthFile } from "../../helpers/auth-file.js";
import { ask, startSecure, tlsOptions } from "../../helpers/secure-server.js";
import { requestBytes, startServer, type TestServer } from "../../helpers/test-server.js";

const TEXT = { "Content-Type": "text/plain" };

async function scraped(server: TestServer): Promise<string> {
  const { status, headers, text } = await server.send("GET", "/metrics");
  assert.deepEqual([status, headers["content-type"]], [200, "text/plain; version=0.0.4; charset=utf-8"]);
  return text;
}

/** The value of one series; NaN where there is none. */
function valueOf(text: string, series: string): number {
  const line = text.split("\n").find((each) => each.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1) ?? NaN);
}

test("requests of both paths count by operation and status, refusals by code, and bytes both ways", async (context) => {
  const server = await startServer(context);
  await server.send("PUT", "a", { headers: TEXT, body: "first" });
  await server.send("POST", "a", { headers: TEXT, body: "second" });
  // This one takes the general path.
  await server.send("POST", "a", { headers: { ...TEXT, Connection: "close" }, body: "third" });
  await server.send("GET", "a");
  await server.send("GET", "none");
  const text = await scraped(server);
  const expected = {
    'streamdir_requests_total{operation="create",code="201"}': 1,
    'streamdir_requests_total{operation="append",code="204"}': 2,
    'streamdir_requests_total{operation="read",code="200"}': 1,
    'streamdir_requests_total{operation="read",code="404"}': 1,
    'streamdir_request_duration_seconds_count{operation="append"}': 2,
    'streamdir_refusals_total{code="stream-not-found"}': 1,
    'streamdir_refusals_total{code="overloaded"}': 0,
    streamdir_appended_bytes_total: 16,
    streamdir_streams_loaded: 1,
    streamdir_storage_writable: 1,
  };
  for (const [series, value] of Object.entries(expected)) assert.equal(valueOf(text, series), value, series);
  assert.ok(valueOf(text, "streamdir_served_bytes_total") >= 16);
  assert.ok(valueOf(text, "streamdir_journal_sync_duration_seconds_count") >= 1);
  assert.ok(!text.includes('"a"'), "a stream's name is no label");
});

test("live readers count by mode while they wait, and their wait is no duration", async (context) => {
  const server = await startServer(context, { maxLiveReaders: 7 });
  await server.send("PUT", "a", { headers: TEXT });
  const poll = await server.connect();
  poll.write(requestBytes("GET", "a?live=long-poll&offset=now"));
  const events = await server.connect();
  events.write(requestBytes("GET", "a?live=sse&offset=now"));
  const counts = async (): Promise<number[]> => {
    const text = await scraped(server);
    return ["sse", "long-poll"].map((mode) => valueOf(text, `streamdir_live_readers{mode="${mode}"}`));
  };
  while ((await counts()).join() !== "1,1");
  const text = await scraped(server);
  assert.equal(valueOf(text, "streamdir_live_readers_limit"), 7);
  for (const operation of ["sse", "long-poll"])
    assert.equal(valueOf(text, `streamdir_request_duration_seconds_count{operation="${operation}"}`), 1);
  await poll.close();
  await events.close();
  while ((await counts()).join() !== "0,0");
  const after = await scraped(server);
  for (const operation of ["sse", "long-poll"])
    assert.equal(valueOf(after, `streamdir_request_duration_seconds_count{operation="${operation}"}`), 1);
});

test("with an auth file the figures are for those who may administer", async (context) => {
  const file = new AuthFile();
  const admin = file.token("root", [{ streams: ["**"], allow: ["admin"] }]);
  const reader = file.token("reader", [{ streams: ["**"], allow: ["read"] }]);
  // Its name would match one of the server's own, were there one.
  const partial = file.token("partial", [{ streams: ["chat/**", "*/*", "__ds/**"], allow: ["admin"] }]);
  file.write();
  const server = await startServer(context, { auth: file.path, insecure: false, corsOrigin: "auto" });
  const statusFor = async (token: string | null): Promise<number> => {
    const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
    return (await server.send("GET", "/metrics", { headers: { Host: "127.0.0.1", ...headers } })).status;
  };
  assert.deepEqual(
    [await statusFor(null), await statusFor("wrong"), await statusFor(reader), await statusFor(partial), await statusFor(admin)],
    [401, 401, 403, 403, 200],
  );
});

test("below the prefix / the name belongs to a stream", async (context) => {
  const server = await startServer(context, { prefix: "/" });
  assert.equal((await server.send("PUT", "/metrics", { headers: TEXT })).status, 201);
  assert.equal((await server.send("GET", "/metrics")).headers["content-type"], "text/plain");
});

const promtool = spawnSync("promtool", ["--version"]);
const skip = promtool.error === undefined ? false : "promtool is not installed (Debian's package prometheus)";

test("promtool has nothing to say about the page", { skip }, async (context) => {
  const server = await startServer(context);
  await server.send("PUT", "a", { headers: TEXT, body: "x" });
  await server.send("GET", "none");
  const { status, stdout, stderr } = spawnSync("promtool", ["check", "metrics"], { input: await scraped(server) });
  assert.deepEqual([status, stdout.toString(), stderr.toString()], [0, "", ""]);
});

test("what a server has of TLS and of an auth file is told, and nothing of what it has not", async (context) => {
  const RELOADS = /^streamdir_(?:config|tls_cert).*$/gm;
  const plain = await startServer(context);
  assert.equal((await scraped(plain)).match(RELOADS), null);
  const file = new AuthFile();
  const token = file.token("prom", [{ streams: ["**"], allow: ["admin"] }]);
  file.write();
  const server = await startSecure(context, { auth: file.path });
  const figures = async (): Promise<readonly (string | undefined)[]> => {
    const { body } = await ask(server.session(), "GET", "/metrics", { headers: { authorization: `Bearer ${token}` } });
    return body.match(RELOADS) ?? [];
  };
  const endsAt = Date.parse(new X509Certificate(readFileSync(tlsOptions().tlsCert)).validTo) / 1000;
  const [ends, ...reloads] = await figures();
  assert.equal(ends, `streamdir_tls_certificate_expiry_timestamp_seconds ${endsAt}`);
  const told = (auth: number): readonly string[] =>
    [`auth"} ${auth}`, 'tls"} 1'].map((end) => `streamdir_config_last_reload_successful{config="${end}`);
  assert.deepEqual(reloads, told(1));
  file.spoil();
  assert.equal(await server.test.server.reload(), false);
  assert.deepEqual((await figures()).slice(1), told(0));
});
