import assert from "node:assert/strict";
import { test } from "node:test";
import {
  formatOf,
  DEFAULT_CONTENT_TYPE,
  isJsonContentType,
  isTextual,
  isValidContentType,
  mediaTypeOf,
  sameMediaType,
  sseEncodingOf,
} from "../../src/protocol/content-type.js";

test("the media type is lower case, trimmed and without parameters", () => {
  const table: [contentType: string, mediaType: string][] = [
    ["text/plain", "text/plain"],
    ["Text/PLAIN; charset=UTF-8", "text/plain"],
    [" application/json ;q=1", "application/json"],
    ['a/b;x="; c/d"', "a/b"],
  ];
  for (const [contentType, mediaType] of table) assert.equal(mediaTypeOf(contentType), mediaType);
});

test("content types compare by media type alone", () => {
  const table: [a: string, b: string, same: boolean][] = [
    ["text/plain", "text/plain", true],
    ["text/plain", "TEXT/plain;charset=utf-8", true],
    ["text/plain;charset=utf-8", "text/plain;charset=latin1", true],
    ["text/plain", "text/html", false],
    ["application/json", "application/json-seq", false],
  ];
  for (const [a, b, same] of table) assert.equal(sameMediaType(a, b), same, `${a} ${b}`);
});

test("only application/json is JSON, and the encoding of SSE follows the media type", () => {
  const table: [contentType: string, encoding: "json" | "text" | "base64"][] = [
    ["application/json", "json"],
    ["Application/JSON; charset=utf-8", "json"],
    ["application/problem+json", "base64"],
    ["application/ndjson", "base64"],
    ["application/jsonx", "base64"],
    ["text/plain", "text"],
    ["TEXT/html;charset=utf-8", "text"],
    ["text/json", "text"],
    ['text/plain; format=flowed; charset="UTF-8"; x=y', "text"],
    ["text/plain;charset=US-ASCII", "text"],
    ["text/plain; charset=iso-8859-1", "base64"],
    ['text/plain; x=y; Charset="utf-16le"', "base64"],
    ["text/plain; charset=utf-80", "base64"],
    ["application/json; charset=latin1", "json"],
    ["textual/plain", "base64"],
    [DEFAULT_CONTENT_TYPE, "base64"],
    ["image/png", "base64"],
  ];
  for (const [contentType, encoding] of table) {
    assert.equal(sseEncodingOf(contentType), encoding, contentType);
    assert.equal(isJsonContentType(contentType), encoding === "json", contentType);
  }
});

test("a valid content type is a media type with well-formed parameters", () => {
  const valid = [
    "text/plain",
    "application/vnd.api+json",
    "a/b",
    "x-!#$&^_.+'*`|~%/1",
    "text/plain;charset=utf-8",
    "text/plain ; charset=utf-8 ; a=b",
    "text/plain;",
    "text/plain; ;a=b; ",
    'text/plain; a="b c, d; e"',
    'text/plain; a="b\\"c"; d=e',
    'text/plain; a=""',
    'text/plain; a="caf\u00e9"',
    `text/${"x".repeat(251)}`,
  ];
  const invalid = [
    "",
    "/",
    "text",
    "text/",
    "/plain",
    " text/plain",
    "text /plain",
    "text/plain, text/html",
    "text/plain x",
    "text/pla\u00efn",
    "text/plain; charset",
    "text/plain; charset=",
    "text/plain; =utf-8",
    "text/plain; a = b",
    'text/plain; a="b',
    'text/plain; a="b\\',
    'text/plain; a="b"c',
    'text/plain; a="b\u007f"',
    'text/plain; a="b\\\u0001"',
    "text/plain;\ta=b",
    "text/plain\r\nX-Evil: 1",
    "text/plain\u0000",
    `text/${"x".repeat(252)}`,
  ];
  for (const text of valid) assert.equal(isValidContentType(text), true, JSON.stringify(text));
  for (const text of invalid) assert.equal(isValidContentType(text), false, JSON.stringify(text));
});

test("streams of one content type share one format, and a content type that no other stream has is right too", () => {
  assert.deepEqual(formatOf("Application/JSON; charset=utf-8"), { contentType: "Application/JSON; charset=utf-8", isJson: true });
  assert.equal(formatOf("text/plain"), formatOf(["text", "plain"].join("/")));
  for (let kind = 0; kind < 1000; kind += 1) assert.deepEqual(formatOf(`text/x-${kind}`), { contentType: `text/x-${kind}`, isJson: false });
  assert.notEqual(formatOf("text/x-999"), formatOf("text/x-999"), "not more are kept than a bound");
});

test("text, JSON and XML are textual", () => {
  const table: [contentType: string, textual: boolean][] = [
    ["text/plain; charset=utf-8", true],
    ["TEXT/html", true],
    ["application/json", true],
    ["Application/JSON;a=b", true],
    ["application/ld+json", true],
    ["image/svg+xml; a=b", true],
    ["application/x-ndjson", true],
    ["application/jsonl", true],
    ["application/xml", true],
    ["application/octet-stream", false],
    ["application/jsonp", false],
    ["application/json-seq", false],
    ["image/png; a=+json", false],
    ["application/gzip", false],
  ];
  for (const [contentType, textual] of table) assert.equal(isTextual(contentType), textual, contentType);
});
