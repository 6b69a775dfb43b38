import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import type { IncomingMessage } from "node:http";
import { Agent, request, type RequestOptions } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, test, type TestContext } from "node:test";
import { OPERATIONS } from "../../../src/auth/rights/operation.js";
import { AuthFile } from "../../helpers/auth-file.js";
import { makeAuthority, type Authority, type Issued } from "../../helpers/certificates.js";
import { ask as askStream } from "../../helpers/secure-server.js";
import { tempDir } from "../../helpers/temp-dir.js";
import { startServer } from "../../helpers/test-server.js";

const SERVERS = makeAuthority("Servers");
const OLD = makeAuthority("Clients");
/** Of the same name, as a new key of the same house has it. */
const NEW = makeAuthority("Clients");
const OTHER = makeAuthority("Others");
const HOUR_MS = 3600 * 1000;
const TEXT = { "Content-Type": "text/plain" };

function alice(by: Authority, chain: readonly string[] = []): Issued {
  const { cert, key } = by.issue({ names: [], commonName: "alice", client: true });
  return { cert: [cert, ...chain].join(""), key };
}

/** A server that lets in the clients of `authorities`, who may do anything below their name. */
async function start(context: TestContext, authorities: readonly Authority[]) {
  const dir = tempDir();
  const file = new AuthFile();
  file.grantCertificates([{ streams: ["users/{sub}/**"], allow: OPERATIONS }]);
  file.grantPublic([{ streams: ["news"], allow: ["read"] }]);
  file.write();
  const paths = { tlsCert: join(dir, "cert.pem"), tlsKey: join(dir, "key.pem"), clientCa: join(dir, "ca.pem") };
  const { cert, key } = SERVERS.issue();
  writeFileSync(paths.tlsCert, cert);
  writeFileSync(paths.tlsKey, key, { mode: 0o600 });
  const trust = (trusted: readonly Authority[]): void => writeFileSync(paths.clientCa, trusted.map(({ ca }) => ca).join(""));
  trust(authorities);
  const lasting = { sseLifetimeMs: 24 * HOUR_MS, sseHeartbeatMs: HOUR_MS };
  const server = await startServer(context, { auth: file.path, ...paths, ...lasting });
  // A certificate is of the machine's time.
  server.clock.advance(Date.now() - server.clock.nowMs());
  return {
    server,
    /** The file of authorities becomes another, and the server reads it. */
    retrust: async (trusted: readonly Authority[]): Promise<void> => {
      trust(trusted);
      assert.equal(await server.server.reload(), true);
    },
    /** A client with one connection, which it keeps. */
    client: (own: Issued) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1, ...own, ca: SERVERS.ca });
      context.after(() => agent.destroy());
      return async (method: string, target: string, { body = "", ...more }: RequestOptions & { body?: string } = {}) => {
        const options = { host: "localhost", port: server.port, method, path: `/v1/stream/${target}`, headers: TEXT };
        const sent = request({ ...options, agent, ...more });
        sent.end(body);
        const [answer] = (await once(sent, "response")) as [IncomingMessage]; // the event's
        return { status: answer.statusCode ?? 0, isReused: sent.reusedSocket, answer };
      };
    },
  };
}

type Client = ReturnType<Awaited<ReturnType<typeof start>>["client"]>;

async function statusOf(ask: Client, method: string, target: string): Promise<[number, boolean]> {
  const { status, isReused, answer } = await ask(method, target);
  await text(answer);
  return [status, isReused];
}

