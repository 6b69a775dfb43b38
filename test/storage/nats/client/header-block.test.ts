import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { HeaderBlock, headerEncoder, headersOf } from "../../../../src/storage/nats/client/header-block.js";
import type { NatsHeaders } from "../../../../src/storage/nats/client/nats-client.js";

const BLOCK = 'NATS/1.0\r\nSd: {"m":"a: ü"}\r\nEmpty:\r\nTwice: 1\r\nTwice: 2\r\n\r\n';

describe("a block of headers", () => {
  const table: readonly (readonly [string, string, string])[] = [
    ["is without the space before it", "Sd", '{"m":"a: ü"}'],
    ["may be empty", "Empty", ""],
    ["is the first of several", "Twice", "1"],
    ["is empty where there is none", "None", ""],
    ["is not looked for within a value", "a", ""],
    ["is not looked for by the end of its name", "d", ""],
    ["is not the first line", "NATS/1.0", ""],
    ["has its name in one way", "SD", ""],
  ];
  for (const [name, asked, value] of table) test(`has a value that ${name}`, () => assert.equal(new HeaderBlock(BLOCK).get(asked), value));

  test("may end without a line break", () => {
    assert.equal(new HeaderBlock("NATS/1.0\r\nSd: x").get("Sd"), "x");
    assert.equal(new HeaderBlock("").get("Sd"), "");
  });
});

describe("the headers of a message", () => {
  const headers: NatsHeaders = { code: 0, description: "", get: () => "by the client", append: () => {} };

  test("are read from its bytes, wherever those stand", () => {
    const bytes = Buffer.from(`before${BLOCK}data`).subarray("before".length);
    const message = { subject: "", data: Buffer.from("data"), headers, _rdata: bytes, _msg: { hdr: Buffer.byteLength(BLOCK) } };
    assert.equal(headersOf(message)?.get("Sd"), '{"m":"a: ü"}');
    assert.equal(headersOf(message)?.get("data"), "");
  });

  test("are none where the client says so", () => {
    const message = { subject: "", data: Buffer.alloc(0), headers, _rdata: Buffer.from("x"), _msg: { hdr: -1 } };
    assert.equal(headersOf(message), null);
    assert.equal(headersOf({ subject: "", data: Buffer.alloc(0) }), null);
  });

  test("are the client's where it does not show their bytes", () => {
    assert.equal(headersOf({ subject: "", data: Buffer.alloc(0), headers })?.get("Sd"), "by the client");
  });
});

describe("headers to be sent", () => {
  const fields = [
    ["Sd", '{"m":"ü"}'],
    ["N", "4"],
  ] as const;

  test("are one piece where the client encodes its own", () => {
    const client = {
      headers: (): NatsHeaders => ({ code: 0, description: "", get: () => "", append: () => {}, encode: () => Buffer.alloc(0) }),
    };
    assert.equal(headerEncoder(client)(fields).encode?.().toString(), 'NATS/1.0\r\nSd: {"m":"ü"}\r\nN: 4\r\n\r\n');
  });

  test("are the client's where it does not say how it encodes them", () => {
    const appended: unknown[] = [];
    const client = {
      headers: (): NatsHeaders => ({ code: 0, description: "", get: () => "", append: (...field) => void appended.push(field) }),
    };
    headerEncoder(client)(fields);
    assert.deepEqual(appended, fields);
  });

  test("have no line break in a value", () => {
    const client = {
      headers: (): NatsHeaders => ({ code: 0, description: "", get: () => "", append: () => {}, encode: () => Buffer.alloc(0) }),
    };
    for (const value of ["a\nb", "a\rb"]) assert.throws(() => headerEncoder(client)([["Sd", value]]).encode?.(), /Sd has a line break/);
  });
});
