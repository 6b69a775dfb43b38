import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import type { AddressInfo, Server } from "node:net";
import { test, type TestContext } from "node:test";
import { requestBytes } from "../scale/load.js";
import { openDialogue } from "./connection.js";
import { Crowd } from "./crowd.js";
import { fieldOf, HttpAnswers } from "./http-answers.js";

async function portOf(t: TestContext, listener: RequestListener): Promise<number> {
  const server: Server = createHttpServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => new Promise((resolve) => server.close(resolve)));
  return (server.address() as AddressInfo).port; // it listens on a port
}

const serveLengths: RequestListener = (request, response) => {
  const bytes = Number(request.url?.slice(1));
  response.writeHead(bytes === 304 ? 304 : 200, bytes === 304 ? {} : { "Content-Length": bytes, "X-Place": "here" });
  response.end(request.method === "HEAD" || bytes === 304 ? undefined : Buffer.alloc(bytes, "\r\n\r\n"));
};

test("each answer is told apart by its length, also a large one, one without a body and that to a HEAD", async (t) => {
  const port = await portOf(t, serveLengths);
  const { ask, close } = await openDialogue(port, new HttpAnswers());
  const told: string[] = [];
  for (const [method, path] of [
    ["GET", "/0"],
    ["GET", "/10"],
    ["HEAD", "/10"],
    ["GET", "/304"],
    ["GET", "/3000000"],
    ["GET", "/1"],
  ] as const) {
    const { status, wireBytes, head } = await ask(requestBytes(method, path));
    told.push(`${status} ${wireBytes - head.length - 2}`);
  }
  close();
  assert.deepEqual(told, ["200 0", "200 10", "200 0", "304 0", "200 3000000", "200 1"]);
});

test("an answer may come in any pieces, with a length or in chunks", () => {
  const heads = [
    "Content-Length: 3\r\n\r\nabc",
    "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  ];
  for (const answer of heads.map((head) => Buffer.from(`HTTP/1.1 201 Created\r\nLocation: /a\r\n${head}`))) {
    const answers = new HttpAnswers();
    for (let cut = 1; cut < answer.length; cut += 1) {
      assert.equal(answers.take(answer.subarray(0, cut)), false);
      assert.equal(answers.take(answer.subarray(cut)), true);
      assert.deepEqual([answers.status, answers.wireBytes], [201, answer.length]);
    }
  }
});

test("an answer whose end is not known is refused", () => {
  assert.throws(() => new HttpAnswers().take(Buffer.from("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")), /an answer without a length/);
});

test("a field of a head is found by its name in any case", () => {
  const head = "HTTP/1.1 200 OK\r\nStream-Next-Offset: 1_2\r\nETag: x\r\n";
  assert.deepEqual([fieldOf(head, "stream-next-offset"), fieldOf(head, "etag"), fieldOf(head, "offset")], ["1_2", "x", null]);
});

test("a dialogue gives each request its answer, and says when the server is gone", async (t) => {
  const port = await portOf(t, (request, response) => {
    if (request.url === "/end") return void request.socket.end();
    serveLengths(request, response);
  });
  const { ask, close } = await openDialogue(port, new HttpAnswers());
  const { status, head } = await ask(requestBytes("GET", "/5"));
  assert.deepEqual([status, fieldOf(head, "x-place")], [200, "here"]);
  await assert.rejects(ask(requestBytes("GET", "/end")), /closed a connection/);
  close();
});

test("a crowd knows how many were answered, and is told when one is sent away", async (t) => {
  const waiting: (() => void)[] = [];
  const port = await portOf(t, (request, response) => {
    if (request.url === "/waits") waiting.push(() => request.socket.destroy());
    else response.end("x");
  });
  const received = new Set<number>();
  const taken = async (): Promise<void> => {
    const { ask, close } = await openDialogue(port, new HttpAnswers());
    await ask(requestBytes("GET", "/"));
    close();
  };
  const crowd = await Crowd.open(port, 250, (index) => requestBytes("GET", index < 249 ? "/now" : "/waits"), {
    take: (_, index) => received.add(index),
    taken,
  });
  await crowd.answered(249);
  assert.deepEqual([received.size, received.has(249), waiting.length], [249, false, 1]);
  crowd.recount();
  const all = crowd.answered(1);
  for (const leave of waiting) leave();
  await assert.rejects(all, /closed a connection/);
  crowd.close();
});
