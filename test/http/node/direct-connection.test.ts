import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { Socket } from "node:net";
import { describe, test, type TestContext } from "node:test";
import { DirectConnection, type LoneExchange } from "../../../src/http/node/direct-connection.js";
import { DirectRequest } from "../../../src/http/node/direct-request.js";
import { connectionTo, type RawConnection } from "../../helpers/raw-connection.js";

/** A request that has its connection for itself. */
class Lone implements LoneExchange {
  readonly req: DirectRequest;
  readonly connection: DirectConnection;
  readonly body: string[] = [];
  isWhole = false;
  isAbandoned = false;
  res: ServerResponse | null = null;
  #changed: (() => void)[] = [];

  constructor(req: DirectRequest, connection: DirectConnection) {
    this.req = req;
    this.connection = connection;
    req.passTo({
      take: (chunk) => {
        this.#change(() => this.body.push(chunk.toString()));
        return true;
      },
      end: () => this.#change(() => (this.isWhole = true)),
      abandon: () => undefined,
    });
  }

  takeResponse(res: ServerResponse): void {
    this.#change(() => (this.res = res));
  }

  abandon(): void {
    this.#change(() => (this.isAbandoned = true));
  }

  answer(body = "direct"): boolean {
    return this.connection.answer(this, `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  }

  handOver(): ServerResponse {
    this.connection.handOver();
    return this.res ?? assert.fail("Node made no answer");
  }

  /** Waits until `has` something. */
  async until(has: () => boolean): Promise<void> {
    while (!has()) await new Promise<void>((resolve) => this.#changed.push(resolve));
  }

  #change(change: () => void): void {
    change();
    for (const resolve of this.#changed.splice(0)) resolve();
  }
}

/** One connection to a server that leaves requests which have it for themselves to the test, and answers all others with "node". */
class Line {
  readonly client: RawConnection;
  readonly connection: DirectConnection;
  readonly socket: Socket;
  readonly #lones: Lone[];
  readonly #wanted: ((lone: Lone) => void)[];

  private constructor(
    client: RawConnection,
    connection: DirectConnection,
    socket: Socket,
    lones: Lone[],
    wanted: ((lone: Lone) => void)[],
  ) {
    this.client = client;
    this.connection = connection;
    this.socket = socket;
    this.#lones = lones;
    this.#wanted = wanted;
  }

  /** `refused` is the path of requests that are not taken. */
  static async open(context: TestContext, refused = ""): Promise<Line> {
    const lones: Lone[] = [];
    const wanted: ((lone: Lone) => void)[] = [];
    const server = createServer({ IncomingMessage: DirectRequest, keepAliveTimeout: 75_000 }, (req, res) => {
      if (req.handOver(res)) return;
      req.resume();
      res.end("node");
    });
    const serve = (req: DirectRequest, connection: DirectConnection): boolean => {
      if (req.url === refused) return false;
      const lone = new Lone(req, connection);
      connection.begin(lone);
      const want = wanted.shift();
      if (want === undefined) lones.push(lone);
      else want(lone);
      return true;
    };
    let opened: { socket: Socket; connection: DirectConnection } | null = null;
    server.on("connection", (socket) => {
      const connection = DirectConnection.open(socket, serve) ?? assert.fail("no place");
      socket.on("close", () => connection.closed());
      opened = { socket, connection };
    });
    server.on("timeout", (_socket) => opened?.connection.timedOut());
    const client = await connectionTo(context, server);
    client.write(GET);
    const { socket, connection } = await new Promise<Lone>((resolve) => wanted.push(resolve)).then((lone) => {
      lone.answer();
      return opened ?? assert.fail("no connection");
    });
    await client.answer();
    return new Line(client, connection, socket, lones, wanted);
  }

  next(): Promise<Lone> {
    const lone = this.#lones.shift();
    return lone === undefined ? new Promise((resolve) => this.#wanted.push(resolve)) : Promise.resolve(lone);
  }

  /** Sends a request, which the test answers. */
  ask(request = GET): Promise<Lone> {
    this.client.write(request);
    return this.next();
  }

  async text(): Promise<string> {
    return (await this.client.answer()).text;
  }
}

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const POST = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n";

describe("the direct connection: a request that has it to itself", () => {
  test("is answered with one text, and the next one is too", async (context) => {
    const line = await Line.open(context);
    for (let round = 0; round < 3; round += 1) {
      const lone = await line.ask();
      assert.equal(line.connection.isBusy, true);
      assert.equal(lone.answer(`round ${round}`), true);
      assert.equal(line.connection.isBusy, false);
      assert.equal(await line.text(), `round ${round}`);
    }
  });

  test("is let go of with its answer", async (context) => {
    const line = await Line.open(context);
    const { socket } = line;
    (await line.ask()).answer();
    assert.equal((socket as Socket & { parser?: { incoming: unknown } }).parser?.incoming, null);
  });

  test("may have a body, in pieces, which may be followed by the next request", async (context) => {
    const line = await Line.open(context);
    const lone = await line.ask(`${POST}abc`);
    await lone.until(() => lone.body.length === 1);
    line.client.write("def");
    await lone.until(() => lone.isWhole);
    assert.deepEqual(lone.body, ["abc", "def"]);
    lone.answer();
    const next = await line.ask();
    next.answer("next");
    assert.deepEqual([await line.text(), await line.text()], ["direct", "next"]);
  });

  test("is answered once", async (context) => {
    const lone = await (await Line.open(context)).ask();
    lone.answer();
    assert.throws(() => lone.answer(), /has its answer already/);
    lone.connection.handOver();
    assert.equal(lone.res, null);
  });

  test("that is answered with the end of its body is followed by others", async (context) => {
    const line = await Line.open(context);
    line.client.write(`${POST}abcdef${GET}`);
    const first = await line.next();
    first.answer("first");
    (await line.next()).answer("second");
    assert.deepEqual([await line.text(), await line.text()], ["first", "second"]);
  });
});

describe("the direct connection: a request that is passed to Node", () => {
  for (const { title, request, until } of [
    { title: "at once", request: GET, until: (lone: Lone) => lone.isWhole },
    { title: "in the middle of its body", request: `${POST}abc`, until: (lone: Lone) => lone.body.length === 1 },
    { title: "behind its body", request: `${POST}abcdef`, until: (lone: Lone) => lone.isWhole },
  ]) {
    test(`${title} has an answer of Node's, and the next one is direct again`, async (context) => {
      const line = await Line.open(context);
      for (let round = 0; round < 2; round += 1) {
        const lone = await line.ask(request);
        await lone.until(() => until(lone));
        const res = lone.handOver();
        assert.equal(line.connection.isBusy, false);
        if (!lone.isWhole) line.client.write("def");
        await lone.until(() => lone.isWhole);
        assert.equal(lone.body.join(""), request === GET ? "" : "abcdef");
        const over = once(res, "close");
        res.end(`by Node, ${round}`);
        const { headers, text } = await line.client.answer();
        assert.deepEqual([text, headers["connection"], headers["keep-alive"]], [`by Node, ${round}`, "keep-alive", "timeout=75"]);
        await over;
        (await line.ask()).answer();
        assert.equal(await line.text(), "direct");
      }
    });
  }

  test("because another is pipelined behind it is answered first", async (context) => {
    const line = await Line.open(context);
    line.client.write(GET.repeat(3));
    const first = await line.next();
    await first.until(() => first.res !== null);
    first.res?.end("first");
    assert.deepEqual([await line.text(), await line.text(), await line.text()], ["first", "node", "node"]);
    (await line.ask()).answer();
    assert.equal(await line.text(), "direct");
  });

  test("hears of its client's end through Node", async (context) => {
    const line = await Line.open(context);
    const lone = await line.ask(`${POST}abc`);
    const res = lone.handOver();
    const gone = once(res, "close");
    line.client.socket.destroy();
    await gone;
    assert.deepEqual([res.destroyed, lone.req.destroyed, lone.isAbandoned], [true, true, false]);
  });
});

