import assert from "node:assert/strict";
import type { Answer } from "../helpers/raw-connection.js";
import type { FuzzRequest } from "./requests.js";
import type { Expected, Model, ModelStream } from "./stream-model.js";

/** Fails unless `answer` is what the model says of `request`; what the server gives out for the first time is kept in the model. */
export function judge(model: Model, request: FuzzRequest, answer: Answer): void {
  // Before the model does what the request asks for, which may be to delete the stream.
  const etagPlace = request.etagKey?.(model) ?? null;
  const expected = request.expect(model);
  assertCommon(answer, request);
  if (expected === null) return;
  assertStatus(expected, answer, request);
  assertContent(expected, answer, request);
  assertHeaders(expected, answer);
  const stream = request.name === undefined ? undefined : model.get(request.name);
  if (stream !== undefined && expected.position !== undefined)
    assertToken(stream, expected.position, answer.headers["stream-next-offset"] ?? "");
  if (etagPlace !== null && expected.status === 200) assertEtag(etagPlace.stream, etagPlace.key, answer.headers["etag"] ?? "");
}

/** What holds of every answer. */
function assertCommon({ status, headers, text }: Answer, request: FuzzRequest): void {
  assert.ok(status < 500 || status === 501, `${status} is the server's fault`);
  assert.equal(headers["x-content-type-options"], "nosniff");
  assert.equal(headers["content-security-policy"], "sandbox; default-src 'none'");
  if (status >= 400 && request.method !== "HEAD") assert.equal(JSON.parse(text).status, status);
  const closes = headers["connection"] === "close";
  if (request.closes === "always") assert.ok(closes, "the connection is to end");
  // A refusal that did not wait for the body ends it.
  if (closes) assert.ok(request.closes === "always" || (request.closes === "perhaps" && status >= 400), "the connection is to go on");
}

function assertStatus({ status, code }: Expected, { status: got, text }: Answer, { method }: FuzzRequest): void {
  if (status === "refused") return assert.ok(got >= 400, `${got} is no refusal`);
  assert.equal(got, status, text.slice(0, 200));
  if (code !== undefined && method !== "HEAD") assert.equal(JSON.parse(text).code, code);
}

function assertContent({ status, body, values }: Expected, answer: Answer, { method }: FuzzRequest): void {
  if (method === "HEAD" || status === "refused" || status >= 300) return;
  if (body !== undefined) assert.equal(answer.body.toString("latin1"), body.toString("latin1"), "the body");
  if (values !== undefined) assert.deepEqual(JSON.parse(answer.text), values, "the body");
}

function assertHeaders({ status, position, closed, contentType, producer, gap }: Expected, { headers }: Answer): void {
  assert.equal(headers["stream-next-offset"] !== undefined, position !== undefined, "Stream-Next-Offset");
  if (closed !== undefined) assert.equal(headers["stream-closed"], closed ? "true" : undefined, "Stream-Closed");
  if (contentType !== undefined && status !== 304) assert.equal(headers["content-type"], contentType);
  if (producer !== undefined) assert.equal(headers["producer-epoch"], String(producer.epoch));
  if (producer !== undefined && producer.seq !== null) assert.equal(headers["producer-seq"], String(producer.seq));
  if (gap !== undefined)
    assert.deepEqual([headers["producer-expected-seq"], headers["producer-received-seq"]], [String(gap.expected), String(gap.received)]);
}

/** A position has one token for ever, and tokens are in the order of positions. */
function assertToken({ tokens }: ModelStream, position: number, token: string): void {
  assert.match(token, /^\d{16}_\d{16}$/);
  assert.equal(token, tokens.get(position) ?? token, `the token of ${position}`);
  for (const [other, its] of tokens)
    assert.equal(Math.sign(position - other), token < its ? -1 : token > its ? 1 : 0, `the tokens of ${other} and ${position}`);
  tokens.set(position, token);
}

/** The same read has the same ETag, and no other has it. */
function assertEtag({ etags }: ModelStream, key: string, etag: string): void {
  for (const [other, its] of etags) assert.equal(its === etag, other === key, `the ETags of ${other} and of ${key}`);
  etags.set(key, etag);
}
