import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EMPTY_BODY } from "../../../src/http/answer/respond.js";
import { bareExchange } from "../../helpers/bare-exchange.js";
import { httpParts } from "../../helpers/http-parts.js";
import { nodeAnswer, socketOf } from "../../helpers/node-answer.js";

const FAULT = new Error("the host's");

describe("the head of an answer in somebody else's server", () => {
  test("takes the place of what the server has set, and adds to what the answer depends on", () => {
    const exchange = bareExchange();
    const res = nodeAnswer(exchange);
    res.setHeader("cache-control", "public");
    res.setHeader("Set-Cookie", "a=b");
    res.setHeader("Vary", "Cookie");
    const headers = ["Cache-Control", "no-store", "Vary", "Origin", "Vary", "Accept"];
    httpParts().responder.send(exchange, 201, headers, EMPTY_BODY);
    assert.equal(res.statusCode, 201);
    assert.deepEqual(
      ["Cache-Control", "Set-Cookie", "Vary", "Content-Length"].map((name) => res.getHeader(name)),
      ["no-store", "a=b", ["Cookie", "Origin", "Accept"], "0"],
    );
  });

  test("leaves no header to the answer that takes its place", () => {
    const exchange = bareExchange();
    const res = nodeAnswer(exchange);
    const writeHead = res.writeHead.bind(res);
    res.writeHead = () => {
      res.writeHead = writeHead;
      throw FAULT;
    };
    httpParts().responder.send(exchange, 201, ["Location", "/a", "ETag", "b"], EMPTY_BODY);
    assert.equal(res.statusCode, 500);
    assert.deepEqual(
      ["Location", "ETag", "Content-Type"].map((name) => res.getHeader(name)),
      [undefined, undefined, "application/problem+json"],
    );
  });

  test("that fails when it is written ends the connection, and the log has the fault", () => {
    const { responder, lines } = httpParts();
    const exchange = bareExchange();
    const res = nodeAnswer(exchange);
    const writeHead = res.writeHead.bind(res);
    res.writeHead = (status: number) => {
      writeHead(status);
      throw FAULT;
    };
    responder.send(exchange, 201, ["Location", "/a"], EMPTY_BODY);
    assert.equal(socketOf(exchange).destroyed, true);
    assert.match(JSON.stringify(lines), /the host's/);
  });
});