describe("the direct connection: Node has from the beginning", () => {
  for (const [title, request] of [
    ["a request of HTTP/1.0", "GET / HTTP/1.0\r\n\r\n"],
    ["one of HTTP/1.0 that keeps its connection", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"],
    ["the last one of a connection", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"],
    ["one that asks for another protocol", "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"],
    ["one that is not taken", "GET /no HTTP/1.1\r\nHost: a\r\n\r\n"],
  ] as const) {
    test(title, async (context) => {
      const line = await Line.open(context, "/no");
      line.client.write(request);
      assert.equal(await line.text(), "node");
    });
  }

  test("what comes while the client has not taken its last answer", async (context) => {
    const line = await Line.open(context);
    line.client.socket.pause();
    const lone = await line.ask();
    const body = "x".repeat(16 * 1024 * 1024);
    assert.equal(lone.answer(body), false);
    line.client.write(GET);
    await once(line.socket, "pause");
    line.client.socket.resume();
    assert.equal((await line.text()).length, body.length);
    assert.equal(await line.text(), "node");
  });
});

describe("the direct connection: a client that goes away", () => {
  test("abandons the request that waits, once", async (context) => {
    const line = await Line.open(context);
    const lone = await line.ask();
    line.client.socket.destroy();
    await lone.until(() => lone.isAbandoned);
    lone.isAbandoned = false;
    line.connection.closed();
    assert.equal(lone.isAbandoned, false);
    assert.throws(() => lone.answer(), /already/);
  });

  test("abandons nothing that has its answer", async (context) => {
    const line = await Line.open(context);
    const lone = await line.ask();
    lone.answer();
    await line.text();
    const closed = once(line.socket, "close");
    line.client.socket.destroy();
    await closed;
    assert.equal(lone.isAbandoned, false);
  });

  test("by ending its side gets no answer that was not sent before", async (context) => {
    const line = await Line.open(context);
    const lone = await line.ask();
    const ended = once(line.socket, "end");
    line.client.socket.end();
    await ended;
    assert.equal(lone.answer(), true);
    assert.equal(await line.client.rest(), "");
  });
});

describe("the direct connection: its idle time", () => {
  test("is bounded while it waits for a request, and left to Node where that has it", async (context) => {
    const line = await Line.open(context);
    assert.equal(line.socket.timeout, 76_000);
    const lone = await line.ask();
    const res = lone.handOver();
    assert.equal(line.socket.timeout, 0);
    const over = once(res, "close");
    res.end();
    await over;
    // Older ones wait no longer than they tell the client.
    assert.ok([75_000, 76_000].includes(line.socket.timeout ?? 0), "Node's own bound");
    (await line.ask()).answer();
    assert.equal(line.socket.timeout, 76_000);
  });

  test("that is over ends it, unless a request waits for its answer", async (context) => {
    const line = await Line.open(context);
    const lone = await line.ask();
    line.socket.emit("timeout");
    lone.answer();
    assert.equal(await line.text(), "direct");
    line.socket.emit("timeout");
    assert.equal(await line.client.rest(), "");
  });

  test("goes on while its client has not taken all", async (context) => {
    const line = await Line.open(context);
    line.client.socket.pause();
    const lone = await line.ask();
    assert.equal(lone.answer("x".repeat(16 * 1024 * 1024)), false);
    const taken = new Promise<void>((resolve) => line.connection.whenTaken(resolve));
    assert.equal(line.socket.timeout, 76_000);
    line.client.socket.resume();
    await taken;
    assert.equal(line.socket.timeout, 76_000);
  });

  test("may end before its client has taken all", async (context) => {
    const line = await Line.open(context);
    line.client.socket.pause();
    const lone = await line.ask();
    lone.answer("x".repeat(16 * 1024 * 1024));
    const taken = new Promise<void>((resolve) => line.connection.whenTaken(resolve));
    line.socket.emit("timeout");
    await taken;
    assert.equal(line.socket.destroyed, true);
  });
});

test("the direct connection needs Node's parser: without it there is none", () => {
  assert.equal(
    DirectConnection.open(new Socket(), () => true),
    null,
  );
});
