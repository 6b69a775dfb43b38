import assert from "node:assert/strict";
import { test } from "node:test";
import { appendTo, readOf } from "./rig.js";
import { messageOf, requestsOf, type Traffic } from "./traffic.js";

/** The first `count` requests of one connection. */
function firstOf(traffic: Traffic, count: number, index = 0, connections = 1): string[] {
  const next = requestsOf(traffic, index, connections);
  return Array.from({ length: count }, () => next().toString("latin1"));
}

function lineOf(request: string): string {
  return request.split("\r\n")[0] ?? "";
}

test("fixed requests are shared out among the connections, each with its own in turn", () => {
  const traffic: Traffic = { kind: "fixed", requests: [0, 1, 2, 3].map((index) => readOf(`/${index}`)) };
  assert.deepEqual(firstOf(traffic, 3, 1, 2).map(lineOf), ["GET /3 HTTP/1.1", "GET /1 HTTP/1.1", "GET /3 HTTP/1.1"]);
});

test("fewer requests than connections are sent by all", () => {
  const traffic: Traffic = { kind: "fixed", requests: [appendTo("/one", 3)] };
  const [request = ""] = firstOf(traffic, 1, 5, 8);
  assert.equal(request, "POST /one HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nxxx");
});

test("streams are shared out among the connections, all of them and each once", () => {
  const traffic: Traffic = { kind: "spread", prefix: "/s", streams: 5, bytes: 1 };
  assert.deepEqual(
    firstOf(traffic, 4, 0, 2).map(lineOf),
    [0, 2, 4, 0].map((stream) => `POST /s${stream} HTTP/1.1`),
  );
  assert.deepEqual(
    firstOf(traffic, 3, 1, 2).map(lineOf),
    [1, 3, 1].map((stream) => `POST /s${stream} HTTP/1.1`),
  );
  assert.deepEqual(firstOf(traffic, 2, 7, 64).map(lineOf), ["POST /s2 HTTP/1.1", "POST /s2 HTTP/1.1"]);
});

test("a producer makes its stream, and then numbers its messages", () => {
  const requests = firstOf({ kind: "producers", prefix: "/p", bytes: 32 }, 3, 7);
  assert.deepEqual(requests.map(lineOf), ["PUT /p7 HTTP/1.1", "POST /p7 HTTP/1.1", "POST /p7 HTTP/1.1"]);
  assert.deepEqual(
    requests.map((request) => /Producer-Seq: (\d+)/.exec(request)?.[1]),
    [undefined, "0", "1"],
  );
  assert.equal(messageOf(32).length, 32);
});

test("a life is a stream made, appended to, closed, and the next one", () => {
  const requests = firstOf({ kind: "lives", prefix: "/l", appends: 2, bytes: 1 }, 5, 3);
  assert.deepEqual(requests.map(lineOf), [
    "PUT /l3-0 HTTP/1.1",
    "POST /l3-0 HTTP/1.1",
    "POST /l3-0 HTTP/1.1",
    "POST /l3-0 HTTP/1.1",
    "PUT /l3-1 HTTP/1.1",
  ]);
  assert.deepEqual(
    requests.map((request) => request.includes("Stream-Closed: true")),
    [false, false, false, true, false],
  );
});
