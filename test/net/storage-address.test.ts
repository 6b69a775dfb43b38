import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { faultOfAddress, formatStorage, parseStorage } from "../../src/net/storage-address.js";

const NATS = { kind: "nats", isTls: false, user: null, bucket: "streamdir", replicas: null, shards: null } as const;

describe("an address of --storage", () => {
  const taken = {
    file: { kind: "file" },
    "nats://h1": { ...NATS, servers: ["h1:4222"] },
    "nats://h1/": null,
    "nats://h1,h2:4223,[::1]:4224/chats1": { ...NATS, servers: ["h1:4222", "h2:4223", "[::1]:4224"], bucket: "chats1" },
    "tls://h1/b": { ...NATS, isTls: true, servers: ["h1:4222"], bucket: "b" },
    "nats://u:p%40%2F@h1/b": { ...NATS, servers: ["h1:4222"], bucket: "b", user: { name: "u", password: "p@/" } },
    "nats://h1/b?replicas=1&shards=12": { ...NATS, servers: ["h1:4222"], bucket: "b", replicas: 1, shards: 12 },
    "nats://h1?shards=64": { ...NATS, servers: ["h1:4222"], shards: 64 },
  };
  for (const [text, address] of Object.entries(taken))
    test(`${text} is ${address === null ? "none" : "read"}`, () => assert.deepEqual(parseStorage(text), address));

  const SCHEME = /^must be file, or an address like nats:/;
  const SERVER = /^must name each server as HOST or HOST:PORT,/;
  const BUCKET = /^must have a bucket of 1 to 16 of the characters a-z and 0-9$/;
  const USER = /^must have USER:PASSWORD in front of an @; in both, %40 stands for @,/;
  const REPLICAS = /^must have \?replicas= of 1, 3 or 5$/;
  const SHARDS = /^must have \?shards= of 1 to 64$/;
  const refused = {
    "": SCHEME,
    files: SCHEME,
    "nats:": SCHEME,
    "http://h1/b": SCHEME,
    "nats://": SERVER,
    "nats://h1,": SERVER,
    "nats://,h1": SERVER,
    "nats://h1:0": SERVER,
    "nats://h1:65536": SERVER,
    "nats://h 1": SERVER,
    "nats://h1/Upper": BUCKET,
    "nats://h1/a-b": BUCKET,
    "nats://h1/a/b": BUCKET,
    "nats://h1/seventeenletters1": BUCKET,
    "nats://u@h1": USER,
    "nats://:secret@h1": USER,
    "nats://u:sec:ret@h1": USER,
    "nats://u:secret%ff@h1": USER,
    "nats://u:sec@ret@h1/b": USER,
    "nats://u:sec/ret@h1/b": USER,
    "nats://u:sec?ret@h1/b": USER,
    "nats://h1/b?replicas=2": REPLICAS,
    "nats://u:secret@h1/b?replicas=": REPLICAS,
    "nats://h1/b?shards=0": SHARDS,
    "nats://h1/b?shards=65": SHARDS,
    "nats://h1/b?shard=1": /^has the unknown option "shard": there are replicas and shards$/,
    "nats://u:secret@h1/b?replicas=3&REPLICAS=3": /^has the unknown option "REPLICAS"/,
  };
  for (const [text, fault] of Object.entries(refused))
    test(`${JSON.stringify(text)} is none, and its fault says which part is wrong`, () => {
      assert.equal(parseStorage(text), null);
      const words = faultOfAddress(text) ?? assert.fail("it has a fault");
      assert.match(words, fault);
      assert.doesNotMatch(words, /sec|ret|u:/);
    });

  test("is without a fault where it can be read", () => {
    for (const text of ["file", "nats://u:p%40%2F@h1,h2/b?shards=1"]) assert.equal(faultOfAddress(text), null);
  });

  test("is logged without its password", () => {
    const address = parseStorage("nats://u:secret@h1,h2/b");
    assert.ok(address !== null);
    assert.equal(formatStorage(address), "nats://h1:4222,h2:4222/b");
    assert.equal(formatStorage({ kind: "file" }), "file");
  });
});
