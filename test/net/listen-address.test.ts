import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { formatAuthority, formatListen, parseListen, type ListenAddress } from "../../src/net/listen-address.js";

const tcp = (host: string, port: number): ListenAddress => ({ kind: "tcp", host, port });

const CASES: readonly (readonly [text: string, addresses: readonly ListenAddress[] | null, formatted?: string])[] = [
  ["127.0.0.1:4437", [tcp("127.0.0.1", 4437)]],
  ["localhost:0", [tcp("localhost", 0)]],
  ["a-b.example_1.com:65535", [tcp("a-b.example_1.com", 65535)]],
  ["[::1]:80", [tcp("::1", 80)]],
  ["[fe80::1%eth0]:80", [tcp("fe80::1%eth0", 80)]],
  ["[fe80::1%br-lan]:80", [tcp("fe80::1%br-lan", 80)]],
  ["[fe80::1%eth0.100]:80", [tcp("fe80::1%eth0.100", 80)]],
  ["[fe80::1%]:80", null],
  ["[::ffff:127.0.0.1]:80", [tcp("::ffff:127.0.0.1", 80)]],
  ["*:4437", [tcp("::", 4437)], "[::]:4437"],
  ["unix:/run/streamdir.sock", [{ kind: "unix", path: "/run/streamdir.sock" }]],
  ["unix:a:b", [{ kind: "unix", path: "a:b" }]],
  ["fd:3", [{ kind: "fd", fd: 3 }]],
  ["fd:65536", [{ kind: "fd", fd: 65536 }]],
  ["127.0.0.1:1, unix:/a ,fd:0", [tcp("127.0.0.1", 1), { kind: "unix", path: "/a" }, { kind: "fd", fd: 0 }], "127.0.0.1:1,unix:/a,fd:0"],
  ["", null],
  [",", null],
  ["127.0.0.1:1,", null],
  ["127.0.0.1", null],
  ["4437", null],
  [":4437", null],
  ["127.0.0.1:65536", null],
  ["127.0.0.1:", null],
  ["127.0.0.1:8x", null],
  ["127.0.0.1:-1", null],
  ["::1:80", null],
  ["[::1]", null],
  ["[127.0.0.1]:80", null],
  ["[::1::]:80", null],
  ["[]:80", null],
  ["http://a:80", null],
  ["a b:80", null],
  ["unix:", null],
  ["fd:", null],
  ["fd:-1", null],
  ["fd:12345678", null],
];

test("a URL has the zone of an address behind %25", () => {
  assert.equal(formatAuthority("fe80::1%eth0", 80), "[fe80::1%25eth0]:80");
  assert.equal(formatAuthority("::1", 80), "[::1]:80");
  assert.equal(formatAuthority("127.0.0.1", 80), "127.0.0.1:80");
});

describe("an address to listen on", () => {
  for (const [text, addresses, formatted = text] of CASES) {
    test(`${JSON.stringify(text)} is ${addresses === null ? "none" : formatted}`, () => {
      const parsed = parseListen(text);
      assert.deepEqual(parsed, addresses);
      if (parsed !== null) assert.equal(parsed.map(formatListen).join(","), formatted);
    });
  }
});
