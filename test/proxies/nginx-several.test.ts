import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { AuthFile } from "../helpers/auth-file.js";
import { ask, codeOf, RealServer, type Reply, type Wish } from "../helpers/real-server.js";
import type { TestScope } from "../helpers/process.js";
import { EventFollower } from "./follow.js";
import { lacksNginx, Nginx, type HttpBlock } from "./nginx.js";
import { freePorts } from "../helpers/free-ports.js";

const DOCUMENTED = readFileSync(fileURLToPath(new URL("../../docs/nginx-several.conf", import.meta.url)), "utf8");
const TEXT = { "Content-Type": "text/plain" };
const TIMEOUT_MS = 300_000;
const DOCUMENTED_PORTS = [4437, 4438, 4439];

/** docs/nginx-several.conf, with other ports and places. */
function blockFor(ports: readonly number[]): HttpBlock {
  return ({ port, dir }) => {
    let text = DOCUMENTED;
    for (const [at, documented] of DOCUMENTED_PORTS.entries()) {
      assert.equal(text.split(`server 127.0.0.1:${documented};`).length, 3, `the server ${documented} has an upstream, and issues tickets`);
      text = text.replaceAll(`server 127.0.0.1:${documented};`, `server 127.0.0.1:${ports[at]};`);
    }
    for (const [documented, here] of [
      ["listen 80;", `listen 127.0.0.1:${port};`],
      ["/var/log/nginx/streamdir.log ", `${join(dir, "access.log")} `],
    ] as const) {
      assert.equal(text.split(documented).length, 2, `the file says once: ${documented}`);
      text = text.replace(documented, here);
    }
    return text;
  };
}

/** Three servers, each with a directory of its own, and nginx before them. */
interface Several {
  readonly nginx: Nginx;
  readonly servers: readonly RealServer[];
  readonly send: (method: string, name: string, wish?: Wish) => Promise<Reply>;
}

async function startSeveral(scope: TestScope, args: readonly string[] = []): Promise<Several> {
  const ports = await freePorts(3);
  const servers = ports.map((port) => new RealServer(scope, ["--port", String(port), "--trust-proxy", "127.0.0.1", ...args]));
  await Promise.all(servers.map((server) => server.start()));
  const nginx = await Nginx.start(scope, 0, blockFor(ports));
  return { nginx, servers, send: (method, name, wish) => ask(`${nginx.url}${name}`, method, wish) };
}

/** Which of the servers have a stream. */
async function holders({ servers }: Several, name: string, headers: Record<string, string> = {}): Promise<number[]> {
  const statuses = await Promise.all(servers.map(async (server) => (await server.ask("HEAD", name, { headers })).status));
  return statuses.flatMap((status, at) => (status === 200 ? [at] : []));
}

/** A first part for each of the servers: a stream below it is there. */
async function firstParts(several: Several, wish: Wish = {}): Promise<string[]> {
  const found = new Map<number, string>();
  for (let at = 0; found.size < several.servers.length; at += 1) {
    assert.ok(at < 100, "a hundred names are spread over three servers");
    const { status } = await several.send("PUT", `part-${at}/first`, { ...wish, headers: { ...TEXT, ...wish.headers } });
    assert.equal(status, 201);
    const [holder, ...others] = await holders(several, `part-${at}/first`, wish.headers);
    assert.ok(holder !== undefined && others.length === 0, "one server has it");
    if (!found.has(holder)) found.set(holder, `part-${at}`);
  }
  return [...found].sort(([a], [b]) => a - b).map(([, part]) => part);
}

