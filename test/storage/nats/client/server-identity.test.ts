import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { hintOf, identityCheckFor } from "../../../../src/storage/nats/client/server-identity.js";
import { makeAuthority } from "../../../helpers/certificates.js";

const authority = makeAuthority();

test("a certificate is right that is for one of the servers, whatever host the client asks for", () => {
  for (const [servers, names, isRight] of [
    [["n1.example:4222", "n2.example:4222"], ["n2.example"], true],
    [["n1.streams.example:4222"], ["*.streams.example"], true],
    [["127.0.0.1:4222"], ["127.0.0.1"], true],
    [["127.0.0.1:4222"], ["localhost"], false],
    [["n1.example:4222"], ["n3.example"], false],
    [["10.0.0.1:4222", "n1.example:4223"], ["10.0.0.2"], false],
  ] as const) {
    const certificate = new X509Certificate(authority.issue({ names }).cert).toLegacyObject();
    const fault = identityCheckFor(servers)("localhost", certificate);
    assert.equal(fault === undefined, isRight, `${servers.join()} ${names.join()}: ${fault?.message}`);
  }
});

test("a hint is given where an authority is missing", () => {
  assert.match(hintOf(Object.assign(new Error("no"), { code: "SELF_SIGNED_CERT_IN_CHAIN" })), /NODE_EXTRA_CA_CERTS/);
  assert.equal(hintOf(new Error("timeout")), "");
  assert.equal(hintOf("no error"), "");
});
