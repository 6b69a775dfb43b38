import assert from "node:assert/strict";
import { test } from "node:test";
import { nameText, parseRoute, streamRoute } from "../../src/page/route.js";

test("a fragment says where the page is, whatever a name holds", () => {
  assert.deepEqual(parseRoute(""), { place: "home", name: "", query: {} });
  assert.deepEqual(parseRoute("#/server"), { place: "server", name: "", query: {} });
  assert.deepEqual(parseRoute("#/s/%ff"), { place: "home", name: "", query: {} });
  for (const name of ["a", "a/b", "a b", "ä/ö?x=1#y", "100%", "a&b=c", "__ds"]) {
    const query = { at: "0_1", filter: "x & y?" };
    assert.deepEqual(parseRoute(streamRoute(name, query)), { place: "stream", name, query });
    assert.equal(streamRoute(name, { last: "" }), streamRoute(name));
  }
});

test("no name looks like another", () => {
  for (const [name, text] of [
    ["a/b ü 名 👩‍👧", "a/b ü 名 👩‍👧"],
    ["\u202eevil\u202c", "\\u202eevil\\u202c"],
    ["a\u200bb\u061c", "a\\u200bb\\u061c"],
  ] as const)
    assert.equal(nameText(name), text);
});
