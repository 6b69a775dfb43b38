import assert from "node:assert/strict";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { Compression } from "../../../src/http/answer/compression.js";

const MIB = 1024 * 1024;
const wanted = (): boolean => true;

test("takes what is worth it, as long as not too much is held", async () => {
  const compression = new Compression();
  assert.deepEqual(
    [1023, 1024].map((bytes) => compression.takes(bytes)),
    [false, true],
  );
  const bodies = Array.from({ length: 64 }, (_, at) => Buffer.alloc(MIB, String(at)));
  const coded = bodies.map((body) => compression.gzip(body, wanted));
  assert.equal(compression.takes(1024), false);
  const answers = await Promise.all(coded);
  assert.deepEqual(
    answers.map((bytes) => (bytes === null ? null : gunzipSync(bytes))),
    bodies,
  );
  assert.equal(compression.takes(64 * MIB), true);
  assert.equal(compression.takes(64 * MIB + 1), false);
});

test("compresses nothing for those who have gone when their turn comes, and the others in time", async () => {
  const compression = new Compression();
  const body = Buffer.alloc(MIB, "a");
  const answers = await Promise.all(Array.from({ length: 12 }, (_, at) => compression.gzip(body, () => at % 3 === 0)));
  assert.deepEqual(
    answers.map((bytes) => bytes !== null),
    answers.map((_, at) => at % 3 === 0),
  );
  assert.equal(compression.takes(64 * MIB), true);
});

test("compresses alike each time, so that an ETag may name the bytes", async () => {
  const compression = new Compression();
  const body = Buffer.from("a line of a log\n".repeat(5000));
  assert.deepEqual(await compression.gzip(body, wanted), await compression.gzip(body, wanted));
});
