import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, ServerResponse, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { describe, test, type TestContext } from "node:test";
import { dropRest } from "../../../src/http/node/drop-rest.js";
import { connectionTo, type RawConnection } from "../../helpers/raw-connection.js";

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const POST = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n";
const MiB = 1024 * 1024;

/** A server that drops all but the first request, which is left to the test; it counts the answers that Node makes. */
async function dropping(context: TestContext): Promise<{ client: RawConnection; res: ServerResponse; made: () => number }> {
  let made = 0;
  class Counted extends ServerResponse<IncomingMessage> {
    constructor(...given: ConstructorParameters<typeof ServerResponse<IncomingMessage>>) {
      super(...given);
      made += 1;
    }
  }
  const server = createServer({ ServerResponse: Counted });
  const first = once(server, "request") as Promise<[IncomingMessage, ServerResponse]>; // as Node documents it
  server.once("request", (req) => assert.equal(dropRest(req.socket), true));
  const client = await connectionTo(context, server);
  client.write(GET + GET.repeat(2_000));
  const [, res] = await first;
  return { client, res, made: () => made };
}

/** Resolves when all that the client has sent is read. */
async function readAll(client: RawConnection, { socket }: ServerResponse, bytes: number): Promise<void> {
  while (socket !== null && !socket.destroyed && socket.bytesRead < bytes) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(client.socket.writableLength, 0);
}

describe("the rest of a connection that is dropped", () => {
  test("gets no answers from Node, and ends with the one under way", async (context) => {
    const { client, res, made } = await dropping(context);
    client.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: a\r\n\r\n");
    client.write(GET);
    await readAll(client, res, 2_002 * GET.length);
    assert.equal(made(), 1);
    res.shouldKeepAlive = false;
    res.end("whole");
    assert.equal((await client.answer()).text, "whole");
    assert.equal(await client.rest(), "");
    assert.equal(made(), 1);
  });

  test("is read, with its bodies", async (context) => {
    const { client, res, made } = await dropping(context);
    client.write(`${POST}${"x".repeat(100_000)}${POST}${"x".repeat(100_000)}`);
    await readAll(client, res, 2_001 * GET.length + 2 * (POST.length + 100_000));
    res.shouldKeepAlive = false;
    res.end("whole");
    assert.equal((await client.answer()).text, "whole");
    assert.equal(made(), 1);
  });

  test("is cut when there is too much of it", async (context) => {
    const { client, res } = await dropping(context);
    client.write(Buffer.from(GET.repeat(Math.ceil((2 * MiB) / GET.length))));
    await once(res, "close");
    assert.equal(res.writableEnded, false);
  });

  test("is cut when one of its bodies is too much", async (context) => {
    const { client, res } = await dropping(context);
    client.write(POST.replace("100000", String(2 * MiB)) + "x".repeat(2 * MiB));
    await once(res, "close");
    assert.equal(res.writableEnded, false);
  });

  test("is not, where Node has no parser that could be told", () => {
    assert.equal(dropRest({} as Socket), false); // as of another version
    assert.equal(dropRest({ parser: null } as Socket & { parser: null }), false);
  });
});
