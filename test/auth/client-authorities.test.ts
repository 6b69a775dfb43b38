import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { describe, test } from "node:test";
import { ClientAuthorities } from "../../src/auth/client-authorities.js";
import { tagOf } from "../../src/auth/revocations.js";
import type { ClientCertificate } from "../../src/auth/rights/credentials.js";
import { makeAuthority, type Authority } from "../helpers/certificates.js";

const [HOUSE, OTHER] = [makeAuthority("House"), makeAuthority("Other")];
const READ = ({ ca }: Authority): X509Certificate => new X509Certificate(ca);

/** A certificate that `by` has signed, and the certificates that its client sends along. */
function certificate(by: Authority, along: readonly Authority[] = []): ClientCertificate {
  const own = new X509Certificate(by.issue({ names: [], commonName: "alice", client: true }).cert);
  return { name: "alice", beginsAtMs: 0, endsAtMs: Infinity, chain: [own, ...along.map(READ)] };
}

function trusting(...authorities: readonly Authority[]): ClientAuthorities {
  const all = new ClientAuthorities();
  all.replace(authorities.map(READ));
  return all;
}

describe("the authorities of clients", () => {
  test("are all, until it is said which", () => {
    const all = new ClientAuthorities();
    assert.equal(all.trust(certificate(HOUSE)), true);
    assert.equal(all.hasTag(tagOf("authority", "any")), true);
    assert.equal(all.signerOf(certificate(HOUSE)), null);
  });

  test("are those that were named last", () => {
    const all = trusting(HOUSE, OTHER);
    const own = certificate(HOUSE);
    assert.equal(all.trust(own), true);
    const tag = tagOf("authority", all.signerOf(own) ?? "");
    assert.equal(all.hasTag(tag), true);
    all.replace([READ(OTHER)]);
    assert.deepEqual([all.trust(own), all.signerOf(own), all.hasTag(tag)], [false, null, false]);
    all.replace([READ(HOUSE)]);
    assert.deepEqual([all.trust(own), all.hasTag(tag)], [true, true]);
  });

  test("are none where none is named", () => assert.equal(trusting().trust(certificate(HOUSE)), false));

  test("sign by others that they have signed", () => {
    const [first, second] = [HOUSE.below("First"), HOUSE.below("First").below("Second")];
    assert.equal(trusting(HOUSE).trust(certificate(first, [first])), true);
    assert.equal(trusting(HOUSE).trust(certificate(second, [second])), false, "one between is missing");
    assert.equal(trusting(first).trust(certificate(first)), true, "one of them may be named itself");
  });

  test("are not those that a client says have signed", () => {
    const namesake = OTHER.below("House");
    assert.equal(trusting(OTHER).trust(certificate(HOUSE, [namesake, OTHER])), false);
    assert.equal(trusting(makeAuthority("House")).trust(certificate(HOUSE, [HOUSE])), false, "of the same name, with another key");
  });

  test("are not those whom a client's certificate has signed: it is no authority's", () => {
    const alice = HOUSE.issue({ names: [], commonName: "alice", client: true });
    const chain = [new X509Certificate(OTHER.issue({ names: [], commonName: "bob", client: true }).cert), new X509Certificate(alice.cert)];
    assert.equal(trusting(HOUSE).trust({ name: "bob", beginsAtMs: 0, endsAtMs: Infinity, chain }), false);
  });

  test("are looked for along ten certificates, and no further", () => {
    const chain = [HOUSE];
    for (let length = 0; length < 10; length++) chain.unshift((chain[0] ?? HOUSE).below(`Number ${length}`));
    const [last = HOUSE, shorter = HOUSE] = chain;
    assert.equal(trusting(HOUSE).trust(certificate(shorter, chain.slice(1))), true);
    assert.equal(trusting(HOUSE).trust(certificate(last, chain)), false);
  });
});
