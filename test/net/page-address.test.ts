import assert from "node:assert/strict";
import test from "node:test";
import { pageAddress } from "../../src/net/page-address.js";

test("the page has an address for those on this machine, or as the option says", () => {
  for (const [url, ui, page] of [
    ["http://127.0.0.1:4437/v1/stream/", "loopback", "http://127.0.0.1:4437/v1/stream/__ds/ui/"],
    ["http://[::1]:4437/", "loopback", "http://[::1]:4437/__ds/ui/"],
    ["https://localhost/", "loopback", "https://localhost/__ds/ui/"],
    ["http://192.0.2.1:4437/v1/stream/", "loopback", null],
    ["http://192.0.2.1:4437/v1/stream/", true, "http://192.0.2.1:4437/v1/stream/__ds/ui/"],
    ["http://127.0.0.1:4437/v1/stream/", false, null],
    ["http://[fe80::1%25eth0]:4437/v1/stream/", true, null],
  ] as const)
    assert.equal(pageAddress(url, ui), page, `${url} ${ui}`);
});
