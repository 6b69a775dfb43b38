import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { Agent, createServer as createSecureServer, request } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { describe, test, type TestContext } from "node:test";
import { OPERATIONS } from "../../../src/auth/rights/operation.js";
import { createHandler } from "../../../src/server.js";
import { AuthFile } from "../../helpers/auth-file.js";
import { makeAuthority } from "../../helpers/certificates.js";
import { mount, serve, type Middleware } from "../../helpers/mounted-handler.js";
import { requestBytes } from "../../helpers/test-server.js";
import { tempDir } from "../../helpers/temp-dir.js";

const SECRET = "what only its owner may read";

/** A host that mounts streams at /api, with one stream that needs the owner's token. */
async function start(context: TestContext, before?: Middleware) {
  const file = new AuthFile();
  const owner = { Authorization: `Bearer ${file.token("owner", [{ streams: ["**"], allow: OPERATIONS }])}` };
  const other = { Authorization: `Bearer ${file.token("other", [{ streams: ["b"], allow: OPERATIONS }])}` };
  file.write();
  const handler = await createHandler({ dir: tempDir(), logLevel: "silent", auth: file.path });
  const app = mount("/api", handler, before);
  const server = createServer((req, res) => app(req, res, () => void res.writeHead(418).end("the host's")));
  const { send, connect } = await serve(context, server, handler);
  const made = await send("PUT", "/api/v1/stream/a", { headers: { ...owner, "Content-Type": "text/plain" }, body: SECRET });
  assert.equal(made.status, 201, made.text);
  return { owner, other, send, connect };
}

describe("a handler in somebody else's server", () => {
  test("asks for a right, however its path is written", async (context) => {
    const { owner, other, send } = await start(context);
    assert.equal((await send("GET", "/api/v1/stream/a?offset=-1", { headers: owner })).text, SECRET);
    const targets = [
      ...["/api/v1/stream/a", "/API/v1/stream/a", "/api//v1/stream/a", "/api/v1//stream/a", "/api/v1/stream//a", "/api/v1/stream/./a"],
      ...[
        "/api/x/../v1/stream/a",
        "/api/v1/stream/b/../a",
        "/api/v1/stream/%61",
        "/api/v1/stream/a%00",
        "/api/v1/stream/a/",
        "/api/v1/stream/a%2f",
      ],
      ...[
        "/api\\v1\\stream\\a",
        "/api/%761/stream/a",
        "/apiv1/stream/a",
        "/api/v1/stream/a;x=1",
        "/api/v1/stream/a#x",
        "http://a/api/v1/stream/a",
      ],
      ...[
        "/api/v1/stream/b%2f..%2fa",
        "/api/v1/stream/%2e%2e/stream/a",
        "/api/http://127.0.0.1/v1/stream/a",
        "/api/v1/stream/__ds/streams",
      ],
    ];
    for (const target of targets)
      for (const credential of [{}, other, { Authorization: "Bearer x" }])
        for (const query of ["", "?offset=-1", "?offset=-1&live=long-poll"]) {
          const answer = await send("GET", `${target}${query}`, { headers: credential });
          assert.ok(
            answer.status >= 400 || (target.endsWith("__ds/streams") && !answer.text.includes('"a"')),
            `${answer.status} ${target}`,
          );
          assert.ok(!answer.text.includes(SECRET), target);
        }
  });

  test("answers each of many on a connection for its own credential", async (context) => {
    const { owner, other, connect } = await start(context);
    const connection = await connect();
    const credentials = Array.from({ length: 60 }, (_, at) => [owner, other, {}][at % 3] ?? {});
    connection.write(Buffer.concat(credentials.map((headers) => requestBytes("GET", "/api/v1/stream/a?offset=-1", { headers }))));
    for (const [at] of credentials.entries()) {
      const { status, text: body } = await connection.answer();
      assert.deepEqual([status, body.includes(SECRET)], [[200, 403, 401][at % 3], at % 3 === 0], String(at));
    }
  });

  test("believes what the client has sent, and not what its host has made of it", async (context) => {
    const { owner, send } = await start(context, (req, _res, next) => {
      // A host that strips credentials, or adds some, has not been asked to decide.
      if (req.headers["x-strip"] !== undefined) delete req.headers.authorization;
      else req.headers.authorization ??= owner.Authorization;
      next();
    });
    assert.equal((await send("GET", "/api/v1/stream/a?offset=-1")).status, 401);
    assert.equal((await send("GET", "/api/v1/stream/a?offset=-1", { headers: { ...owner, "X-Strip": "1" } })).status, 200);
  });

  test("keeps its answers private, whatever its host has set before", async (context) => {
    const { owner, send } = await start(context, (_req, res, next) => {
      res.setHeader("Cache-Control", "public, max-age=600");
      res.setHeader("Vary", "Accept");
      next();
    });
    const { headers } = await send("GET", "/api/v1/stream/a?offset=-1", { headers: owner });
    assert.match(headers["cache-control"] ?? "", /^private/);
    assert.doesNotMatch(headers["cache-control"] ?? "", /public/);
    assert.match(headers["vary"] ?? "", /Authorization/);
    assert.match(headers["vary"] ?? "", /\bAccept\b/);
  });

  test("stores nothing of a body that its host has read before", async (context) => {
    const { owner, send } = await start(context, (req, _res, next) => {
      if (req.headers["x-read"] === "all") void text(req).then(next);
      else if (req.headers["x-read"] === "some") req.once("data", () => req.pause() && next());
      else next();
    });
    const body = "x".repeat(200_000);
    for (const read of ["all", "some"]) {
      const headers = { ...owner, "Content-Type": "text/plain", "X-Read": read };
      assert.equal((await send("POST", "/api/v1/stream/a", { headers, body })).status, 500, read);
    }
    assert.equal((await send("GET", "/api/v1/stream/a?offset=-1", { headers: owner })).text, SECRET);
  });

  test("takes a certificate that the host's TLS could not verify for a wrong credential", async (context) => {
    const [servers, clients, strangers] = [makeAuthority(), makeAuthority("Clients"), makeAuthority("Clients")];
    const file = new AuthFile();
    file.grantPublic([{ streams: ["news"], allow: ["read"] }]);
    file.grantCertificates([{ streams: ["**"], allow: OPERATIONS }]);
    file.write();
    const handler = await createHandler({ dir: tempDir(), logLevel: "silent", auth: file.path, clientCa: "the host's" });
    const server = createSecureServer({ ...servers.issue(), ca: clients.ca, requestCert: true, rejectUnauthorized: false }, handler);
    await once(server.listen(0, "127.0.0.1"), "listening");
    context.after(async () => {
      server.closeAllConnections();
      server.close();
      await handler.close();
    });
    const { port } = server.address() as AddressInfo; // it listens on a port
    const ask = async (method: string, own: object): Promise<number> => {
      const agent = new Agent({ ...own, ca: servers.ca });
      const sent = request({
        host: "localhost",
        port,
        method,
        path: "/v1/stream/news",
        agent,
        headers: { "Content-Type": "text/plain" },
      }).end();
      const [answer] = (await once(sent, "response")) as [IncomingMessage]; // the event's
      await text(answer);
      agent.destroy();
      return answer.statusCode ?? 0;
    };
    const own = { names: [], commonName: "alice", client: true };
    assert.equal(await ask("PUT", clients.issue(own)), 201);
    assert.deepEqual([await ask("GET", {}), await ask("GET", clients.issue(own))], [200, 200]);
    assert.deepEqual([await ask("GET", strangers.issue(own)), await ask("PUT", strangers.issue(own))], [401, 401]);
  });
});
