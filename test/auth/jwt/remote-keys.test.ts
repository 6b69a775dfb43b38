import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  KEYS_COOLDOWN_MS,
  KEYS_FRESH_MS,
  KEYS_KEPT_MS,
  KEYS_RETRY_MS,
  MAX_WAITING_FOR_KEYS,
  RemoteKeys,
} from "../../../src/auth/jwt/remote-keys.js";
import { jwkOf, keySet, PAIRS } from "../../helpers/jwt.js";
import { ManualClock } from "../../helpers/manual-clock.js";

const ED = { alg: "EdDSA", kid: "EdDSA" };
const ALGS = ["EdDSA", "ES256"] as const;
const OTHER_SET = JSON.stringify({ keys: [jwkOf(PAIRS.EdDSA.publicKey, { kid: "new" })] });

/** Keys whose fetches a test answers itself. */
function remote() {
  const clock = new ManualClock();
  const warnings: string[] = [];
  const log = {
    debug() {},
    info: (text: string) => void warnings.push(text),
    warn: (text: string) => void warnings.push(text),
    error: (text: string) => void warnings.push(text),
  };
  const asked: { answer: (text: string) => void; fail: (error: Error) => void; signal: AbortSignal }[] = [];
  let gone = 0;
  const keys = new RemoteKeys({
    place: { url: "https://id.example/keys", ca: null },
    clock,
    log,
    onKeyGone: () => void gone++,
    fetch: (_place, _clock, signal) => new Promise((answer, fail) => void asked.push({ answer, fail, signal })),
  });
  return { keys, clock, asked, warnings, goneCount: () => gone, find: (kid = "EdDSA") => keys.keyFor({ ...ED, kid }, ALGS) };
}

/** Answers the fetch that is under way, and waits until it was taken. */
async function settle({ asked, find }: ReturnType<typeof remote>, text: string | Error): Promise<void> {
  const waiting = find("nobody");
  const last = asked.at(-1);
  if (text instanceof Error) last?.fail(text);
  else last?.answer(text);
  await waiting;
}