describe("a certificate whose authority is no longer trusted", () => {
  test("counts no longer on a connection that is open, nor as nobody's", async (context) => {
    const { client, retrust } = await start(context, [OLD]);
    const ask = client(alice(OLD));
    assert.deepEqual(await statusOf(ask, "PUT", "users/alice/a"), [201, false]);
    await retrust([NEW]);
    assert.deepEqual(await statusOf(ask, "GET", "users/alice/a"), [401, true]);
    assert.deepEqual(await statusOf(ask, "GET", "news"), [401, true]);
    await assert.rejects(client(alice(OLD))("GET", "users/alice/a"), "a new connection is cut");
    assert.deepEqual(await statusOf(client(alice(NEW)), "GET", "users/alice/a"), [200, false]);
  });

  test("counts no longer on a connection of HTTP/2", async (context) => {
    const { server, retrust } = await start(context, [OLD]);
    const session = connectHttp2(`https://localhost:${server.port}`, { ca: SERVERS.ca, ...alice(OLD) });
    context.after(() => session.destroy());
    assert.equal((await askStream(session, "PUT", "users/alice/a", { headers: { "content-type": "text/plain" } })).status, 201);
    await retrust([OTHER]);
    assert.equal((await askStream(session, "GET", "users/alice/a")).status, 401);
  });

  test("ends the live reads that began with it, between two events", async (context) => {
    const { client, retrust } = await start(context, [OLD]);
    const ask = client(alice(OLD));
    await statusOf(ask, "PUT", "users/alice/a");
    const { status, answer } = await client(alice(OLD))("GET", "users/alice/a?offset=-1&live=sse");
    assert.equal(status, 200);
    const all = text(answer);
    await retrust([OTHER, OLD]);
    const { status: appended } = await ask("POST", "users/alice/a", { body: "seen" });
    assert.equal(appended, 204);
    await retrust([OTHER]);
    const seen = await all;
    assert.match(seen, /event: data\ndata:seen\n/);
    assert.ok(seen.endsWith("\n\n"), JSON.stringify(seen.slice(-80)));
  });

  test("ends the tickets that it asked for", async (context) => {
    const { client, retrust } = await start(context, [OLD]);
    const ask = client(alice(OLD));
    await statusOf(ask, "PUT", "users/alice/a");
    const issued = await ask("POST", "__ds/tickets", {
      body: JSON.stringify({ stream: "users/alice/a" }),
      headers: { "Content-Type": "application/json" },
    });
    assert.ok(issued.status < 300, String(issued.status));
    const { ticket } = JSON.parse(await text(issued.answer)) as { ticket: string }; // its answer
    const nobody = client({ cert: "", key: "" });
    assert.deepEqual(await statusOf(nobody, "GET", `users/alice/a?ticket=${ticket}`), [200, false]);
    await retrust([OLD, OTHER]);
    assert.deepEqual(await statusOf(nobody, "GET", `users/alice/a?ticket=${ticket}`), [200, true]);
    await retrust([OTHER]);
    assert.deepEqual(await statusOf(nobody, "GET", `users/alice/a?ticket=${ticket}`), [401, true]);
  });

  test("is not saved by a chain that its client made up", async (context) => {
    const { client, retrust } = await start(context, [OLD, OTHER]);
    // By its names: alice, signed by "Clients", signed by "Others".
    const madeUp = OTHER.below("Clients").ca;
    const ask = client(alice(OLD, [madeUp, OTHER.ca]));
    assert.deepEqual(await statusOf(ask, "PUT", "users/alice/a"), [201, false]);
    await retrust([OTHER]);
    assert.deepEqual(await statusOf(ask, "GET", "users/alice/a"), [401, true]);
  });
});

describe("a certificate whose authority is still trusted", () => {
  test("goes on counting on a connection that is open", async (context) => {
    const { client, retrust } = await start(context, [OTHER, OLD]);
    const ask = client(alice(OLD));
    assert.deepEqual(await statusOf(ask, "PUT", "users/alice/a"), [201, false]);
    await retrust([OLD]);
    assert.deepEqual(await statusOf(ask, "GET", "users/alice/a"), [200, true]);
    await retrust([NEW, OTHER, OLD]);
    assert.deepEqual(await statusOf(ask, "GET", "users/alice/a"), [200, true]);
  });

  test("counts where another authority is between them", async (context) => {
    const { client, retrust } = await start(context, [OLD]);
    const between = OLD.below("Of one house");
    const ask = client(alice(between, [between.ca]));
    assert.deepEqual(await statusOf(ask, "PUT", "users/alice/a"), [201, false]);
    await retrust([OLD, OTHER]);
    assert.deepEqual(await statusOf(ask, "GET", "users/alice/a"), [200, true]);
    await retrust([OTHER]);
    assert.deepEqual(await statusOf(ask, "GET", "users/alice/a"), [401, true]);
  });
});
