import assert from "node:assert/strict";
import { test } from "node:test";
import { headerBytesOf } from "../../../../src/storage/nats/client/header-bytes.js";
import type { NatsMessage } from "../../../../src/storage/nats/client/nats-client.js";

test("headers are seen as bytes where the client has them so, and are unknown where it does not", () => {
  const message: NatsMessage = { subject: "", data: Buffer.alloc(0) };
  const bytes = Buffer.from("-headersdata").subarray(1);
  const table: readonly (readonly [object, string | null])[] = [
    [{ _rdata: bytes, _msg: { hdr: 7 } }, "headers"],
    [{ _rdata: new Uint8Array(bytes), _msg: { hdr: 7 } }, "headers"],
    [{ _rdata: bytes, _msg: { hdr: -1 } }, ""],
    [{ _rdata: bytes, _msg: { hdr: "7" } }, null],
    [{ _rdata: bytes }, null],
    [{ _rdata: "headers", _msg: { hdr: 7 } }, null],
    [{ _msg: { hdr: 7 } }, null],
    [{}, null],
  ];
  for (const [more, seen] of table) assert.equal(headerBytesOf({ ...message, ...more })?.toString() ?? null, seen, JSON.stringify(more));
});
