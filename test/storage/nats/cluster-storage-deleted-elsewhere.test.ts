import assert from "node:assert/strict";
import { test } from "node:test";
import { Stream } from "../../../src/stream/loaded/stream.js";
import { frontEnds } from "../../helpers/front-ends.js";
import { Random } from "../../helpers/random.js";
import { createOf, find, gist } from "../../helpers/registries.js";

test("a front end keeps nothing in memory of streams that another deleted first", async () => {
  const { all, clock, stop } = frontEnds(2, new Random(1));
  const [one, other] = all;
  assert.ok(one !== undefined && other !== undefined);
  const steps = async (): Promise<void> => {
    for (const name of ["read", "followed", "expired"])
      assert.equal(gist(await one.registry.create(name, createOf({ text: "bytes", ttlSeconds: 2 }))), "created");
    (await find(one.registry, "followed")).follow(
      () => undefined,
      () => undefined,
    );
    assert.ok(one.storage.figures().cacheBytes > 0);
    for (const name of ["read", "followed", "expired"]) assert.equal(gist(await other.registry.delete(name)), "deleted");
    assert.ok(!((await one.registry.find("read")) instanceof Stream));
    await clock.pause(10_000);
    assert.equal(one.registry.loadedCount, 0);
    assert.equal(one.storage.figures().cacheBytes, 0);
  };
  await clock.through(steps()).finally(stop);
});
