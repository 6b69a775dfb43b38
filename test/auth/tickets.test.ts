import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { signTicket, DEFAULT_TICKET_LIFE_MS, MAX_TICKET_LIFE_MS, TICKET_FAULTS, type TicketFault } from "../../src/auth/ticket.js";
import { TICKET_LEEWAY_MS } from "../../src/auth/tickets.js";
import type { WantedTicket } from "../../src/auth/tickets.js";
import type { Caller } from "../../src/auth/rights/caller.js";
import { senderOf } from "../../src/auth/rights/sender.js";
import { authDocument, bearer, lasting, openAuthority, TICKET_SECRET, TOKEN_HASH, tokenOf } from "../helpers/auth-files.js";
import { claimsWith, jwtOf, JWT_NOW_MS, keySet, SECRET } from "../helpers/jwt.js";

const NOW_S = JWT_NOW_MS / 1000;
const READ: WantedTicket = { name: "chat/42", close: false, lifetimeMs: null };

const HMAC_ISSUER = { iss: "hmac", aud: "streams", algs: ["HS256"], secret: SECRET.toString("base64url"), trustGrants: true };

/** The other issuer of the usual document, with some things changed. */
function issuerWith(more: Record<string, unknown>): Record<string, unknown> {
  const [issuer] = authDocument()["issuers"] as Record<string, unknown>[];
  return { ...issuer, ...more };
}

/** A ticket that a backend signed. */
function ticket(more: Partial<Parameters<typeof signTicket>[1]> = {}, name = "chat/42", secret = TICKET_SECRET): string {
  return signTicket(secret, { expiresS: NOW_S + 60, close: false, kid: "k1", ...more }, name);
}

type House = Awaited<ReturnType<typeof openAuthority>>;

function issue({ authority }: House, caller: Caller, wanted = READ) {
  const issued = authority.issueTicket(caller, wanted);
  assert.ok(issued.kind === "ticket");
  return issued;
}

/** Each fault has a sentence of its own. */
function refusedAs(fault: TicketFault): object {
  return { kind: "unauthenticated", code: "invalid-token", detail: TICKET_FAULTS[fault] };
}

describe("a ticket that a backend signed", () => {
  test("may read its stream, and nothing else", async (context) => {
    const { caller, who, clock } = await openAuthority(context);
    const reader = caller({ ticket: ticket() }, "chat/42");
    assert.equal(reader.endsAtMs, JWT_NOW_MS + 60_000);
    assert.match(reader.id ?? "", /^ticket k1 [\w-]{12}$/);
    assert.deepEqual(reader.rightTo("read", "chat/42"), { grant: 0, rate: null });
    assert.equal(reader.rightTo("close", "chat/42"), null);
    assert.equal(reader.rightTo("append", "chat/42"), null);
    assert.equal(reader.rightTo("read", "chat/43"), null);
    assert.equal(caller({ ticket: ticket() }, "chat/42"), reader, "it is remembered");
    assert.equal(who({ ticket: ticket() }, "chat/43"), "invalid-token");
    assert.equal(who({ ticket: ticket() }), "invalid-token", "a request without a stream");
    clock.advance(60_000);
    assert.equal(who({ ticket: ticket() }, "chat/42"), "invalid-token");
  });

  test("may close it if it says so", async (context) => {
    const { caller } = await openAuthority(context);
    const reader = caller({ ticket: ticket({ close: true }) }, "chat/42");
    assert.ok(reader.rightTo("close", "chat/42") !== null && reader.rightTo("read", "chat/42") !== null);
    assert.equal(reader.rightTo("delete", "chat/42"), null);
  });

  for (const [title, text, fault] of [
    ["of an unknown key", ticket({ kid: "k2" }), "signature"],
    ["of another secret", ticket({}, "chat/42", Buffer.alloc(32, 1)), "signature"],
    ["that is over", ticket({ expiresS: NOW_S }), "over"],
    [
      "that would live for longer than any may",
      ticket({ expiresS: NOW_S + (MAX_TICKET_LIFE_MS + TICKET_LEEWAY_MS) / 1000 + 1 }),
      "too-long",
    ],
    ["whose rights were changed", ticket().replace(".r.", ".rc."), "signature"],
    ["whose end was changed", ticket().replace(/^v1\.\d+/, `v1.${NOW_S + 61}`), "signature"],
    ["that is no ticket", "nonsense", "malformed"],
    ["that is empty", "", "malformed"],
  ] as const)
    test(`${title} is refused`, async (context) => {
      const { ask } = await openAuthority(context);
      assert.deepEqual(ask({ ticket: text }, "chat/42"), refusedAs(fault));
    });

  test("may live for seven days, with a backend's clock that is ahead", async (context) => {
    const { who } = await openAuthority(context);
    assert.match(who({ ticket: ticket({ expiresS: NOW_S + (MAX_TICKET_LIFE_MS + TICKET_LEEWAY_MS) / 1000 }) }, "chat/42") ?? "", /^ticket/);
  });

  test("counts only for what its key may sign for", async (context) => {
    const key = { id: "k1", secret: TICKET_SECRET.toString("base64url"), grants: [{ streams: ["chat/**"], allow: ["read"], rate: "5" }] };
    const { caller, ask } = await openAuthority(context, authDocument({ ticketKeys: [key] }));
    const reader = caller({ ticket: ticket({ close: true }) }, "chat/42");
    assert.equal(reader.rightTo("close", "chat/42"), null);
    assert.deepEqual(reader.rightTo("read", "chat/42")?.rate, { requests: 5, bytes: null });
    assert.deepEqual(ask({ ticket: ticket({}, "other") }, "other"), refusedAs("ended"));
  });
});

