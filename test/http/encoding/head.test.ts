import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ClosingLines, CommonHeaders, lengthHeader, linesOf, statusLine } from "../../../src/http/encoding/head.js";

describe("the text of an answer's head", () => {
  test("begins with the status in words", () => {
    assert.equal(statusLine(204), "HTTP/1.1 204 No Content\r\n");
    assert.equal(statusLine(599), "HTTP/1.1 599 unknown\r\n");
  });

  test("has a line for each header", () => {
    assert.equal(linesOf([]), "");
    assert.equal(linesOf(["ETag", '"1"', "Location", "/a"]), 'ETag: "1"\r\nLocation: /a\r\n');
    assert.equal(linesOf(lengthHeader(0)), "Content-Length: 0\r\n");
    assert.equal(linesOf(lengthHeader(null)), "");
  });

  test("takes nothing that could end a line or begin another", () => {
    assert.throws(() => new CommonHeaders(["A b", "c"]), /Header name/);
    assert.throws(() => new CommonHeaders(["A", "b\r\nC: d"]), /header content/);
    assert.throws(() => linesOf(["Location", "/a\r\nSet-Cookie: b"]), /header content/);
    assert.throws(() => linesOf(["Location\r\nSet-Cookie", "b"]), /Header name/);
  });

  test("opens with what all answers have", () => {
    const common = new CommonHeaders(["Vary", "Origin", "X-A", "\xe9"]);
    for (let round = 0; round < 2; round += 1) {
      assert.equal(common.openingOf(200), "HTTP/1.1 200 OK\r\nVary: Origin\r\nX-A: \xe9\r\n");
      assert.equal(common.openingOf(404), "HTTP/1.1 404 Not Found\r\nVary: Origin\r\nX-A: \xe9\r\n");
    }
  });

  test("has one Vary, with what all answers depend on and what this one does", () => {
    const common = new CommonHeaders(["X-A", "a", "Vary", "Origin", "X-B", "b"]);
    assert.equal(common.unvaried.text, "X-A: a\r\nX-B: b\r\n");
    assert.deepEqual(common.joinVary(["ETag", "1", "Vary", "Accept"]), ["ETag", "1", "Vary", "Origin, Accept"]);
    assert.deepEqual(common.joinVary(["Vary", "*"]), ["Vary", "*"]);
    for (const [all, own] of [
      [common, ["ETag", "1"]],
      [common.unvaried, ["Vary", "Accept"]],
    ] as const)
      assert.equal(all.joinVary(own), own);
    assert.equal(common.unvaried.unvaried, common.unvaried);
  });

  test("closes with the date, to the second", () => {
    const lines = new ClosingLines();
    const at = (date: string): string => `Date: ${date}\r\nConnection: keep-alive\r\nKeep-Alive: timeout=75\r\n\r\n`;
    assert.equal(lines.at(0), at("Thu, 01 Jan 1970 00:00:00 GMT"));
    assert.equal(lines.at(999), at("Thu, 01 Jan 1970 00:00:00 GMT"));
    assert.equal(lines.at(1000), at("Thu, 01 Jan 1970 00:00:01 GMT"));
    // A clock may go back.
    assert.equal(lines.at(Date.UTC(2026, 1, 3, 4, 5, 6)), at("Tue, 03 Feb 2026 04:05:06 GMT"));
    assert.equal(lines.at(500), at("Thu, 01 Jan 1970 00:00:00 GMT"));
  });
});
