import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { bareExchange } from "../helpers/bare-exchange.js";

describe("whether a body is still to come when a request arrives", () => {
  const cases: readonly (readonly [title: string, rawHeaders: readonly string[], bodyPending: boolean])[] = [
    ["none was promised", ["Content-Type", "text/plain"], false],
    ["an empty one was promised", ["Content-Length", "0"], false],
    ["one of known length", ["Content-Length", "1"], true],
    ["one in chunks", ["Transfer-Encoding", "chunked"], true],
  ];
  for (const [title, rawHeaders, bodyPending] of cases) test(title, () => assert.equal(bareExchange({ rawHeaders }).bodyPending, bodyPending));
});

test("whether the client holds its body back is as it arrived", () => {
  assert.equal(bareExchange({ awaitsContinue: true }).awaitsContinue, true);
  assert.equal(bareExchange({ awaitsContinue: false }).awaitsContinue, false);
});

test("a new exchange is not in flight and holds no memory", () => {
  const { slot, heldBytes } = bareExchange({ rawHeaders: ["Content-Length", "5"] });
  assert.ok(slot < 0);
  assert.equal(heldBytes, 0);
});
