import assert from "node:assert/strict";
import { Readable } from "node:stream";
import test from "node:test";
import { ArchiveReader } from "../../../../src/cli/client/archive/archive-reader.js";
import { formatHead, type StreamHead } from "../../../../src/cli/client/archive/stream-head.js";
import { ARCHIVE_END, tarHeader, tarPadding } from "../../../../src/cli/client/archive/tar.js";

const HEAD: StreamHead = {
  format: 1,
  name: "a",
  contentType: "a/b",
  ttlSeconds: null,
  expiresAt: null,
  closed: false,
  fork: null,
  bytes: 3,
  pieces: [[3, 0]],
  sha256: "",
};

function file(name: string, text: string): Buffer {
  return Buffer.concat([tarHeader({ name, size: text.length }, 0), Buffer.from(text), tarPadding(text.length)]);
}

function readerOf(...parts: readonly Buffer[]): ArchiveReader {
  const whole = Buffer.concat(parts);
  const chunks = Array.from({ length: Math.ceil(whole.length / 100) }, (_, at) => whole.subarray(at * 100, at * 100 + 100));
  return new ArchiveReader(Readable.from(chunks));
}

test("an archive may end with the zeros that fill tar's last record", async () => {
  for (const bytes of [1024, 10_240, 64 * 1024]) assert.equal(await readerOf(Buffer.alloc(bytes)).next(), null);
});

test("the streams come one after the other, each with its data", async () => {
  const two = { ...HEAD, name: "b" };
  const reader = readerOf(
    file("1.json", formatHead(HEAD)),
    file("1.data", "abc"),
    file("2.json", formatHead(two)),
    file("2.data", "def"),
    ARCHIVE_END,
  );
  for (const [name, data] of [
    ["a", "abc"],
    ["b", "def"],
  ] as const) {
    const found = await reader.next();
    assert.ok(found?.kind === "stream");
    assert.equal(found.head.name, name);
    assert.equal((await reader.take(3))?.toString(), data);
  }
  assert.equal(await reader.next(), null);
});

for (const [title, parts, words] of [
  ["of less than a header", [Buffer.alloc(100, "a")], /the input is no archive of streams: it is too short/],
  ["with less than the end", [ARCHIVE_END.subarray(1)], /cut off/],
  ["with a header of zeros", [ARCHIVE_END.subarray(512), file("2.json", formatHead(HEAD)), ARCHIVE_END], /more behind its end/],
  ["with another behind it", [ARCHIVE_END, file("1.json", formatHead(HEAD)), ARCHIVE_END], /more behind its end/],
  ["with a byte behind its end", [ARCHIVE_END, Buffer.alloc(5000), Buffer.from("x")], /more behind its end/],
  ["with a long hole at its end", [Buffer.alloc(64 * 1024 + 1)], /more zeros/],
  ["cut off in a header", [file("1.json", formatHead(HEAD)), Buffer.alloc(100)], /cut off/],
  ["cut off in a head", [file("1.json", formatHead(HEAD)).subarray(0, 600)], /cut off/],
  ["cut off behind a head", [file("1.json", formatHead(HEAD))], /cut off/],
  ["with another file", [file("readme.txt", "hello")], /readme\.txt is no head of a stream/],
  ["with a head that is none", [file("1.json", "{}")], /1\.json has the format undefined/],
  ["with data of another length", [file("1.json", formatHead(HEAD)), file("1.data", "abcd")], /1\.data is not the data of 1\.json/],
  ["with data of another stream", [file("1.json", formatHead(HEAD)), file("2.data", "abc")], /2\.data is not the data of 1\.json/],
] as const)
  test(`an archive ${title} is refused`, async () => {
    const found = await readerOf(...parts).next();
    assert.ok(found?.kind === "fault");
    assert.match(found.words, words);
  });
