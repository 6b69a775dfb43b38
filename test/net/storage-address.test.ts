import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { formatStorage, parseStorage } from "../../src/net/storage-address.js";

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

  const refused = [
    "",
    "files",
    "nats:",
    "nats://",
    "nats://h1,",
    "nats://,h1",
    "nats://h1:0",
    "nats://h1:65536",
    "nats://h 1",
    "nats://h1/Upper",
    "nats://h1/a-b",
    "nats://h1/a/b",
    "nats://h1/seventeenletters1",
    "nats://u@h1",
    "nats://:p@h1",
    "nats://u:p:q@h1",
    "nats://u:%ff@h1",
    "nats://h1/b?replicas=2",
    "nats://h1/b?shards=0",
    "nats://h1/b?shards=65",
    "nats://h1/b?shard=1",
    "http://h1/b",
  ];
  for (const text of refused) test(`${JSON.stringify(text)} is none`, () => assert.equal(parseStorage(text), null));

  test("is logged without its password", () => {
    const address = parseStorage("nats://u:secret@h1,h2/b");
    assert.ok(address !== null);
    assert.equal(formatStorage(address), "nats://h1:4222,h2:4222/b");
    assert.equal(formatStorage({ kind: "file" }), "file");
  });
});
