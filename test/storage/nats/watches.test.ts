import assert from "node:assert/strict";
import { test } from "node:test";
import { LogUnavailableError } from "../../../src/storage/nats/log/replicated-log.js";
import { created } from "../../helpers/engine.js";
import { withFrontEnds } from "../../helpers/front-ends.js";

test("that followed streams can't be read is told once in an outage of a shard, and how many they are", async () => {
  await withFrontEnds(async ({ clock }, { storage, way, log }) => {
    const followed = 40;
    for (let count = 0; count < followed; count += 1) {
      const stream = await created(storage, `s${count}`);
      stream.observer = { advanced: () => undefined, settled: () => undefined, deleted: () => undefined };
    }
    const told = () => log.filter(({ message }) => /news/.test(message));
    const { last, next } = way;
    const stop = (): void => {
      way.last = way.next = () => Promise.reject(new LogUnavailableError("no leader answers", "SD_test_0"));
    };
    stop();
    await clock.pause(300_000);
    assert.deepEqual(
      told().map(({ level, message }) => `${level} ${message}`),
      Array.from({ length: 2 }, () => "warn the news of followed streams can't be read"),
    );
    const counts = told().map(({ fields }) => Number(fields["streams"]));
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      followed,
    );
    Object.assign(way, { last, next });
    await clock.pause(120_000);
    assert.equal(told().length, 2);
    stop();
    await clock.pause(60_000);
    assert.equal(told().length, 4);
    Object.assign(way, { last, next });
  });
});