describe("behind nginx as docs/nginx-several.conf has it", { skip: lacksNginx, timeout: TIMEOUT_MS }, () => {
  let several: Several;
  let parts: string[];
  before(async () => {
    several = await startSeveral({ after: (run) => void ends.push(run) });
    parts = await firstParts(several);
  });
  const ends: (() => Promise<void>)[] = [];
  test.after(async () => {
    for (const end of ends) await end();
  });

  test("streams with the same first part are on the same server, however they are written", async () => {
    for (const [at, part] of parts.entries()) {
      for (const name of ["a", "b/c", "caf%C3%A9", "d%2Fe"]) {
        assert.equal((await several.send("PUT", `${part}/${name}`, { headers: TEXT })).status, 201);
        assert.deepEqual(await holders(several, `${part}/${name}`), [at]);
      }
      for (const same of [`${part}/d/e`, `${part}%2Fb%2Fc`, `${part.replace("p", "%70")}/b/c`])
        assert.equal((await several.send("HEAD", same)).status, 200);
    }
  });

  test("every method goes to the server of the stream", async () => {
    for (const part of parts) {
      const name = `${part}/all`;
      const created = await several.send("PUT", name, { headers: TEXT, body: "one," });
      assert.deepEqual([created.status, created.headers["location"]], [201, `${several.nginx.url}${name}`]);
      assert.equal((await several.send("POST", name, { headers: TEXT, body: "two" })).status, 204);
      assert.equal((await several.send("GET", name)).body, "one,two");
      assert.equal((await several.send("HEAD", name)).status, 200);
      assert.equal((await several.send("OPTIONS", name)).status, 204);
      assert.equal((await several.send("POST", name, { headers: { "Stream-Closed": "true" } })).status, 204);
      assert.equal((await several.send("DELETE", name)).status, 204);
      assert.equal((await several.send("GET", name)).status, 404);
    }
  });

  test("an append as large as it may be is stored", async () => {
    const body = Buffer.alloc(16 * 1024 * 1024, "x");
    assert.equal((await several.send("PUT", `${parts[1]}/large`, { headers: TEXT, body })).status, 201);
  });

  test("a fork has its source where it begins with the same part, and is refused where it does not", async () => {
    const [here = "", there = ""] = parts;
    await several.send("PUT", `${here}/source`, { headers: TEXT, body: "past" });
    const headers = { ...TEXT, "Stream-Forked-From": `/v1/stream/${here}/source` };
    assert.equal((await several.send("PUT", `${here}/fork`, { headers })).status, 201);
    assert.equal((await several.send("GET", `${here}/fork`)).body, "past");
    const refused = await several.send("PUT", `${there}/fork`, { headers });
    assert.deepEqual([refused.status, codeOf(refused)], [404, "stream-not-found"]);
  });

  test("live readers get each append as it is made", async (context) => {
    for (const part of parts) {
      const name = `${part}/live`;
      const created = await several.send("PUT", name, { headers: TEXT });
      const reader = await EventFollower.start(context, `${several.nginx.url}${name}?live=sse&offset=-1`);
      const poll = several.send("GET", `${name}?live=long-poll&offset=${String(created.headers["stream-next-offset"])}`);
      await several.send("POST", name, { headers: TEXT, body: "one" });
      await reader.until(({ data }) => data === "one");
      assert.equal((await poll).body, "one");
      await several.send("POST", name, { headers: { ...TEXT, "Stream-Closed": "true" }, body: "two" });
      await reader.end();
      assert.equal(reader.data, "one|two");
    }
  });

  test("no server's list or page stands for those of all", async () => {
    for (const path of ["__ds/streams", "__ds/streams?prefix=part", "__ds/ui/", "%5F_ds/streams"])
      assert.deepEqual([path, (await several.send("GET", path)).status], [path, 404]);
  });

  test("the probes of each server can be asked for", async () => {
    for (const letter of ["a", "b", "c"]) {
      for (const probe of ["livez", "readyz"]) {
        const { status } = await ask(new URL(`/servers/${letter}/${probe}`, several.nginx.url).href, "GET");
        assert.equal(status, 200);
      }
    }
    assert.equal((await ask(new URL("/servers/d/readyz", several.nginx.url).href, "GET")).status, 404);
    assert.equal((await ask(new URL("/metrics", several.nginx.url).href, "GET")).status, 404);
  });
});

describe("behind nginx as docs/nginx-several.conf has it, a server that is down", { skip: lacksNginx, timeout: TIMEOUT_MS }, () => {
  test("fails its own names alone, for as long as it is down, and no other takes them", async (context) => {
    const several = await startSeveral(context);
    const { nginx, servers, send } = several;
    const parts = await firstParts(several);
    const [down] = servers;
    assert.ok(down !== undefined);
    const reader = await EventFollower.start(context, `${nginx.url}${parts[1]}/first?live=sse&offset=-1`);
    down.process.kill("SIGKILL");
    await down.process.ended;
    for (let round = 0; round < 5; round += 1) {
      for (const [at, part] of parts.entries()) {
        assert.equal((await send("GET", `${part}/first`)).status, at === 0 ? 502 : 200);
        assert.equal((await send("PUT", `${part}/${round}`, { headers: TEXT })).status, at === 0 ? 502 : 201);
        assert.equal((await send("POST", `${part}/first`, { headers: TEXT, body: `${round}` })).status, at === 0 ? 502 : 204);
      }
    }
    await reader.until(({ data }) => data.split("|").join("") === "01234");
    const readyz = (letter: string): Promise<Reply> => ask(new URL(`/servers/${letter}/readyz`, nginx.url).href, "GET");
    assert.deepEqual([(await readyz("a")).status, (await readyz("b")).status], [502, 200]);
    assert.deepEqual(
      await Promise.all(servers.slice(1).map(async (server) => (await server.ask("HEAD", `${parts[0]}/0`)).status)),
      [404, 404],
    );
    await nginx.logged(/"GET \/v1\/stream\/part-\d+\/first HTTP\/1.1" 502 \d+ [\d.]+ streamdir_a 502 /);

    await down.start();
    assert.equal((await send("GET", `${parts[0]}/first`)).status, 200);
    assert.equal((await send("POST", `${parts[0]}/first`, { headers: TEXT, body: "again" })).status, 204);
    const back = await EventFollower.start(context, `${nginx.url}${parts[0]}/first?live=sse&offset=-1`);
    await back.until(({ data }) => data === "again");
  });

  test("leaves tickets to the others", async (context) => {
    const file = new AuthFile();
    const headers = { Authorization: `Bearer ${file.token("owner", [{ streams: ["**"], allow: ["create", "append", "read"] }])}` };
    file.write();
    const several = await startSeveral(context, ["--auth", file.path]);
    const parts = await firstParts(several, { headers });
    for (const server of several.servers.slice(0, 2)) {
      server.process.kill("SIGKILL");
      await server.process.ended;
    }
    for (let round = 0; round < 3; round += 1) {
      const issued = await several.send("POST", "__ds/tickets", { headers, body: JSON.stringify({ stream: `${parts[2]}/first` }) });
      assert.equal(issued.status, 200, issued.body);
      const { ticket } = JSON.parse(issued.body) as { ticket: string }; // docs/api.md has its answer
      assert.equal((await several.send("GET", `${parts[2]}/first?ticket=${ticket}`)).status, 200);
    }
  });
});
