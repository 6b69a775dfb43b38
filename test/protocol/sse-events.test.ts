import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeControlEvent, encodeDataEvent, encodeRetry, retryDelayMs, SSE_COMMENT } from "../../src/protocol/sse-events.js";
import { parseEventStream } from "./event-stream-parser.js";
import { seededRandom, seedOfRun } from "./seeded-random.js";

const OFFSET = "0000000000000000_0000000000000042";
const CONTROL = encodeControlEvent({ nextOffset: OFFSET, cursor: "123", upToDate: true, closed: false });

test("an SSE event of text has one data line per payload line, whatever ends it", () => {
  const table: [payload: string, lines: string][] = [
    ["a", "data:a\n"],
    ["a\nb", "data:a\ndata:b\n"],
    ["a\rb", "data:a\ndata:b\n"],
    ["a\r\nb", "data:a\ndata:b\n"],
    ["a\n\rb", "data:a\ndata:\ndata:b\n"],
    ["a\n", "data:a\ndata:\n"],
    ["\r\n\r\n", "data:\ndata:\ndata:\n"],
    [" a\n b\r  c", "data:  a\ndata:  b\ndata:   c\n"],
    [" ", "data:  \n"],
    ["a\tb: c", "data:a\tb: c\n"],
    ["data: x\n\nevent: control\ndata: {}\n\n", "data:data: x\ndata:\ndata:event: control\ndata:data: {}\ndata:\ndata:\n"],
    ["", "data:\n"],
  ];
  for (const [payload, lines] of table) {
    assert.equal(encodeDataEvent(Buffer.from(payload), "text").toString(), `event: data\n${lines}\n`, JSON.stringify(payload));
  }
});

test("an SSE event of JSON messages is one array with a message on each line", () => {
  const table: [stored: string, frame: string][] = [
    ['{"k":1},\n', 'event: data\ndata:[\ndata:{"k":1}\ndata:]\n\n'],
    ['{"k":1},\n"é",\nnull,\n', 'event: data\ndata:[\ndata:{"k":1},\ndata:"é",\ndata:null\ndata:]\n\n'],
    ["", "event: data\ndata:[\ndata:]\n\n"],
  ];
  for (const [stored, frame] of table) assert.equal(encodeDataEvent(Buffer.from(stored), "json").toString(), frame);
});

test("an SSE event of binary data is one line of padded base64", () => {
  const bytes = Buffer.from([0, 0x0a, 0x0d, 0xff, 0xfe]);
  assert.equal(encodeDataEvent(bytes, "base64").toString(), "event: data\ndata:AAoN//4=\n\n");
  for (const length of [0, 10_000, 48 * 1024, 48 * 1024 + 1, 200_000]) {
    const large = Buffer.alloc(length, 7);
    assert.equal(encodeDataEvent(large, "base64").toString(), `event: data\ndata:${large.toString("base64")}\n\n`);
  }
});

test("an SSE control event is one flat object on the line after its name", () => {
  const table: [cursor: string | null, upToDate: boolean, closed: boolean, fields: string][] = [
    ["123", true, false, ',"streamCursor":"123","upToDate":true'],
    ["123", false, false, ',"streamCursor":"123"'],
    [null, false, false, ""],
    [null, true, true, ',"upToDate":true,"streamClosed":true'],
    ["123", false, true, ',"upToDate":true,"streamClosed":true'],
  ];
  for (const [cursor, upToDate, closed, fields] of table) {
    const text = encodeControlEvent({ nextOffset: OFFSET, cursor, upToDate, closed }).toString();
    assert.equal(text, `event: control\ndata:{"streamNextOffset":"${OFFSET}"${fields}}\nid: ${OFFSET}\n\n`);
    assert.match(text, /event: control\s*\ndata:({[^}]+})/);
    const [event] = parseEventStream(text);
    assert.equal(event?.lastEventId, OFFSET);
    assert.equal(JSON.parse(event?.data ?? "").streamNextOffset, OFFSET);
  }
});

test("any payload comes back whole from SSE events and forges none", () => {
  const seed = seedOfRun();
  const random = seededRandom(seed);
  const pieces = [
    "\r",
    "\n",
    "\r\n",
    " ",
    "  ",
    "\t",
    ":",
    "event: control",
    "data: {}",
    "data:",
    "id: 9",
    "x",
    // Longer lines are copied in another way.
    "long".repeat(100),
    "é🌊",
    "\0",
    "\ufeff",
    "\u2028",
    "\u0085",
  ];
  for (let round = 0; round < 2000; round++) {
    const count = Math.floor(random() * 12);
    const payload = Buffer.from(Array.from({ length: count }, () => pieces[Math.floor(random() * pieces.length)]).join(""));
    if (random() < 0.2 && payload.length > 0) payload[Math.floor(random() * payload.length)] = Math.floor(random() * 256);
    const binary = payload.toString("latin1");
    const wire = Buffer.concat([CONTROL, encodeDataEvent(payload, "text"), encodeDataEvent(payload, "base64"), CONTROL]);
    const events = parseEventStream(wire.toString("latin1"));
    const message = `seed ${seed}, round ${round}, payload ${JSON.stringify(binary)}`;
    assert.deepEqual(
      events.map((event) => event.type),
      ["control", "data", "data", "control"],
      message,
    );
    assert.equal(events[1]?.data, binary.replace(/\r\n?/g, "\n"), message);
    assert.equal(events[2]?.data, payload.toString("base64"), message);
    assert.ok(
      events.every((event) => event.lastEventId === OFFSET),
      message,
    );
  }
});

test("any JSON messages come back from SSE events as their array", () => {
  const seed = seedOfRun();
  const random = seededRandom(seed);
  for (let round = 0; round < 500; round++) {
    const messages = Array.from({ length: 1 + Math.floor(random() * 5) }, () => ({
      "event: control": "\r\n\n\r",
      text: String.fromCodePoint(Math.floor(random() * 0xd800)),
      n: random(),
    }));
    const stored = Buffer.from(messages.map((message) => `${JSON.stringify(message)},\n`).join(""));
    const events = parseEventStream(encodeDataEvent(stored, "json").toString("latin1"));
    const data = Buffer.from(events[0]?.data ?? "", "latin1").toString();
    assert.deepEqual([events.length, JSON.parse(data)], [1, messages], `seed ${seed}, round ${round}`);
  }
});

test("an SSE comment and the time to wait before the next connection make no event", () => {
  assert.equal(encodeRetry(250).toString(), "retry: 250\n");
  const events = parseEventStream(Buffer.concat([encodeRetry(100), CONTROL, SSE_COMMENT, SSE_COMMENT, CONTROL]).toString("latin1"));
  assert.deepEqual(events, parseEventStream(Buffer.concat([CONTROL, CONTROL]).toString("latin1")));
});

test("few SSE readers reconnect at once, many at times of their own within a second", () => {
  const table: [readers: number, withLeast: number, withMost: number][] = [
    [0, 100, 100],
    [1, 100, 100],
    [16, 100, 100],
    [66, 100, 150],
    [916, 100, 1000],
    [100_000, 100, 1000],
  ];
  for (const [readers, withLeast, withMost] of table) {
    assert.equal(
      retryDelayMs(readers, () => 0),
      withLeast,
      String(readers),
    );
    assert.equal(
      retryDelayMs(readers, () => 1 - 2 ** -53),
      withMost,
      String(readers),
    );
  }
});
