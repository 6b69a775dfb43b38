import assert from "node:assert/strict";
import { parseEventStream } from "../protocol/event-stream-parser.js";
import { Random } from "../helpers/random.js";
import { RawConnection } from "../helpers/raw-connection.js";
import { garbled, mutated } from "./mutations.js";
import { judge } from "./oracle.js";
import { PREFIX, wellFormed, type FuzzRequest } from "./requests.js";
import { Model } from "./stream-model.js";
import { bytesOf, piecesOf, write } from "./wire.js";

/** How one client's requests are made and told of. */
export interface SessionOptions {
  readonly port: number;
  readonly seed: number;
  /** About how many requests it sends. */
  readonly requests: number;
  /** A connection that takes longer has lost count. */
  readonly maxConnectionMs?: number;
  /** Gets a line for everything that is sent and comes back. */
  readonly trace?: (line: string) => void;
}

const MAX_CONNECTION_MS = 60_000;
const MAX_BURST = 12;
const MUTATED = 0.12;

/** How a connection ends behind the last answer. */
type Ending = "close" | "end" | "follow" | "garble" | "cut";

/** Runs one client's requests, which its seed decides; resolves to their number, rejects with what is wrong with an answer. */
export async function runSession(options: SessionOptions): Promise<number> {
  const session = new Session(options);
  try {
    return await session.run();
  } catch (error) {
    throw new Error(`seed ${options.seed}: ${error instanceof Error ? error.message : String(error)}\n  ${session.said}`, { cause: error });
  } finally {
    await session.close();
  }
}

class Session {
  readonly #port: number;
  readonly #random: Random;
  readonly #model: Model;
  readonly #budget: number;
  readonly #maxConnectionMs: number;
  readonly #trace: (line: string) => void;
  #connection: RawConnection | null = null;
  #sent = 0;
  /** The request that was looked at last. */
  said = "";

  constructor({ port, seed, requests, maxConnectionMs = MAX_CONNECTION_MS, trace = () => undefined }: SessionOptions) {
    this.#port = port;
    this.#random = new Random(seed);
    this.#model = new Model(["a", "b/c", "d"].map((name) => `fuzz/${seed}/${name}`));
    this.#budget = requests;
    this.#maxConnectionMs = maxConnectionMs;
    this.#trace = trace;
  }

