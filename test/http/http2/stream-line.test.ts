import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { describe, test, type TestContext } from "node:test";
import { StreamLine } from "../../../src/http/http2/stream-line.js";

/** A stream at a bare server of Node's, as it begins, and its line. */
async function begunStream(context: TestContext): Promise<{ readonly stream: ServerHttp2Stream; readonly line: StreamLine }> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  context.after(() => {
    session.destroy();
    server.close();
  });
  const request = session.request();
  request.resume();
  const [stream] = (await once(server, "stream")) as [ServerHttp2Stream]; // the event's first argument
  // Its connection is not asked for anything here.
  return { stream, line: new StreamLine(stream, stream.session?.socket as TLSSocket) };
}

describe("a stream that is closed", () => {
  test("has no listener left that could keep its request", async (context) => {
    const { stream, line } = await begunStream(context);
    stream.on("data", () => undefined).on("drain", () => undefined);
    const closed = once(stream, "close");
    stream.respond({ ":status": 204 }, { endStream: true });
    await closed;
    line.letGo();
    assert.deepEqual(stream.eventNames(), ["error"]);
  });

  test("is let go of in its own close, and the others that wait for that are still told", async (context) => {
    const { stream, line } = await begunStream(context);
    const told: string[] = [];
    stream.on("close", () => {
      told.push("first");
      line.letGo();
    });
    stream.on("close", () => told.push("second"));
    const closed = once(stream, "close");
    line.destroy();
    await closed;
    assert.deepEqual(told, ["first", "second"]);
    // Nobody has to fear an error that comes late.
    stream.emit("error", new Error("late"));
  });
});
