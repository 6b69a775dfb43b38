import assert from "node:assert/strict";
import { test } from "node:test";
import { commonCursor, CURSOR_EPOCH_MS, CURSOR_INTERVAL_MS, isGreaterCursor, nextCursor } from "../../src/protocol/cursor.js";

const NOW_MS = CURSOR_EPOCH_MS + 1000 * CURSOR_INTERVAL_MS;
const least = (): number => 0;
const most = (): number => 1 - 2 ** -53;

test("cursors count from 2024-10-09T00:00:00Z", () => {
  assert.equal(new Date(CURSOR_EPOCH_MS).toISOString(), "2024-10-09T00:00:00.000Z");
});

test("the cursor for a client without one counts whole intervals since the epoch", () => {
  const table: [sinceEpochMs: number, cursor: string][] = [
    [-1, "0"],
    [0, "0"],
    [19_999, "0"],
    [20_000, "1"],
    [39_999, "1"],
    [20_000_000, "1000"],
  ];
  for (const [sinceEpochMs, cursor] of table) assert.equal(nextCursor(CURSOR_EPOCH_MS + sinceEpochMs, null, least), cursor);
});

test("a smaller client's cursor gets the current interval", () => {
  for (const client of ["0", "1", "999", "0999"]) assert.equal(nextCursor(NOW_MS, client, most), "1000");
});

test("a client's cursor that is not smaller moves ahead by 1 to 180 intervals", () => {
  const table: [client: string, withLeast: string, withMost: string][] = [
    ["1000", "1001", "1180"],
    ["5000", "5001", "5180"],
    ["9007199254740811", "9007199254740812", "9007199254740991"],
    ["9007199254740812", "9007199254740813", "9007199254740992"],
    ["9007199254740991", "9007199254740992", "9007199254741171"],
    ["9007199254740993", "9007199254740994", "9007199254741173"],
    ["9".repeat(40), `1${"0".repeat(40)}`, `1${"0".repeat(37)}179`],
  ];
  for (const [client, withLeast, withMost] of table) {
    assert.equal(nextCursor(NOW_MS, client, least), withLeast, client);
    assert.equal(nextCursor(NOW_MS, client, most), withMost, client);
  }
});

test("a malformed client's cursor counts as absent", () => {
  for (const client of ["", "-1", "+5000", "5e9", "5000.5", "abc", " 5000", "0x2000", "Infinity", "9".repeat(41), "٥٠٠٠٠"]) {
    assert.equal(nextCursor(NOW_MS, client, least), "1000", client);
  }
});

test("answers that are given together have one cursor, which is ahead of all their clients'", () => {
  const table: [clients: (string | null)[], cursor: string][] = [
    [[], "1000"],
    [[null], "1000"],
    [[null, "3", "999"], "1000"],
    [["1000", null], "1001"],
    [["1000", "5000", "2000"], "5001"],
    [["0005000", "999999"], "1000000"],
    [["x", "5000", "9".repeat(40), "9".repeat(41), "-1"], "5001"],
  ];
  for (const [clients, cursor] of table) assert.equal(commonCursor(NOW_MS, clients, least), cursor, clients.join());
});

test("cursors compare as numbers, however long", () => {
  const table: [a: string, b: string, isGreater: boolean][] = [
    ["2", "1", true],
    ["1", "1", false],
    ["10", "9", true],
    ["9", "10", false],
    ["9".repeat(40), "9".repeat(39), true],
  ];
  for (const [a, b, isGreater] of table) assert.equal(isGreaterCursor(a, b), isGreater, `${a} ${b}`);
});