  async run(): Promise<number> {
    while (this.#sent < this.#budget) await this.#runConnection();
    await this.#assertStored();
    return this.#sent;
  }

  async close(): Promise<void> {
    await this.#connection?.close();
  }

  /** Some bursts of requests on one connection, until one of them ends it. */
  async #runConnection(): Promise<void> {
    const random = this.#random;
    await this.close();
    this.#connection = await RawConnection.open(this.#port);
    const watchdog = setTimeout(() => this.#connection?.socket.destroy(), this.#maxConnectionMs);
    try {
      for (let bursts = random.integer(1, 6); bursts > 1; bursts -= 1) {
        if ((await this.#burst(this.#connection, "close")) === "closed") return;
      }
      await this.#burst(
        this.#connection,
        random.weighted<Ending>([
          [5, "close"],
          [4, "end"],
          [1, "follow"],
          [2, "garble"],
          [1, "cut"],
        ]),
      );
    } finally {
      clearTimeout(watchdog);
    }
  }

  /** Sends some requests at once and judges their answers in order; then what the ending of the connection brings. */
  async #burst(connection: RawConnection, ending: Ending): Promise<"open" | "closed"> {
    const random = this.#random;
    const requests = Array.from({ length: random.chance(0.4) ? 1 : random.integer(1, MAX_BURST) }, () => {
      const request = wellFormed(random, this.#model);
      return random.chance(MUTATED) ? mutated(random, request) : request;
    });
    const name = random.pick(this.#model.names);
    await this.#send(connection, Buffer.concat([...requests.map(({ written }) => bytesOf(written)), this.#tailFor(ending, name)]), ending);
    this.#sent += requests.length;
    if (ending === "cut") {
      await this.#answers(connection, requests);
      return "closed";
    }
    if ((await this.#answers(connection, requests)) === "closed") return "closed";
    if (ending === "garble") await this.#answersToGarbled(connection, name);
    else if (ending === "follow") await this.#events(connection, name);
    else if (ending === "end") assert.equal(await connection.rest(), "", "behind the last answer");
    return "open";
  }

  /** What is sent behind the requests. */
  #tailFor(ending: Ending, name: string): Buffer {
    const random = this.#random;
    const post = {
      method: "POST",
      target: PREFIX + name,
      headers: [["Content-Type", this.#model.get(name)?.contentType ?? "text/plain"]],
      body: Buffer.from("[1]"),
    } as const;
    if (ending === "garble")
      return garbled(random, {
        ...wellFormed(random, this.#model),
        written: write(random, random.chance(0.5) ? post : { method: "GET", target: PREFIX + name }),
      });
    if (ending === "follow") return bytesOf(write(random, { method: "GET", target: `${PREFIX}${name}?live=sse&offset=-1` }));
    if (ending !== "cut") return Buffer.alloc(0);
    const whole = bytesOf(write(random, post));
    return whole.subarray(0, random.integer(0, whole.length - 1));
  }

  async #send({ socket }: RawConnection, bytes: Buffer, ending: Ending): Promise<void> {
    this.#trace(`> ${JSON.stringify(bytes.toString("latin1"))} ${ending}`);
    for (const piece of piecesOf(this.#random, bytes)) {
      socket.write(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (ending !== "close" && ending !== "cut") socket.end();
  }

  /** Judges the answers; behind the one that ends the connection nothing may come, and nothing be done. */
  async #answers(connection: RawConnection, requests: readonly FuzzRequest[]): Promise<"open" | "closed"> {
    for (const request of requests) {
      this.said = `to ${JSON.stringify(bytesOf(request.written).toString("latin1", 0, 600))}`;
      let answer = await connection.answer({ toHead: request.method === "HEAD" });
      if (answer.status === 100) answer = await connection.answer();
      this.#trace(`< ${answer.status} ${JSON.stringify(answer.headers)} ${JSON.stringify(answer.body.toString("latin1"))}`);
      judge(this.#model, request, answer);
      if (answer.headers["connection"] !== "close") continue;
      assert.equal(await connection.rest(), "", "behind the last answer");
      return "closed";
    }
    return "open";
  }

  /** Any answers, as long as they are answers; what the stream held is still there. */
  async #answersToGarbled(connection: RawConnection, name: string): Promise<void> {
    this.said = "to garbled bytes";
    const text = await connection.rest();
    this.#trace(`< ${JSON.stringify(text)}`);
    assert.match(text, /^(HTTP\/1\.1 \d{3} |$)/);
    for (const [, status] of text.matchAll(/HTTP\/1\.1 (\d{3}) [\w -]+\r\nX-Content-Type-Options/g))
      assert.ok(Number(status) < 500 || status === "501", `${status} is the server's fault`);
    const known = this.#model.get(name);
    const now = await RawConnection.open(this.#port);
    now.socket.end(bytesOf(write(this.#random, { method: "GET", target: PREFIX + name })));
    const answer = await now.answer();
    await now.close();
    if (known === undefined) return;
    assert.equal(answer.status, 200, "a stream is still there");
    const { body, values } = known.from(0);
    if (body !== undefined) assert.ok(answer.body.subarray(0, body.length).equals(body), "a stream begins with what it held");
    else assert.deepEqual(JSON.parse(answer.text).slice(0, values?.length), values, "a stream begins with what it held");
    // What the garbled request did is not known: on with another.
    await this.#forget(name);
  }

  async #forget(name: string): Promise<void> {
    const connection = await RawConnection.open(this.#port);
    connection.write(bytesOf(write(this.#random, { method: "DELETE", target: PREFIX + name })));
    this.#model.delete(name);
    assert.equal((await connection.answer()).status, 204);
    await connection.close();
  }

  /** A client that has ended its side is sent all there is as events, and then the end. */
  async #events(connection: RawConnection, name: string): Promise<void> {
    this.said = `to an SSE read of ${name}`;
    const { status } = await connection.head();
    const events = parseEventStream(await connection.rest());
    const stream = this.#model.get(name);
    assert.equal(status, stream === undefined ? 404 : 200);
    if (stream === undefined) return;
    const data = events.filter(({ type }) => type === "data").map((event) => event.data);
    const { body, values } = stream.from(0);
    if (values !== undefined)
      assert.deepEqual(
        data.flatMap((json) => JSON.parse(json) as unknown[]),
        values,
      ); // an event of a JSON stream is an array
    else if (stream.contentType === "application/octet-stream")
      assert.ok(Buffer.concat(data.map((part) => Buffer.from(part, "base64"))).equals(body ?? Buffer.alloc(0)));
    assert.equal(JSON.parse(events.at(-1)?.data ?? "").upToDate, true);
  }

  /** What is stored in the end is what was acknowledged, and nothing was stored under another name. */
  async #assertStored(): Promise<void> {
    await this.close();
    this.#connection = await RawConnection.open(this.#port);
    for (const name of this.#model.names) {
      const expect: FuzzRequest["expect"] = (model) => model.get(name)?.read(0) ?? { status: 404, code: "stream-not-found" };
      const request: FuzzRequest = {
        method: "GET",
        written: write(this.#random, { method: "GET", target: PREFIX + name }),
        expect,
        closes: "never",
        name,
      };
      await this.#burstOf(this.#connection, request);
    }
    const smuggled: FuzzRequest = {
      method: "GET",
      written: write(this.#random, { method: "GET", target: `${PREFIX}smuggled` }),
      expect: () => ({ status: 404 }),
      closes: "never",
    };
    await this.#burstOf(this.#connection, smuggled);
  }

  async #burstOf(connection: RawConnection, request: FuzzRequest): Promise<void> {
    await this.#send(connection, bytesOf(request.written), "close");
    await this.#answers(connection, [request]);
  }
}
