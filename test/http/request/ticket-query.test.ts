import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readTicket } from "../../../src/http/request/ticket-query.js";

const SECRET = "A".repeat(43);

describe("the ticket of a query", () => {
  const rows: readonly [query: string, found: string | null][] = [
    ["", null],
    ["offset=-1", null],
    ["ticket=v1.1.r.k.x", "v1.1.r.k.x"],
    ["offset=-1&ticket=v1.1.r.k.x&live=sse", "v1.1.r.k.x"],
    ["%74icket=v1.1.r.k%7Ea.x", "v1.1.r.k~a.x"],
    ["ticket", ""],
    ["ticket=", ""],
    ["Ticket=x", null],
    ["ticket2=x", null],
  ];
  for (const [query, found] of rows) test(`"${query}"`, () => assert.deepEqual(readTicket(query), { value: found }));

  for (const [query, code] of [
    ["ticket=a&ticket=b", "invalid-query"],
    ["ticket=%zz", "invalid-query"],
    ["access_token=x", "token-in-query"],
    ["offset=-1&access_token", "token-in-query"],
    [`ticket=sd_ci_${SECRET}`, "token-in-query"],
    [`token=sd_ci-2_${SECRET}`, "token-in-query"],
    [`q=Bearer+sd_ci_${SECRET}`, "token-in-query"],
    [`q=%73d_ci_${SECRET}`, "token-in-query"],
    ["jwt=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln", "token-in-query"],
    ["jwt=eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.", "token-in-query"],
  ] as const)
    test(`"${query}" is refused: ${code}`, () => {
      const found = readTicket(query);
      assert.equal("code" in found ? found.code : null, code);
    });

  test("a long query costs little", () => {
    const query = "a=b&".repeat(4000);
    assert.deepEqual(readTicket(query), { value: null });
  });
});
