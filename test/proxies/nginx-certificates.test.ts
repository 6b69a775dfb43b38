import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import https from "node:https";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { AuthFile } from "../helpers/auth-file.js";
import { makeAuthority, type Issued } from "../helpers/certificates.js";
import { Page } from "../helpers/page-examples.js";
import { until } from "../helpers/until.js";
import { documentedBlock, lacksNginx, Nginx, type HttpBlock } from "./nginx.js";
import { Origin } from "./origin.js";

const TIMEOUT_MS = 300_000;

/** The lines of docs/proxies.md with these first words. */
function documented(beginning: string): string {
  const { code } = new Page("docs/proxies.md").blocks.find((block) => block.code.startsWith(beginning)) ?? {};
  assert.ok(code !== undefined, `docs/proxies.md has an example that begins with ${beginning}`);
  return code;
}

/** A text with some parts of it changed, each of which it has once. */
function changed(whole: string, changes: Readonly<Record<string, string>>): string {
  return Object.entries(changes).reduce((before, [from, to]) => {
    assert.equal(before.split(from).length, 2, `once: ${from}`);
    return before.replace(from, to);
  }, whole);
}

/** docs/nginx.conf with TLS and what docs/proxies.md says of client certificates; `token` is that of alice. */
function certificateBlock(token: string, { cert, key }: Issued, clientCa: string): HttpBlock {
  return (places) => {
    const file = (name: string, pem: string): string => {
      const path = join(places.dir, name);
      writeFileSync(path, pem);
      return path;
    };
    const tls = changed(documented("listen 443"), {
      "listen 443 ssl http2": `listen 127.0.0.1:${places.port} ssl http2`,
      "/etc/ssl/streams.pem": file("cert.pem", cert),
      "/etc/ssl/streams.key": file("key.pem", key),
    });
    const clients = changed(documented("# In the server, beside"), { "/etc/nginx/clients.pem": file("clients.pem", clientCa) });
    const header = /`(proxy_set_header Authorization \$streamdir_token;)`/.exec(new Page("docs/proxies.md").text)?.[1] ?? "";
    assert.notEqual(header, "");
    const site = changed(documentedBlock(places), {
      [`listen 127.0.0.1:${places.port};`]: `${tls}\n${clients}`,
      ":$http_authorization:": ":$streamdir_token:",
      'proxy_set_header Connection "";': `proxy_set_header Connection "";\n${header}`,
    });
    return `${changed(documented("# In http, beside"), { "sd_alice_…": token })}\n${site}`;
  };
}

test(
  "behind nginx with the lines of docs/proxies.md for client certificates, each counts as a token",
  { skip: lacksNginx, timeout: TIMEOUT_MS },
  async (t) => {
    const authority = makeAuthority();
    const auth = new AuthFile();
    const token = auth.token("alice", [{ streams: ["alice/**"], allow: ["create", "read"] }]);
    auth.write();
    const origin = await Origin.start(t, { trustProxy: "loopback", auth: auth.path });
    const block = certificateBlock(token, authority.issue({ names: ["127.0.0.1"] }), authority.ca);
    const { port } = await Nginx.start(t, origin.port, block);

    const person = (commonName: string, by = authority): Issued => by.issue({ client: true, names: [], commonName });
    const asked = async (method: string, target: string, who: Issued | null, headers = {}) => {
      const settings = { method, headers, ca: authority.ca, agent: false, ...who };
      const request = https.request(`https://127.0.0.1:${port}/v1/stream/${target}`, settings);
      request.end(method === "PUT" ? "hello" : "");
      const [response] = (await once(request, "response")) as [IncomingMessage]; // the event's argument
      return { status: response.statusCode, body: await text(response), next: response.headers["stream-next-offset"] };
    };
    const alice = person("alice");
    const plain = { "Content-Type": "text/plain" };
    assert.equal((await asked("PUT", "alice/1", alice, plain)).status, 201);
    assert.equal((await asked("PUT", "bob/1", alice, plain)).status, 403);
    // Twice: no cache may have it for others.
    for (let time = 0; time < 2; time += 1) {
      const { status, body } = await asked("GET", "alice/1?offset=-1", alice);
      assert.deepEqual([status, body], [200, "hello"]);
      for (const who of [person("bob"), person("alice2"), null])
        for (const headers of [{}, { Authorization: `Bearer ${token}` }])
          assert.equal((await asked("GET", "alice/1?offset=-1", who, headers)).status, 401);
      // nginx says itself that it does not take a certificate of others.
      assert.equal((await asked("GET", "alice/1?offset=-1", person("alice", makeAuthority()))).status, 400);
    }

    // Nobody waits for another's answer, which no cache may keep.
    const { next } = await asked("HEAD", "alice/1", alice);
    const before = origin.requests.length;
    const waiting = [1, 2].map(() => asked("GET", `alice/1?offset=${next}&live=long-poll`, alice));
    await until(() => origin.requests.length === before + 2);
    await origin.stop();
    for (const { status } of await Promise.all(waiting)) assert.equal(status, 204);
  },
);
