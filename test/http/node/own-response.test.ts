import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { OwnResponse } from "../../../src/http/node/own-response.js";
import { connectionTo } from "../../helpers/raw-connection.js";

test("the head of Node's own response can be released once it is sent, and only then", async (context) => {
  const server = createServer({ ServerResponse: OwnResponse }, (_, response) => {
    response.writeHead(200, ["Content-Length", "11", "X-A", "b"]);
    response.forgetHead();
    response.write("hello ");
    response.forgetHead();
    assert.equal(response.headersSent, true);
    assert.throws(() => response.writeHead(200), /ERR_HTTP_HEADERS_SENT|after they are sent/);
    response.end("there");
  });
  const connection = await connectionTo(context, server);
  for (let round = 0; round < 2; round += 1) {
    connection.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    const { status, headers, text } = await connection.answer();
    assert.deepEqual([status, headers["x-a"], text], [200, "b", "hello there"]);
  }
});
