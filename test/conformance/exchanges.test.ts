import { expect, test } from "vitest";
import { exchangesOf } from "./exchanges.js";

const GET = "GET /a?offset=-1 HTTP/1.1\r\nHost: b\r\n\r\n";

test("answers are told apart, each with its request", () => {
  const sent = `PUT /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nGET /${GET}HEAD /a HTTP/1.1\r\n\r\nPOST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nDELETE /a HTTP/1.1\r\n\r\n`;
  const received =
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n" +
    "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nHTTP/1.1 204 No Content\r\nA: b: c\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
  const told = exchangesOf(sent, received).map(({ method, target, status, body }) => `${method} ${target} ${status} ${body}`);
  expect(told).toEqual(["PUT /a 201 ", "GET /a?offset=-1 200 abc", "HEAD /a 200 ", "POST /a 204 ", "DELETE /a 204 "]);
  expect(exchangesOf(sent, received)[3]?.headers).toEqual(["A", "b: c"]);
});

test("an answer that ends with its connection, and one that was cut off, are there as far as they came", () => {
  const events = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: data\n";
  expect(exchangesOf(GET, events)).toMatchObject([{ method: "GET", status: 200, body: "event: data\n" }]);
  expect(exchangesOf(GET, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab")).toMatchObject([{ status: 200, body: "ab" }]);
  expect(exchangesOf(GET, "HTTP/1.1 200 OK\r\nContent-")).toEqual([]);
});

test("the answer to what is no HTTP is there, and a body that is too long is not kept", () => {
  const refusal = "HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\n{}";
  expect(exchangesOf("\0\r\n\r\n", refusal)).toMatchObject([{ method: null, target: "", status: 400, body: "{}" }]);
  const body = "x".repeat(100_000);
  expect(exchangesOf(GET, `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`)).toMatchObject([{ body: null }]);
});
