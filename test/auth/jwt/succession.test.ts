import assert from "node:assert/strict";
import { test } from "node:test";
import { fixedKeys } from "../../../src/auth/jwt/key-source.js";
import { RemoteKeys } from "../../../src/auth/jwt/remote-keys.js";
import { Succession } from "../../../src/auth/jwt/succession.js";
import { secretKey } from "../../../src/auth/jwt/verification-key.js";
import { jwkOf, PAIRS } from "../../helpers/jwt.js";
import { ManualClock } from "../../helpers/manual-clock.js";

const BEFORE = secretKey(Buffer.alloc(32, 1));
const SET = JSON.stringify({ keys: [jwkOf(PAIRS.EdDSA.publicKey, { kid: "new" })] });

/** Keys that moved, twice where that is asked for; the test answers the fetches. */
function moved() {
  const answers: ((text: string | Promise<never>) => void)[] = [];
  const remote = (): RemoteKeys =>
    new RemoteKeys({
      place: { url: "https://id.example/keys", ca: null },
      clock: new ManualClock(),
      log: { debug() {}, info() {}, warn() {}, error() {} },
      onKeyGone() {},
      fetch: () => new Promise((answer) => void answers.push(answer)),
    });
  const has = (keys: Succession, print: string): boolean => keys.has((each) => each === print);
  return { remote, answers, has };
}

for (const [title, answer] of [
  ["answers", () => SET],
  ["does not answer", () => Promise.reject(new Error("down"))],
] as const)
  test(`keys that an issuer had count until its new place ${title}`, async () => {
    const { remote, answers, has } = moved();
    const keys = new Succession(remote(), fixedKeys([BEFORE]));
    const known = keys.known();
    assert.ok(known !== null && has(keys, BEFORE.print) && !has(keys, "of nobody"));
    answers[0]?.(answer());
    await known;
    assert.ok(!has(keys, BEFORE.print));
    const found = await keys.keyFor({ alg: "EdDSA", kid: "new" }, ["EdDSA"]);
    assert.equal(typeof found === "object" && has(keys, found.print), title === "answers");
  });

test("an issuer that moves again before there is an answer still has the first ones", async () => {
  const { remote, answers, has } = moved();
  const first = new Succession(remote(), fixedKeys([BEFORE]));
  const keys = new Succession(remote(), first);
  assert.ok(has(keys, BEFORE.print));
  const known = keys.known();
  answers[0]?.(SET);
  await known;
  assert.ok(!has(keys, BEFORE.print));
});