describe("a ticket that the server issues", () => {
  test("lives for an hour, for what was asked, for seven days at most, and never longer than its asker", async (context) => {
    const house = await openAuthority(context);
    const ci = house.caller(bearer(tokenOf("ci")));
    for (const [lifetimeMs, lifeMs] of [
      [null, DEFAULT_TICKET_LIFE_MS],
      [5000, 5000],
      [Infinity, MAX_TICKET_LIFE_MS],
    ] as const)
      assert.equal(issue(house, ci, { ...READ, lifetimeMs }).expiresAtMs, JWT_NOW_MS + lifeMs);
    const alice = house.caller(bearer(jwtOf("EdDSA", claimsWith({ exp: NOW_S + 60 }))));
    assert.equal(issue(house, alice).expiresAtMs, JWT_NOW_MS + 90_000);
  });

  test("has the rate of the token that asked, and its rights", async (context) => {
    const house = await openAuthority(context);
    const { ticket } = issue(house, house.caller(bearer(tokenOf("ci"))), { ...READ, close: true });
    assert.match(ticket, /^v1\.\d+\.rc\.k1~\d+~i[\w-]{16}~h[\w-]{16}\.[\w-]{43}$/);
    const reader = house.caller({ ticket }, "chat/42");
    assert.deepEqual(reader.rightTo("read", "chat/42")?.rate, { requests: 50, bytes: 1024 * 1024 });
    assert.ok(reader.rightTo("close", "chat/42") !== null);
    const elsewhere = issue(house, house.caller(bearer(tokenOf("ci"))), { ...READ, name: "elsewhere" });
    assert.equal(house.who({ ticket: elsewhere.ticket }, "elsewhere"), "invalid-token", "no more than its asker may do");
  });

  const before = (ms: number): string => new Date(JWT_NOW_MS + ms).toISOString();
  for (const [title, asker, change, holds] of [
    ["a token that is revoked", "token", { revoked: [{ id: "ci" }] }, false],
    ["a token that was revoked and is there again", "token", { revoked: [{ id: "ci", before: before(1) }] }, false],
    ["a token that is gone", "token", { tokens: undefined }, false],
    [
      "a token whose name another has now",
      "token",
      { tokens: [{ id: "ci", sha256: "0".repeat(64), grants: [{ streams: ["**"], allow: ["read"] }] }] },
      false,
    ],
    [
      "a token that is over",
      "token",
      { tokens: [{ id: "ci", sha256: TOKEN_HASH, expires: before(0), grants: [{ streams: ["**"], allow: ["read"] }] }] },
      false,
    ],
    [
      "a token that may read no longer",
      "token",
      { tokens: [{ id: "ci", sha256: TOKEN_HASH, grants: [{ streams: ["**"], allow: ["append"] }] }] },
      false,
    ],
    [
      "a token that may still read",
      "token",
      { tokens: [{ id: "ci", sha256: TOKEN_HASH, grants: [{ streams: ["**"], allow: ["read"] }] }] },
      true,
    ],
    ["a user who is revoked", "jwt", { revoked: [{ sub: "alice" }] }, false],
    ["a user who was revoked before the JWT", "jwt", { revoked: [{ sub: "alice", before: before(-10_000) }] }, true],
    ["a user who was revoked between the JWT and the ticket", "jwt", { revoked: [{ sub: "alice", before: before(-5000) }] }, false],
    ["a JWT that does not say when it was made", "ageless", { revoked: [{ sub: "alice", before: before(-60_000) }] }, false],
    [
      "a JWT that does not say when it was made, by a time before all",
      "ageless",
      { revoked: [{ sub: "alice", before: "1970-01-01T00:00:00Z" }] },
      false,
    ],
    ["a JWT that is revoked by its time", "jwt", { revoked: [{ jti: "j1", before: before(-5000) }] }, false],
    ["a JWT that is revoked", "jwt", { revoked: [{ jti: "j1" }] }, false],
    ["another user", "jwt", { revoked: [{ sub: "bob" }, { jti: "j2" }, { id: "alice" }] }, true],
    ["a certificate that is revoked", "certificate", { revoked: [{ sub: "alice", before: before(60_000) }] }, false],
    ["a certificate whose name was revoked before it", "certificate", { revoked: [{ sub: "alice", before: before(-60_000) }] }, true],
    ["a certificate that is revoked by its time", "certificate", { revoked: [{ sub: "alice", before: before(-20_000) }] }, false],
    ["a JWT whose issuer is gone", "jwt", { issuers: [HMAC_ISSUER] }, false],
    [
      "a JWT whose issuer grants something else",
      "jwt",
      { issuers: [issuerWith({ grants: [{ streams: ["x"], allow: ["read"] }] })] },
      false,
    ],
    ["a JWT whose issuer is for others", "jwt", { issuers: [issuerWith({ aud: "others" })] }, false],
    ["a JWT whose issuer signs by other means", "jwt", { issuers: [issuerWith({ algs: ["ES256"] })] }, false],
    ["a JWT whose issuer stays as another comes", "jwt", { issuers: [HMAC_ISSUER, issuerWith({})] }, true],
    ["a JWT whose issuer's secret is another", "hmac", { issuers: [{ ...HMAC_ISSUER, secret: "A".repeat(43) }] }, false],
    ["a JWT whose issuer's secret is the same", "hmac", { issuers: [HMAC_ISSUER] }, true],
    ["certificates that may do something else", "certificate", { certificates: { grants: [{ streams: ["x"], allow: ["read"] }] } }, false],
    ["a certificate, where none count any more", "certificate", { certificates: undefined }, false],
    ["a certificate, where issuers are gone", "certificate", { issuers: undefined }, true],
    ["a ticket whose asker is revoked", "ticket", { revoked: [{ id: "ci" }] }, false],
    ["the public, who may read no longer", "public", { public: undefined }, false],
    ["the public, who may still read", "public", {}, true],
    ["one whose key is gone", "jwt", { ticketKeys: undefined }, false],
    ["one whose key has another secret", "jwt", { ticketKeys: [{ id: "k1", secret: Buffer.alloc(32).toString("base64url") }] }, false],
  ] as const)
    test(`${holds ? "holds" : "ends"} for ${title}`, async (context) => {
      const public_ = [{ streams: ["**"], allow: ["read"] }];
      const house = await openAuthority(context, authDocument({ public: public_ }));
      const { authority, caller, who, write } = house;
      const askers = {
        token: () => caller(bearer(tokenOf("ci"))),
        jwt: () => caller(bearer(jwtOf("EdDSA", claimsWith({ jti: "j1" })))),
        ageless: () => caller(bearer(jwtOf("EdDSA", claimsWith({ iat: undefined })))),
        hmac: () => caller(bearer(jwtOf("HS256", claimsWith({ iss: "hmac" })))),
        certificate: () => caller({ certificate: lasting("alice") }),
        ticket: () => caller({ ticket: issue(house, askers.token()).ticket }, READ.name),
        public: () => caller({}),
      };
      const { ticket } = issue(house, askers[asker]());
      const reader = caller({ ticket }, READ.name);
      write(authDocument({ public: public_, ...change }));
      assert.equal(await authority.reload(), true);
      assert.equal(authority.renew(reader) !== null, holds);
      assert.equal(who({ ticket }, READ.name) !== "invalid-token", holds);
    });

  test("ends when the key is gone that signed the JWT, and only then", async (context) => {
    const house = await openAuthority(context);
    const { authority, dir, who } = house;
    const [edDsa, es256] = (["EdDSA", "ES256"] as const).map((alg) => issue(house, house.caller(bearer(jwtOf(alg)))).ticket);
    const { keys } = JSON.parse(keySet()) as { keys: { kid: string }[] };
    writeFileSync(join(dir, "keys.json"), JSON.stringify({ keys: keys.filter(({ kid }) => kid !== "EdDSA") }));
    assert.equal(await authority.reload(), true);
    assert.equal(who({ ticket: edDsa ?? "" }, READ.name), "invalid-token");
    assert.match(who({ ticket: es256 ?? "" }, READ.name) ?? "", /^ticket k1 /);
  });

  for (const [title, rate, expected] of [
    ["with its bytes", "5,1MiB", { requests: 5, bytes: 1024 * 1024 }],
    ["without", "5", { requests: 5, bytes: null }],
    ["which may be none", undefined, null],
  ] as const)
    test(`has the rate of the grant that a JWT or a certificate has, ${title}`, async (context) => {
      const grants = [
        { streams: ["x"], allow: ["read"] },
        { streams: ["chat/**"], allow: ["read"], ...(rate === undefined ? {} : { rate }) },
      ];
      const house = await openAuthority(context, authDocument({ issuers: [issuerWith({ grants })], certificates: { grants } }));
      for (const asker of [bearer(jwtOf("EdDSA", claimsWith({ jti: "j1" }))), { certificate: lasting("alice") }]) {
        const reader = house.caller({ ticket: issue(house, house.caller(asker)).ticket }, READ.name);
        assert.deepEqual(reader.rightTo("read", READ.name), { grant: expected === null ? 0 : 1, rate: expected });
      }
    });

  test("counts, from one address, with all that its asker has, and none that a backend signed with another", async (context) => {
    const house = await openAuthority(context);
    const sender = (text: string): string => senderOf(house.caller({ ticket: text }, READ.name), "10.0.0.1");
    const twice = (caller: () => Caller): string[] =>
      [1000, 2000].map((lifetimeMs) => sender(issue(house, caller(), { ...READ, lifetimeMs }).ticket));
    const senders = [
      twice(() => house.caller(bearer(tokenOf("ci")))),
      twice(() => house.caller(bearer(jwtOf("EdDSA", claimsWith({ jti: randomUUID() }))))),
      twice(() => house.caller(bearer(jwtOf("ES256", claimsWith({ sub: "bob" }))))),
      twice(() => house.caller({ certificate: lasting("alice") })),
    ];
    for (const [first, second] of senders) assert.equal(first, second);
    assert.equal(new Set(senders.flat()).size, senders.length);
    for (const each of senders.flat()) assert.match(each, / 10\.0\.0\.1$/);
    assert.notEqual(sender(ticket()), sender(ticket({ expiresS: NOW_S + 61 })));
  });

  test("can't be had without a key for it", async (context) => {
    const { authority, caller } = await openAuthority(context, authDocument({ ticketKeys: undefined }));
    assert.deepEqual(authority.issueTicket(caller(bearer(tokenOf("ci"))), READ), { kind: "no-key" });
  });

  test("is signed with the first key that may", async (context) => {
    const secret = TICKET_SECRET.toString("base64url");
    const limited = (id: string, stream: string, allow: string[]) => ({ id, secret, grants: [{ streams: [stream], allow }] });
    const keys = [limited("other", "x", ["read"]), limited("reads", "chat/*", ["read"]), { id: "all", secret }];
    const house = await openAuthority(context, authDocument({ ticketKeys: keys }));
    const ci = house.caller(bearer(tokenOf("ci")));
    assert.match(issue(house, ci).ticket, /\.r\.reads~/);
    assert.match(issue(house, ci, { ...READ, close: true }).ticket, /\.rc\.all~/);
  });

  test("for one who came with a ticket has the same key and asker", async (context) => {
    const house = await openAuthority(context);
    const first = issue(house, house.caller(bearer(tokenOf("ci")))).ticket;
    house.clock.advance(60_000);
    const second = issue(house, house.caller({ ticket: first }, READ.name)).ticket;
    assert.equal(second.split(".")[3], first.split(".")[3]);
    assert.equal(second.split(".")[1], first.split(".")[1], "and ends with it");
  });
});
