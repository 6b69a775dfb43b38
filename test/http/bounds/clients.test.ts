import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Clients, type Sent } from "../../../src/http/bounds/clients.js";
import { keptLog } from "../../helpers/engine.js";

const TRUSTED = "10.0.0.0/8,2001:db8:ffff::/48";

interface From {
  readonly remoteAddress?: string;
  readonly localAddress?: string;
  readonly destroyed?: boolean;
}

function sent(forwardedFor: string | null, { remoteAddress, localAddress, destroyed = false }: From): Sent {
  const socket = { remoteAddress, localAddress, destroyed };
  return { req: { socket }, headers: { forwardedFor, forwardedHost: "h", forwardedProto: "https" }, client: "the connection's" };
}

describe("the client that X-Forwarded-For names", () => {
  const cases: readonly (readonly [forwardedFor: string | null, client: string])[] = [
    [null, "the connection's"],
    ["192.0.2.7", "192.0.2.7"],
    ["203.0.113.1, 192.0.2.7", "192.0.2.7"],
    ["192.0.2.7, 10.1.2.3", "192.0.2.7"],
    ["203.0.113.1,192.0.2.7 ,10.1.2.3,\t10.0.0.1 ", "192.0.2.7"],
    ["10.1.2.3", "10.1.2.3"],
    ["10.1.2.3, 10.4.5.6", "10.1.2.3"],
    ["192.0.2.7:4711", "192.0.2.7"],
    ["::ffff:192.0.2.7", "192.0.2.7"],
    ["::ffff:c000:207", "192.0.2.7"],
    ["0:0:0:0:0:ffff:192.0.2.7", "192.0.2.7"],
    ["2001:0DB8:1:2:3:4:5:6", "2001:db8:1:2::"],
    ["[2001:db8:1:2::1]", "2001:db8:1:2::"],
    ["[2001:db8:1:2::1]:443, 2001:db8:ffff::1", "2001:db8:1:2::"],
    ["192.0.2.7, ::ffff:10.0.0.1", "192.0.2.7"],
    // What is no address ends the walk.
    ["", "the connection's"],
    ["unknown", "the connection's"],
    ["192.0.2.7, unknown", "the connection's"],
    ["192.0.2.7, unknown, 10.0.0.1", "10.0.0.1"],
    ["192.0.2.7, , 10.0.0.1", "10.0.0.1"],
    ["192.0.2.7,", "the connection's"],
    [", 10.0.0.1", "10.0.0.1"],
    [",", "the connection's"],
    ["192.0.2.256", "the connection's"],
    ["192.0.2.07", "the connection's"],
    ["192.0.2.7 192.0.2.8", "the connection's"],
    ["[192.0.2.7]", "the connection's"],
    ["[2001:db8::1", "the connection's"],
    ["2001:db8::1]", "the connection's"],
    ["fe80::1%eth0", "the connection's"],
    ['"192.0.2.7"', "the connection's"],
    ["192.0.2.7:", "the connection's"],
    ["_hidden", "the connection's"],
    [`${" ".repeat(60)}192.0.2.7`, "the connection's"],
    ["x".repeat(16_000), "the connection's"],
    [",".repeat(16_000), "the connection's"],
    // Nobody has so many proxies.
    [`192.0.2.7${", 10.0.0.1".repeat(31)}`, "192.0.2.7"],
    [`192.0.2.7${", 10.0.0.1".repeat(32)}`, "10.0.0.1"],
  ];
  const clients = new Clients(TRUSTED, keptLog().log);
  for (const [forwardedFor, client] of cases) {
    test(`${JSON.stringify(forwardedFor)?.slice(0, 80)} is ${client}`, () => {
      const request = sent(forwardedFor, { remoteAddress: "10.9.9.9" });
      clients.identify(request);
      assert.equal(request.client, client);
      assert.deepEqual([request.headers.forwardedHost, request.headers.forwardedProto], ["h", "https"]);
    });
  }
});

describe("what a connection says of others", () => {
  const cases: readonly (readonly [who: string, trustProxy: string, from: From, isTrusted: boolean])[] = [
    ["anybody, where nobody is trusted", "", { remoteAddress: "127.0.0.1" }, false],
    ["a stranger", TRUSTED, { remoteAddress: "192.0.2.1" }, false],
    ["a trusted address", TRUSTED, { remoteAddress: "10.255.0.1" }, true],
    ["a trusted address, mapped", TRUSTED, { remoteAddress: "::ffff:10.255.0.1" }, true],
    ["a trusted IPv6 address", TRUSTED, { remoteAddress: "2001:db8:ffff:1::1" }, true],
    ["this machine", "loopback", { remoteAddress: "::1" }, true],
    ["this machine by a Unix socket", "loopback", {}, false],
    ["a Unix socket", "unix", {}, true],
    ["a Unix socket among others", "10.0.0.1,unix", {}, true],
    ["a Unix socket that is gone", "unix", { destroyed: true }, false],
    ["a client that is gone, by TCP", "unix", { localAddress: "127.0.0.1" }, false],
    ["a port, where Unix sockets are trusted", "unix", { remoteAddress: "127.0.0.1" }, false],
  ];
  for (const [who, trustProxy, from, isTrusted] of cases) {
    test(`is ${isTrusted ? "believed" : "dropped"}: ${who}`, () => {
      const clients = new Clients(trustProxy, keptLog().log);
      const request = sent("192.0.2.7", from);
      // The answer is remembered.
      for (let round = 0; round < 2; round += 1) assert.equal(clients.isTrusted(request.req.socket), isTrusted);
      clients.identify(request);
      const { forwardedFor, forwardedHost, forwardedProto } = request.headers;
      assert.deepEqual(
        [request.client, forwardedFor, forwardedHost, forwardedProto],
        isTrusted ? ["192.0.2.7", "192.0.2.7", "h", "https"] : ["the connection's", null, null, null],
      );
    });
  }

  test("is told of once where it is dropped, and only where there is something to drop", () => {
    const { log, lines } = keptLog();
    const clients = new Clients("10.0.0.0/8", log);
    const heard = (forwardedFor: string | null, from: From): number => {
      clients.identify(sent(forwardedFor, from));
      return lines.length;
    };
    assert.deepEqual([heard("192.0.2.7", { remoteAddress: "10.0.0.1" }), heard("192.0.2.7", { localAddress: "127.0.0.1" })], [0, 0]);
    assert.deepEqual([heard("192.0.2.7", { remoteAddress: "172.17.0.2" }), heard("192.0.2.8", { remoteAddress: "172.17.0.3" })], [1, 1]);
    const message = "X-Forwarded headers are ignored: they come from an address that --trust-proxy does not name";
    assert.deepEqual(lines, [{ level: "warn", message, fields: { address: "172.17.0.2" } }]);
  });

  test("is judged for any number of connections", () => {
    const clients = new Clients("10.0.0.0/8", keptLog().log);
    for (let at = 0; at < 5000; at += 1) {
      const low = `${at >> 8}.${at & 255}`;
      assert.equal(clients.isTrusted({ remoteAddress: `10.0.${low}`, destroyed: false }), true);
      assert.equal(clients.isTrusted({ remoteAddress: `11.0.${low}`, destroyed: false }), false);
    }
  });
});

test("a list that is none is refused", () =>
  assert.throws(() => new Clients("localhost", keptLog().log), /Cannot trust proxies: localhost/));
