import assert from "node:assert/strict";
import { once } from "node:events";
import { Socket, type AddressInfo } from "node:net";
import { test } from "node:test";
import { connect, createServer, type TLSSocket } from "node:tls";
import { isCertifiedFor } from "../../../src/http/http2/own-certificate.js";
import { makeAuthority } from "../../helpers/certificates.js";

const AUTHORITY = makeAuthority();

test("a server's certificate is for the names that it has, and for none that an asterisk stands for", async (context) => {
  const server = createServer(AUTHORITY.issue({ names: ["a.example", "*.wild.example"], commonName: "common.example" }));
  server.listen(0, "127.0.0.1");
  context.after(() => server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // of a port
  const client = connect({ port, host: "127.0.0.1", rejectUnauthorized: false });
  context.after(() => client.destroy());
  const [line] = (await once(server, "secureConnection")) as [TLSSocket]; // the event's
  for (const [name, isFor] of [
    ["a.example", true],
    ["b.example", false],
    ["x.a.example", false],
    ["x.wild.example", false],
    ["*.wild.example", false],
    ["common.example", false],
    [".wild.example", false],
    [".example", false],
    ["", false],
  ] as const)
    assert.equal(isCertifiedFor(line, name), isFor, name);
  assert.equal(isCertifiedFor(new Socket(), "a.example"), false, "without TLS");
});
