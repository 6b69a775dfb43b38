import assert from "node:assert/strict";
import test from "node:test";
import { Printer } from "../../../../src/cli/client/reading/printer.js";
import { DataOutput } from "../../../../src/cli/client/session/data-output.js";

function printerOf({ isTTY = false, ...options }: { asJson: boolean; limit: number | null; isTTY?: boolean }): {
  printer: Printer;
  text: () => string;
} {
  let text = "";
  const write = (bytes: string | Buffer, written?: () => void): void => {
    text += String(bytes);
    written?.();
  };
  const out = new DataOutput({ isTTY, write }, new AbortController().signal);
  return { printer: new Printer({ out, ...options }), text: () => text };
}

test("only the last line of an answer has an offset", async () => {
  const { printer, text } = printerOf({ asJson: true, limit: null });
  const contentType = "application/json";
  assert.equal(await printer.print({ body: Buffer.from("[1,2]"), contentType, next: "a" }), "more");
  assert.equal(await printer.print({ body: Buffer.alloc(0), contentType: null, next: "a" }), "more");
  assert.equal(await printer.print({ body: Buffer.from("[3]"), contentType: null, next: "b" }), "more");
  assert.equal(text(), '{"offset":null,"data":1}\n{"offset":"a","data":2}\n{"offset":"b","data":3}\n');
});

test("strings of JSON can't act on a terminal; a pipe gets them as the server sent them", async () => {
  const message = '{"a" : "\u009b31m\u202eä"}';
  for (const [isTTY, line] of [
    [false, `${message}\n`],
    [true, '{"a" : "\\u009b31m\\u202eä"}\n'],
  ] as const) {
    const { printer, text } = printerOf({ asJson: false, limit: null, isTTY });
    await printer.print({ body: Buffer.from(`[${message}]`), contentType: "application/json", next: "a" });
    assert.equal(text(), line);
  }
});

test("text goes to a terminal as it is", async () => {
  const { printer, text } = printerOf({ asJson: false, limit: null, isTTY: true });
  await printer.print({ body: Buffer.from("\u001b[31mred\u009b0m"), contentType: "text/plain", next: "a" });
  assert.equal(text(), "\u001b[31mred\u009b0m");
});

test("a limit goes across answers, and cuts one where it ends", async () => {
  const { printer, text } = printerOf({ asJson: true, limit: 3 });
  const contentType = "application/json";
  assert.equal(await printer.print({ body: Buffer.from("[1,2]"), contentType, next: "a" }), "more");
  assert.equal(await printer.print({ body: Buffer.from("[3,4]"), contentType, next: "b" }), "enough");
  assert.match(text(), /\{"offset":null,"data":3\}\n$/);
});

test("an answer that is no JSON is not printed", async () => {
  const { printer, text } = printerOf({ asJson: false, limit: null });
  assert.equal(await printer.print({ body: Buffer.from("<html>"), contentType: "application/json", next: "a" }), "unreadable");
  assert.equal(text(), "");
});
