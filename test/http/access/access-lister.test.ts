import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Access, seesAll, type Lister } from "../../../src/http/access/access.js";
import { RequestRates } from "../../../src/http/access/request-rates.js";
import { SitePolicy } from "../../../src/http/access/site-policy.js";
import { CorsPolicy } from "../../../src/http/encoding/cors.js";
import { isProblem } from "../../../src/http/encoding/problems.js";
import { commonRanges, rangesOfPattern } from "../../../src/protocol/names/name-range.js";
import { authDocument, openAuthority, TOKEN_HASH, tokenOf } from "../../helpers/auth-files.js";
import { bareExchange } from "../../helpers/bare-exchange.js";
import { ManualClock } from "../../helpers/manual-clock.js";

const GRANTS = [
  { streams: ["**"], allow: ["list"] },
  { streams: ["mine/**"], allow: ["read"] },
];

/** Whoever lists with the token `ci`, and a way to give it other grants. */
async function lister(context: TestContext): Promise<{ lister: Lister; regrant: (grants: object[]) => Promise<boolean> }> {
  const documentWith = (grants: object[]) => authDocument({ tokens: [{ id: "ci", sha256: TOKEN_HASH, grants }] });
  const { authority, write } = await openAuthority(context, documentWith(GRANTS));
  const clock = new ManualClock();
  const site = new SitePolicy({ cors: new CorsPolicy("*"), allowHost: "", checksHosts: false, isCertifiedFor: () => false });
  const rates = new RequestRates("off", clock);
  const access = new Access({ authority, site, rates, clock, prefix: "/v1/stream/", certificateOf: () => null });
  const exchange = bareExchange({ rawHeaders: ["Authorization", `Bearer ${tokenOf("ci")}`] });
  const found = await access.listerOf(exchange);
  assert.ok(!isProblem(found));
  const regrant = (grants: object[]): Promise<boolean> => {
    write(documentWith(grants));
    return authority.reload();
  };
  return { lister: found, regrant };
}

test("who may list more than read looks at no name that it may not read: the time would tell of it", async (context) => {
  const { lister: found } = await lister(context);
  assert.deepEqual(found.ranges(), commonRanges(rangesOfPattern("mine/**"), rangesOfPattern("mine/**"), ""));
});

test("who lists while its grants change sees no more than it may from then on", async (context) => {
  const { lister: found, regrant } = await lister(context);
  assert.ok(found.may("read", "mine/1"));
  assert.equal(await regrant([{ streams: ["mine/2"], allow: ["list", "read"] }]), true);
  assert.ok(!found.may("read", "mine/1") && found.may("read", "mine/2"));
  assert.deepEqual(found.ranges(), rangesOfPattern("mine/2"));
  assert.equal(await regrant([{ streams: ["mine/2"], allow: ["read"] }]), true);
  assert.deepEqual([found.may("list", "mine/2"), found.ranges()], [false, []]);
});

test("who may list and read all streams sees all, and nobody else does", async (context) => {
  const { lister: found, regrant } = await lister(context);
  for (const [list, read, expected] of [
    [["**"], ["**"], true],
    [["a/*", "**"], ["*", "**"], true],
    [["**"], ["mine/**"], false],
    [["*"], ["**"], false],
    [["**/*"], ["**"], false],
  ] as const) {
    assert.equal(
      await regrant([
        { streams: list, allow: ["list"] },
        { streams: read, allow: ["read"] },
      ]),
      true,
    );
    assert.equal(seesAll(found), expected, `${list.join(" ")}; ${read.join(" ")}`);
  }
});
