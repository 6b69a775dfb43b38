import assert from "node:assert/strict";
import { test } from "node:test";
import { codedEtag, etagMatches, formatEtag } from "../../src/protocol/etag.js";

const ETAG = '"7:0_0:0_5"';

test("an ETag names the stream, the range, and whether anything followed", () => {
  assert.equal(formatEtag("7", "0_0", "0_5", "before"), '"7:0_0:0_5:more"');
  assert.equal(formatEtag("7", "0_0", "0_5", "tail"), ETAG);
  assert.equal(formatEtag("7", "0_5", "0_5", "closed"), '"7:0_5:0_5:closed"');
});

test("the same range under a coding has an ETag of its own", () => {
  assert.equal(codedEtag(ETAG, "gzip"), '"7:0_0:0_5:gzip"');
  assert.equal(codedEtag(formatEtag("7", "0_5", "0_5", "closed"), "gzip"), '"7:0_5:0_5:closed:gzip"');
});

test("If-None-Match matches a member of its list, weakly", () => {
  const table: [ifNoneMatch: string, matches: boolean][] = [
    [ETAG, true],
    [`W/${ETAG}`, true],
    [`"x", ${ETAG}`, true],
    [`"x",${ETAG},"y"`, true],
    [`"x" , \tW/${ETAG} , "y"`, true],
    [`,, ${ETAG}`, true],
    [`"a,b", ${ETAG}`, true],
    [`garbage, ${ETAG}`, true],
    ["*", true],
    [" * ", true],
    ["", false],
    [" , ", false],
    ['"x"', false],
    ['"7:0_0:0_5:closed"', false],
    ['"7:0_0:0_55"', false],
    ["7:0_0:0_5", false],
    [`w/${ETAG}`, false],
    [`x${ETAG}`, false],
    ['"7:0_0:0_5', false],
    ['"*"', false],
    ['"x", *', false],
    [`"x"${ETAG}`, false],
    [`"x,${ETAG}`, false],
  ];
  for (const [ifNoneMatch, matches] of table) assert.equal(etagMatches(ifNoneMatch, ETAG), matches, ifNoneMatch);
});
