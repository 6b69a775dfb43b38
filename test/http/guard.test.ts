import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { guard } from "../../src/http/guard.js";
import { DamagedStreamError, type MaybePromise } from "../../src/stream/stream.js";
import { startExchanges } from "../helpers/exchange-server.js";

const FAULT = new Error("out of order");
const DAMAGE = new DamagedStreamError("a", "a.seg", "the CRC is wrong");

/** Ways in which work can fail. */
const WAYS: Readonly<Record<string, (fault: unknown) => MaybePromise<void>>> = {
  "at once": (fault) => {
    throw fault;
  },
  later: (fault) => Promise.reject(fault),
};

const FAULTS: readonly (readonly [title: string, fault: unknown, code: string, message: string, says: RegExp])[] = [
  ["a fault", FAULT, "internal-error", "a request failed", /^Error: out of order\n\s+at /],
  ["a damaged stream", DAMAGE, "stream-damaged", "a stream is damaged", /DamagedStreamError.*a\.seg: the CRC is wrong/],
  ["something that is no error", "just text", "internal-error", "a request failed", /^just text$/],
  ["nothing at all", undefined, "internal-error", "a request failed", /^undefined$/],
];

describe("work that fails is answered with 500, and its fault is logged and not shown", () => {
  for (const [way, failWith] of Object.entries(WAYS)) {
    for (const [title, fault, code, message, says] of FAULTS) {
      test(`${title}, ${way}`, async (t) => {
        const server = await startExchanges(t);
        const { connection, exchange } = await server.receive("PUT", "a?secret");
        guard(server.context, exchange, () => failWith(fault));
        const answer = await connection.answer();
        assert.equal(answer.status, 500);
        const { code: answered, detail } = JSON.parse(answer.text);
        assert.deepEqual([answered, detail], [code, undefined]);
        const [line, ...more] = server.log.filter(({ level }) => level === "error");
        assert.deepEqual(more, []);
        assert.equal(line?.message, message);
        assert.deepEqual([line.fields["method"], line.fields["path"]], ["PUT", "/v1/stream/a"]);
        assert.match(String(line.fields["fault"]), says);
        assert.equal(server.context.inFlight.size, 0);
      });
    }
  }
});

for (const [way, failWith] of Object.entries(WAYS)) {
  test(`an answer that has begun is cut off when its work fails ${way}`, async (t) => {
    const server = await startExchanges(t);
    const { connection, exchange } = await server.receive("GET", "a");
    guard(server.context, exchange, () => {
      exchange.res.writeHead(200, { "Content-Length": "10" });
      exchange.res.write("12345");
      return failWith(FAULT);
    });
    const said = await connection.rest();
    assert.ok(!said.includes("internal-error"), "no second answer in the middle of the first");
    assert.equal(exchange.req.socket.destroyed, true);
    assert.equal(server.context.inFlight.size, 0);
    assert.equal(server.log.filter(({ level }) => level === "error").length, 1);
  });
}

test("a fault ends its own request and no other", async (t) => {
  const server = await startExchanges(t);
  const other = await server.receive("GET", "b");
  const { connection, exchange } = await server.receive("GET", "a");
  guard(server.context, exchange, () => Promise.reject(FAULT));
  await connection.answer();
  guard(server.context, other.exchange, () => server.context.responder.send(other.exchange, 204, [], null));
  assert.equal((await other.connection.answer()).status, 204);
});

for (const [title, work] of Object.entries({ "at once": (): undefined => undefined, later: () => Promise.resolve() })) {
  test(`work that is done ${title} is not answered for, and not logged`, async (t) => {
    const server = await startExchanges(t);
    const { connection, exchange } = await server.receive("GET", "a");
    guard(server.context, exchange, async () => {
      await work();
      server.context.responder.send(exchange, 204, [], null);
    });
    assert.equal((await connection.answer()).status, 204);
    assert.deepEqual(server.log.filter(({ level }) => level === "error"), []);
  });
}
