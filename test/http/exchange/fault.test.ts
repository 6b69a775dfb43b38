import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { logFault } from "../../../src/http/exchange/fault.js";
import { bareExchange } from "../../helpers/bare-exchange.js";
import { keptLog } from "../../helpers/engine.js";

describe("a fault in a request's work is logged", () => {
  test("with where it came from, and what was asked", () => {
    const { log, lines } = keptLog();
    const exchange = bareExchange({ url: "/a?b" });
    Object.assign(exchange.req, { method: "GET" });
    logFault(log, exchange, new Error("oh"));
    const [line] = lines;
    assert.deepEqual(
      [line?.level, line?.message, line?.fields["method"], line?.fields["path"]],
      ["error", "a request failed", "GET", "/a"],
    );
    assert.match(String(line?.fields["fault"]), /^Error: oh\n +at /);
  });

  test("also where it is no error", () => {
    const { log, lines } = keptLog();
    logFault(log, bareExchange(), "oh");
    assert.equal(lines[0]?.fields["fault"], "oh");
  });
});
