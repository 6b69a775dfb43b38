import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { faultOfHosts, hostMatcher, hostNameOf, isLoopbackAddress, isLoopbackName } from "../../src/net/host-name.js";

describe("the name in an authority", () => {
  const cases: readonly (readonly [authority: string, name: string])[] = [
    ["example.com", "example.com"],
    ["Example.COM:8080", "example.com"],
    ["example.com.", "example.com"],
    ["example.com.:80", "example.com"],
    ["example.com..", "example.com."],
    ["127.0.0.1:4437", "127.0.0.1"],
    ["[::1]:4437", "::1"],
    ["[2001:DB8::1]", "2001:db8::1"],
    ["[2001:db8:0:0::01]:80", "2001:db8::1"],
    ["[0:0:0:0:0:0:0:1]", "::1"],
    ["[::ffff:7f00:1]", "::ffff:127.0.0.1"],
    ["[fe80::1%eth0]", "fe80::1%eth0"],
    ["localhost:", "localhost"],
    ["", ""],
    // These are no authorities: what they begin or end with must not pass for a name.
    ["::1", "::1"],
    ["localhost:80:80", "localhost:80:80"],
    ["localhost:x", "localhost:x"],
    ["[::1]x", "[::1]x"],
    ["evil.example/[::1]", "evil.example/[::1]"],
  ];
  for (const [authority, name] of cases) test(JSON.stringify(authority), () => assert.equal(hostNameOf(authority), name));
});

describe("a name stands for this machine", () => {
  const ours = ["localhost", "a.localhost", "a.b.localhost", "127.0.0.1", "127.9.9.9", "::1", "0:0:0:0:0:0:0:1", "0::1", "::0:1", "::0001"];
  const mapped = ["::ffff:127.0.0.1", "::FFFF:127.1.2.3"];
  const others = ["", "localhost.example.com", "alocalhost", "notlocalhost", "localhost.", "127.0.0.1.example.com", "127.1", "2130706433"];
  const addresses = ["0.0.0.0", "128.0.0.1", "::", "::2", "1::1", "::1:1", "::10", "::ffff:10.0.0.1", "::127.0.0.1", "::1::", "10.0.0.1"];
  for (const name of [...ours, ...mapped]) test(name, () => assert.equal(isLoopbackName(name), true));
  for (const name of [...others, ...addresses]) test(`not ${JSON.stringify(name)}`, () => assert.equal(isLoopbackName(name), false));

  test("an address is one only as an address", () => {
    assert.equal(isLoopbackAddress("127.0.0.1"), true);
    assert.equal(isLoopbackAddress("localhost"), false);
  });
});

describe("a list of hosts", () => {
  const cases: readonly (readonly [list: string, has: readonly string[], hasNot: readonly string[]])[] = [
    ["", [], ["", "example.com"]],
    ["example.com", ["example.com"], ["a.example.com", "example.com.evil", "xexample.com", ""]],
    ["Example.com,other.test", ["example.com", "other.test"], ["example.com,other.test"]],
    ["*.example.com", ["a.example.com", "a.b.example.com"], ["example.com", "aexample.com", "a.example.com.evil"]],
    ["127.0.0.1", ["127.0.0.1"], ["127.0.0.2"]],
    ["::1", ["::1"], ["::2"]],
    ["[2001:DB8::1]", ["2001:db8::1"], ["2001:db8::2"]],
    ["2001:db8:0:0::1", ["2001:db8::1"], ["2001:db8:0:0::1x"]],
    ["my_host", ["my_host"], ["my"]],
  ];
  for (const [list, has, hasNot] of cases) {
    test(JSON.stringify(list), () => {
      assert.equal(faultOfHosts(list), null);
      const matches = hostMatcher(list);
      for (const name of has) assert.equal(matches(name), true, name);
      for (const name of hasNot) assert.equal(matches(name), false, name);
    });
  }

  const faulty = [
    "example.com:80",
    "http://example.com",
    "*",
    "*.",
    "a.*.com",
    "*example.com",
    "a b",
    "a,",
    ",a",
    "-a",
    "a-",
    ".a",
    "[::1",
    "[::1]:80",
    "a/b",
    7,
  ];
  for (const list of faulty)
    test(`is refused: ${JSON.stringify(list)}`, () => assert.match(faultOfHosts(list) ?? "", /^must be host names/));
});
