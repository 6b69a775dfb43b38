import assert from "node:assert/strict";
import { connect, Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { describe, test } from "node:test";
import { TLSSocket } from "node:tls";
import { locationOf } from "../../src/http/location.js";
import { bareExchange } from "../helpers/bare-exchange.js";
import { startExchanges } from "../helpers/exchange-server.js";
import { requestBytes } from "../helpers/test-server.js";

const HOST = "streams.test:4437";

/** What the headers of a request for `/v1/stream/a` make of its URL's beginning. */
const CASES: readonly (readonly [title: string, headers: Readonly<Record<string, string>>, origin: string])[] = [
  ["the Host", { Host: HOST }, "http://streams.test:4437"],
  ["a Host without a port", { Host: "Streams.test" }, "http://Streams.test"],
  ["a Host that is an IPv4 address", { Host: "127.0.0.1:80" }, "http://127.0.0.1:80"],
  ["a Host that is an IPv6 address", { Host: "[::1]:4437" }, "http://[::1]:4437"],
  ["what a proxy was asked for", { Host: HOST, "X-Forwarded-Proto": "https", "X-Forwarded-Host": "example.com" }, "https://example.com"],
  ["the first of several proxies", { Host: HOST, "X-Forwarded-Proto": "HTTPS , http", "X-Forwarded-Host": " example.com:8443, inner" }, "https://example.com:8443"],
  ["a proxy that tells the scheme only", { Host: HOST, "X-Forwarded-Proto": "https" }, "https://streams.test:4437"],
  ["a scheme that serves no streams", { Host: HOST, "X-Forwarded-Proto": "javascript" }, "http://streams.test:4437"],
  ["an empty scheme", { Host: HOST, "X-Forwarded-Proto": "" }, "http://streams.test:4437"],
  ...["evil.test/path", "user@evil.test", "evil.test:port", "evil.test:123456", "a b", "", ",evil.test", "[::1", "evil.test?", "evil.test#", "h\u00f6st", "x".repeat(256)].map(
    (host) => [`a forwarded host that is none: ${JSON.stringify(host.slice(0, 20))}`, { Host: HOST, "X-Forwarded-Host": host }, "http://streams.test:4437"] as const,
  ),
  ["the longest forwarded host", { Host: HOST, "X-Forwarded-Host": "x".repeat(255) }, `http://${"x".repeat(255)}`],
];

describe("the URL of a stream begins with", () => {
  for (const [title, headers, origin] of CASES) {
    test(title, () => {
      const exchange = bareExchange({ url: "/v1/stream/a", rawHeaders: Object.entries(headers).flat() });
      assert.equal(locationOf(exchange), `${origin}/v1/stream/a`);
    });
  }

  test("https when the connection is encrypted", () => {
    const exchange = bareExchange({ url: "/a", rawHeaders: ["Host", HOST], socket: new TLSSocket(new Socket()) });
    assert.equal(locationOf(exchange), "https://streams.test:4437/a");
  });

  for (const host of ["", "evil.test/path"]) {
    test(`where the connection ends, when the Host is ${JSON.stringify(host)}`, async (t) => {
      const server = await startExchanges(t);
      const { exchange } = await server.receive("PUT", "a", { headers: { Host: host } });
      assert.equal(locationOf(exchange), `http://127.0.0.1:${server.port}/v1/stream/a`);
    });
  }

  const hasIpv6 = Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === "::1"));
  test("where the connection ends, in brackets over IPv6", { skip: !hasIpv6 && "this machine has no IPv6" }, async (t) => {
    const server = await startExchanges(t, { host: "::1" });
    const socket = connect(server.port, "::1");
    socket.write(requestBytes("PUT", "a", { headers: { Host: "" } }));
    const exchange = await server.next();
    assert.equal(locationOf(exchange), `http://[::1]:${server.port}/v1/stream/a`);
    socket.destroy();
  });
});

describe("the URL of a stream ends with the path as it was sent", () => {
  for (const [url, path] of [["/v1/stream/a%2Fb%20c?offset=-1", "/v1/stream/a%2Fb%20c"], ["http://other.test/v1/stream/a", "/v1/stream/a"]] as const) {
    test(url, () => assert.equal(locationOf(bareExchange({ url, rawHeaders: ["Host", HOST] })), `http://${HOST}${path}`));
  }
});
