import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseTicket, signTicket, ticketMac } from "../../src/auth/ticket.js";
import { TICKET_SECRET } from "../helpers/auth-files.js";
import { Random } from "../helpers/random.js";

const MAC = "A".repeat(43);

describe("a ticket", () => {
  test("is what any backend makes of a key with three lines", () => {
    const content = { expiresS: 1767229200, close: false, kid: "k1" };
    assert.equal(signTicket(TICKET_SECRET, content, "chat/42"), "v1.1767229200.r.k1.PnicnhEh0dWUdaE6EjZdjSdv2rwjVg1Nl2r0vCjMRMY");
  });

  test("comes apart as it was put together", () => {
    const content = { expiresS: 1767229200, close: true, kid: "k1~1767225600~isH4aiiOG8-RrCwki" };
    const ticket = parseTicket(signTicket(TICKET_SECRET, content, "grün/1"));
    assert.deepEqual(ticket, {
      ...content,
      keyId: "k1",
      issuedMs: 1767225600_000,
      tags: ["isH4aiiOG8-RrCwki"],
      mac: ticketMac(TICKET_SECRET, content, "grün/1"),
    });
  });

  test("of a backend was issued nobody knows when", () => {
    assert.deepEqual(parseTicket(`v1.1.r.k-1.${MAC}`), {
      expiresS: 1,
      close: false,
      kid: "k-1",
      keyId: "k-1",
      issuedMs: null,
      tags: [],
      mac: Buffer.alloc(32),
    });
  });

  for (const text of [
    "",
    "v1",
    `v2.1.r.k.${MAC}`,
    `v1.01.r.k.${MAC}`,
    `v1.-1.r.k.${MAC}`,
    `v1.1e3.r.k.${MAC}`,
    `v1.99999999999999999.r.k.${MAC}`,
    `v1.9999999999999999.r.k.${MAC}`,
    `v1.1.c.k.${MAC}`,
    `v1.1.cr.k.${MAC}`,
    `v1.1.ra.k.${MAC}`,
    `v1.1.r..${MAC}`,
    `v1.1.r.k_1.${MAC}`,
    `v1.1.r.k~.${MAC}`,
    `v1.1.r.k~x.${MAC}`,
    `v1.1.r.k~01.${MAC}`,
    `v1.1.r.k~1~.${MAC}`,
    `v1.1.r.${"k".repeat(65)}.${MAC}`,
    `v1.1.r.k.${MAC}=`,
    `v1.1.r.k.${MAC.slice(1)}`,
    `v1.1.r.k.${MAC.slice(1)}B`,
    `v1.1.r.k.${MAC}.more`,
    ` v1.1.r.k.${MAC}`,
    `v1.1.r.k.${MAC}\n`,
    `v1.1.r.k~1${"~abc".repeat(200)}.${MAC}`,
  ])
    test(`is not ${JSON.stringify(text.slice(0, 40))}`, () => assert.equal(parseTicket(text), null));

  test("has a MAC over all of it, and over the name", () => {
    const content = { expiresS: 5, close: false, kid: "k" };
    const macs = [
      ticketMac(TICKET_SECRET, content, "a"),
      ticketMac(TICKET_SECRET, content, "b"),
      ticketMac(TICKET_SECRET, { ...content, expiresS: 6 }, "a"),
      ticketMac(TICKET_SECRET, { ...content, close: true }, "a"),
      ticketMac(TICKET_SECRET, { ...content, kid: "l" }, "a"),
      ticketMac(Buffer.alloc(32), content, "a"),
    ].map((mac) => mac.toString("hex"));
    assert.equal(new Set(macs).size, macs.length);
  });

  test("spoilt in any place is refused or another, and never throws", () => {
    const random = new Random(9);
    const good = signTicket(TICKET_SECRET, { expiresS: 1767229200, close: true, kid: "k1~1767225600" }, "a");
    for (let round = 0; round < 5000; round++) {
      const at = random.integer(0, good.length);
      parseTicket(good.slice(0, at) + random.pick(["", ".", "~", "é", "0", "\0"]) + good.slice(at + random.integer(0, 3)));
    }
  });
});
