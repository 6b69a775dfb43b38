import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { describe, test, type TestContext } from "node:test";
import { DirectConnection } from "../../src/http/node/direct-connection.js";
import { DirectRequest } from "../../src/http/node/direct-request.js";
import { Dispatcher } from "../../src/http/dispatch.js";
import { Exchange } from "../../src/http/exchange/exchange.js";
import { Pipeline } from "../../src/http/pipeline.js";
import { Responder } from "../../src/http/answer/respond.js";
import type { AnswerAppend, AppendOutcome } from "../../src/stream/rules/outcome.js";
import { Registry } from "../../src/stream/registry.js";
import { runCampaign } from "./campaign.js";
import type { Body } from "../../src/stream/rules/command.js";

/** Seeds among which a fault must be found. */
const MAX_REQUESTS = 10_000;

type Mock = TestContext["mock"];
type Append = Registry["append"];
type Send = Responder["send"];

/** Changes what appends do. */
function plantInAppends(mock: Mock, change: (append: Append) => Append): void {
  const { append } = Registry.prototype;
  const changed = new WeakMap<Registry, Append>();
  mock.method(Registry.prototype, "append", function (this: Registry, ...args: Parameters<Append>) {
    const own = changed.get(this) ?? change(append.bind(this));
    changed.set(this, own);
    return own(...args);
  });
}

/** Changes what is answered. */
function plantInAnswers(mock: Mock, change: (...args: Parameters<Send>) => Parameters<Send>): void {
  const { send } = Responder.prototype;
  mock.method(Responder.prototype, "send", function (this: Responder, ...args: Parameters<Send>) {
    send.apply(this, change(...args));
  });
}

/** Changes the heads of requests before they are looked at. */
function plantInHeads(mock: Mock, change: (rawHeaders: string[]) => string[]): void {
  const { handle, handleDirect } = Dispatcher.prototype;
  const bend = (req: IncomingMessage): void => void (req.rawHeaders = change(req.rawHeaders));
  mock.method(Dispatcher.prototype, "handle", function (this: Dispatcher, ...args: Parameters<typeof handle>) {
    bend(args[0]);
    handle.apply(this, args);
  });
  mock.method(Dispatcher.prototype, "handleDirect", function (this: Dispatcher, ...args: Parameters<typeof handleDirect>) {
    bend(args[0]);
    return handleDirect.apply(this, args);
  });
}

/** The headers with one value in the place of all of a name; as many as before, since Node has counted them. */
function withOne(rawHeaders: readonly string[], name: string, value: string): string[] {
  let isThere = false;
  return rawHeaders.flatMap((field, at) => {
    if (at % 2 === 1) return [];
    if (field.toLowerCase() !== name) return [field, rawHeaders[at + 1] ?? ""];
    if (isThere) return ["X-Gone", ""];
    isThere = true;
    return [name, value];
  });
}

function forgetSomeAppends(append: Append): Append {
  let last: AppendOutcome | null = null;
  let count = 0;
  return (name, command, answer) => {
    const note: AnswerAppend = (outcome) => {
      last = outcome;
      answer(outcome);
    };
    count += 1;
    if (last === null || count % 3 !== 0) return append(name, command, note);
    answer(last);
  };
}

function loseSomeChunks(mock: Mock): void {
  const { push } = DirectRequest.prototype;
  let count = 0;
  mock.method(DirectRequest.prototype, "push", function (this: DirectRequest, chunk: Buffer | null) {
    count += 1;
    return chunk !== null && count % 20 === 0 ? true : push.call(this, chunk);
  });
}

function answerNobodyWhoHasEnded(mock: Mock): void {
  const { open } = DirectConnection;
  mock.method(DirectConnection, "open", (socket: Socket, ...args: [Parameters<typeof open>[1], number]) => {
    setImmediate(() => socket.prependListener("end", () => socket.end()));
    return open.call(DirectConnection, socket, ...args);
  });
}

function twice(body: Body): Body {
  return Buffer.isBuffer(body) ? Buffer.concat([body, body]) : body;
}

/** What goes wrong in the server, and how it is made to. */
const FAULTS: readonly (readonly [fault: string, plant: (mock: Mock) => void])[] = [
  [
    "requests of one connection are handled at the same time",
    (mock) =>
      mock.method(Pipeline.prototype, "inTurn", (_req: unknown, _res: unknown, run: () => void) => {
        run();
        return true;
      }),
  ],
  ["a body loses a chunk", loseSomeChunks],
  [
    "an append is stored twice",
    (mock) => plantInAppends(mock, (append) => (name, command, answer) => append(name, { ...command, body: twice(command.body) }, answer)),
  ],
  ["an append is acknowledged and not stored", (mock) => plantInAppends(mock, forgetSomeAppends)],
  [
    "a producer is not known again",
    (mock) => plantInAppends(mock, (append) => (name, command, answer) => append(name, { ...command, producer: null }, answer)),
  ],
  [
    "a read loses its last byte",
    (mock) =>
      plantInAnswers(mock, (exchange, status, headers, body) => [
        exchange,
        status,
        headers,
        exchange.req.method === "GET" && status === 200 && body !== null ? body.subarray(0, -1) : body,
      ]),
  ],
  [
    "an answer tells another offset",
    (mock) =>
      plantInAnswers(mock, (exchange, status, headers, body) => [
        exchange,
        status,
        headers.map((value) => (/^\d{16}_\d{16}$/.test(value) ? value.replace(/\d$/, (digit) => String((Number(digit) + 1) % 10)) : value)),
        body,
      ]),
  ],
  ["a wrong Host is taken", (mock) => plantInHeads(mock, (rawHeaders) => withOne(rawHeaders, "host", "a"))],
  [
    "a coding that is not known is passed over",
    (mock) => plantInHeads(mock, (rawHeaders) => withOne(rawHeaders, "transfer-encoding", "chunked")),
  ],
  ["a connection goes on behind an ignored Upgrade", (mock) => mock.getter(Exchange.prototype, "isLast", () => false)],
  ["a client that has ended its side has no answer", answerNobodyWhoHasEnded],
];

describe("the fuzz finds a fault that is put in", () => {
  for (const [fault, plant] of FAULTS) {
    test(fault, async (context) => {
      plant(context.mock);
      const { failures } = await runCampaign({ from: 1, requests: MAX_REQUESTS, stopsEarly: true, maxConnectionMs: 2_000 });
      context.mock.restoreAll();
      const [found] = failures;
      assert.ok(found !== undefined, `not found within ${MAX_REQUESTS} requests`);
      // It is the fault that it finds: without it the same requests are answered as they should be.
      assert.deepEqual((await runCampaign({ from: found.seed, requests: 1 })).failures, []);
      context.diagnostic(`found by seed ${found.seed}`);
    });
  }
});
