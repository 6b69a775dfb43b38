import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { Socket } from "node:net";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { connect, type ConnectionOptions } from "node:tls";
import { certificateOf } from "../../../src/http/http2/client-certificate.js";
import { Dispatcher } from "../../../src/http/dispatch.js";
import { makeAuthority } from "../../helpers/certificates.js";
import { startSecure, testAuthority, type SecureServer } from "../../helpers/secure-server.js";
import { tempDir } from "../../helpers/temp-dir.js";

const clients = makeAuthority("Clients");

/** A server that asks for certificates, and the names that its requests came with. */
async function mutual(context: TestContext): Promise<{ readonly server: SecureServer; readonly names: (string | null)[] }> {
  const clientCa = join(tempDir(), "clients.pem");
  writeFileSync(clientCa, clients.ca);
  const names: (string | null)[] = [];
  const { handle, handleStream } = Dispatcher.prototype;
  context.mock.method(Dispatcher.prototype, "handle", function (this: Dispatcher, ...args: Parameters<Dispatcher["handle"]>) {
    names.push(certificateOf(args[0].socket)?.name ?? null);
    handle.apply(this, args);
  });
  context.mock.method(Dispatcher.prototype, "handleStream", function (this: Dispatcher, ...args: Parameters<Dispatcher["handleStream"]>) {
    names.push(certificateOf(args[0].socket)?.name ?? null);
    handleStream.apply(this, args);
  });
  return { server: await startSecure(context, { clientCa }), names };
}

/** The last request of a connection over HTTP/1.1; the text of its answer, or `null` where the connection is cut. */
async function askOnce(server: SecureServer, options: ConnectionOptions): Promise<string | null> {
  const socket = connect({ port: server.test.port, host: "127.0.0.1", ca: testAuthority().ca, ...options });
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString())).on("error", () => undefined);
  socket.write("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  await new Promise((resolve) => socket.on("close", resolve));
  return text === "" ? null : text;
}

test("a client's certificate gives its name over HTTP/1.1 and HTTP/2", async (context) => {
  const { server, names } = await mutual(context);
  const ann = clients.issue({ commonName: "ann", client: true, names: [] });
  assert.match((await askOnce(server, ann)) ?? "", /^HTTP\/1\.1 200 /);
  const session = connectHttp2(`https://127.0.0.1:${server.test.port}`, { ca: testAuthority().ca, ...ann });
  const stream = session.request({ ":path": "/health" });
  await once(stream, "response");
  stream.resume();
  await once(stream, "close");
  session.close();
  assert.deepEqual(
    names.filter((name) => name !== null),
    ["ann", "ann"],
  );
});

test("a client without a certificate has no name, and is served", async (context) => {
  const { server, names } = await mutual(context);
  assert.match((await askOnce(server, {})) ?? "", /^HTTP\/1\.1 200 /);
  assert.deepEqual(new Set(names), new Set([null]));
});

test("a client with another authority's certificate is cut", async (context) => {
  const { server, names } = await mutual(context);
  assert.equal(await askOnce(server, makeAuthority("Others").issue({ commonName: "ann", client: true, names: [] })), null);
  const late = clients.issue({ commonName: "ann", client: true, names: [], until: new Date(Date.now() - 1000) });
  assert.equal(await askOnce(server, late), null);
  assert.deepEqual(names, []);
});

test("a connection without TLS has no name", () => {
  assert.equal(certificateOf(new Socket()), null);
});