describe("the keys of an issuer at a URL", () => {
  test("are fetched once for all who wait for them, and then there", async () => {
    const { find, asked } = remote();
    const waiting = [find(), find(), find("other")];
    assert.equal(asked.length, 1);
    asked[0]?.answer(keySet());
    const [one, two, other] = await Promise.all(waiting);
    assert.ok(typeof one === "object" && one === two);
    assert.equal(other, "unknown");
    assert.equal(find(), one);
    assert.equal(asked.length, 1);
  });

  test("are fetched before anybody asks when they are warmed", async () => {
    const it = remote();
    it.keys.warm();
    it.keys.warm();
    assert.equal(it.asked.length, 1);
    await settle(it, keySet());
    assert.equal(typeof it.find(), "object");
  });

  test("are asked for again in the background when they are old, and stay meanwhile", async () => {
    const it = remote();
    await settle(it, keySet());
    it.clock.advance(KEYS_FRESH_MS - 1);
    assert.equal(typeof it.find(), "object");
    assert.equal(it.asked.length, 1);
    it.clock.advance(1);
    assert.equal(typeof it.find(), "object");
    assert.equal(typeof it.find(), "object");
    assert.equal(it.asked.length, 2);
  });

  test("are asked for again for an unknown kid, but not again at once", async () => {
    const it = remote();
    await settle(it, keySet());
    assert.equal(it.find("new"), "unknown");
    it.clock.advance(KEYS_COOLDOWN_MS);
    const found = it.find("new");
    assert.equal(it.asked.length, 2);
    it.asked[1]?.answer(OTHER_SET);
    assert.equal(typeof (await found), "object");
    for (let at = 0; at < 100; at++) assert.equal(it.find(`flood-${at}`), "unknown");
    assert.equal(it.asked.length, 2);
  });

  test("that are gone end what they signed", async () => {
    const it = remote();
    await settle(it, keySet());
    const key = await it.find();
    assert.ok(typeof key === "object" && it.keys.has((print) => print === key.print));
    const es = await it.keys.keyFor({ alg: "ES256", kid: "ES256" }, ALGS);
    assert.ok(typeof es === "object");
    it.clock.advance(KEYS_FRESH_MS);
    it.find();
    const before = it.goneCount();
    await settle(it, OTHER_SET);
    assert.equal(it.goneCount(), before + 1);
    assert.equal(
      it.keys.has((print) => print === es.print),
      false,
    );
    assert.equal(
      it.keys.has((print) => print === key.print),
      true,
      "the same key under another name is the same key",
    );
  });

  test("are kept while no others can be had, for a day; the log says it once", async () => {
    const it = remote();
    await settle(it, keySet());
    for (let round = 0; round < 3; round++) {
      it.clock.advance(KEYS_FRESH_MS);
      assert.equal(typeof it.find(), "object");
      await settle(it, new Error("down"));
    }
    assert.deepEqual(it.warnings, ["the keys of an issuer can't be fetched"]);
    it.clock.advance(KEYS_KEPT_MS);
    const last = it.find();
    it.asked.at(-1)?.fail(new Error("down"));
    assert.equal(await last, "unavailable");
    assert.equal(it.find(), "unavailable", "no new fetch for everyone who asks");
    it.clock.advance(KEYS_RETRY_MS);
    await settle(it, keySet());
    assert.equal(typeof it.find(), "object");
    assert.deepEqual(it.warnings, [
      "the keys of an issuer can't be fetched",
      "the keys of an issuer are given up: none could be fetched for a day",
      "the keys of an issuer can be fetched again",
    ]);
  });

  test("are not replaced by an answer that is no set", async () => {
    const it = remote();
    await settle(it, keySet());
    it.clock.advance(KEYS_FRESH_MS);
    it.find();
    await settle(it, "<html>");
    assert.equal(typeof it.find(), "object");
    assert.equal(it.warnings.length, 1);
  });

  test("end with a set that has none that can verify: it withdraws them all", async () => {
    const it = remote();
    await settle(it, keySet());
    const before = it.goneCount();
    it.clock.advance(KEYS_FRESH_MS);
    await settle(it, '{"keys":[]}');
    assert.equal(it.find(), "unknown");
    assert.equal(it.goneCount(), before + 1);
    assert.equal(it.warnings.length, 1);
  });

  test("are fetched again when they are old though nobody asks, and soon where that failed", async () => {
    const it = remote();
    await settle(it, keySet());
    it.clock.advance(KEYS_FRESH_MS);
    assert.equal(it.asked.length, 2);
    await settle(it, new Error("down"));
    it.clock.advance(KEYS_COOLDOWN_MS);
    assert.equal(it.asked.length, 3);
    await settle(it, keySet());
    it.clock.advance(KEYS_FRESH_MS - 1);
    assert.equal(it.asked.length, 3);
    it.keys.close();
    it.clock.advance(KEYS_FRESH_MS);
    assert.equal(it.asked.length, 3, "not after they are closed");
    assert.equal(it.clock.pendingCount, 0);
  });

  test("end what they signed once, when they have been kept for a day", async () => {
    const it = remote();
    await settle(it, keySet());
    const key = await it.find();
    assert.ok(typeof key === "object");
    const before = it.goneCount();
    it.clock.advance(KEYS_KEPT_MS - 1);
    await settle(it, new Error("down"));
    assert.deepEqual([it.keys.has((print) => print === key.print), it.goneCount()], [true, before]);
    for (let round = 0; round < 3; round++) {
      it.clock.advance(KEYS_COOLDOWN_MS);
      await settle(it, new Error("down"));
      assert.deepEqual([it.keys.has((print) => print === key.print), it.goneCount()], [false, before + 1]);
    }
  });

  for (const [title, answer] of [
    ["is good", keySet()],
    ["is none", new Error("down")],
  ] as const)
    test(`have what an issuer had before looked at again once the first answer is there, and it ${title}`, async () => {
      const it = remote();
      assert.equal(it.keys.hasAnswered, false);
      await settle(it, answer);
      assert.deepEqual([it.keys.hasAnswered, it.goneCount()], [true, 1]);
      it.clock.advance(KEYS_FRESH_MS);
      await settle(it, answer);
      assert.equal(it.goneCount(), 1);
    });

  test("have none before the first answer, which can be waited for", async () => {
    const it = remote();
    assert.equal(
      it.keys.has(() => true),
      false,
    );
    const known = it.keys.known();
    assert.ok(known !== null);
    assert.equal(it.asked.length, 1);
    it.asked[0]?.answer(keySet());
    await known;
    assert.equal(
      it.keys.has(() => true),
      true,
    );
    assert.equal(it.keys.known(), null);
  });

  test("are waited for by so many at a time, and no more", async () => {
    const it = remote();
    for (let round = 0; round < 2; round += 1) {
      const waiting = Array.from({ length: MAX_WAITING_FOR_KEYS }, () => it.find("new"));
      assert.ok(waiting.every((each) => each instanceof Promise));
      assert.equal(it.find("new"), "unavailable");
      it.asked[round]?.answer(keySet());
      assert.deepEqual(new Set(await Promise.all(waiting)), new Set(["unknown"]));
      it.clock.advance(KEYS_COOLDOWN_MS);
    }
  });

  test("are waited for by so many tickets, too: others find that there are none", async () => {
    const it = remote();
    const waiting = Array.from({ length: MAX_WAITING_FOR_KEYS }, () => it.keys.known());
    assert.ok(waiting.every((each) => each instanceof Promise));
    assert.equal(it.keys.known(), null);
    assert.equal(it.find("new"), "unavailable");
    assert.equal(
      it.keys.has(() => true),
      false,
    );
    it.asked[0]?.answer(keySet());
    await Promise.all(waiting);
    assert.equal(
      it.keys.has(() => true),
      true,
    );
  });

  test("that can't be had are not waited for, and are asked for again soon", async () => {
    const it = remote();
    const known = it.keys.known();
    it.asked[0]?.fail(new Error("down"));
    await known;
    assert.equal(it.keys.known(), null);
    it.clock.advance(KEYS_RETRY_MS);
    assert.ok(it.keys.known() !== null);
    assert.equal(it.asked.length, 2);
  });

  test("break off a fetch when they are closed, without a word", async () => {
    const it = remote();
    const waiting = it.find();
    it.keys.close();
    assert.equal(it.asked[0]?.signal.aborted, true);
    it.asked[0]?.fail(new Error("aborted"));
    assert.equal(await waiting, "unavailable");
    assert.deepEqual(it.warnings, []);
  });
});
