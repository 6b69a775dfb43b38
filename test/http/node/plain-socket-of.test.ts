import assert from "node:assert/strict";
import { connect, createServer, type AddressInfo } from "node:net";
import { Duplex } from "node:stream";
import { once } from "node:events";
import { test } from "node:test";
import { TLSSocket } from "node:tls";
import { plainSocketOf } from "../../../src/http/node/plain-socket-of.js";

test("the connection below a TLS connection is found while it takes bytes", async (t) => {
  const listener = createServer((socket) => socket.on("error", () => undefined).resume()).listen(0, "127.0.0.1");
  t.after(() => listener.close());
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo; // it listens on a port
  const plain = connect(port, "127.0.0.1");
  await once(plain, "connect");
  const secure = new TLSSocket(plain, { isServer: true }).on("error", () => undefined);
  assert.equal(plainSocketOf(secure), plain);
  const gone = once(plain, "close");
  plain.destroy();
  await gone;
  assert.equal(plainSocketOf(secure), null);
});

test("a TLS connection over something else has none", () => {
  const stream = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  const secure = new TLSSocket(stream as never, { isServer: true }).on("error", () => undefined); // the types want a socket
  assert.equal(plainSocketOf(secure), null);
  secure.destroy();
});
