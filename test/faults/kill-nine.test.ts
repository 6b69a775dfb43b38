import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import test, { type TestContext } from "node:test";
import { startStreamdir, type TestProcess } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";

const KILLS = 5;
const PRODUCERS = 8;
/** Acknowledged appends between two kills, over all producers. */
const APPENDS_PER_LIFE = 150;
const SHARED = "shared";

/** A server that is killed and started again on the same directory; clients wait for it through `whenUp`. */
class KilledServer {
  readonly #context: TestContext;
  readonly #dir = tempDir();
  #process: TestProcess | null = null;
  #up: Promise<string> = Promise.reject(new Error("not started"));

  constructor(context: TestContext) {
    this.#context = context;
    this.#up.catch(() => undefined);
  }

  /** The address of the server, when it is up. */
  get whenUp(): Promise<string> {
    return this.#up;
  }

  async start(): Promise<void> {
    // A small journal, so that the kills fall into checkpoints too; a low bypass, so that they fall into large appends.
    const sizes = ["--journal-bytes", "64KiB", "--journal-bypass-bytes", "8KiB", "--segment-bytes", "32KiB"];
    const process = startStreamdir(this.#context, [this.#dir, "--port", "0", "--log-level", "warn", ...sizes]);
    this.#process = process;
    this.#up = process.stdoutLine(/http:/).then((line) => /http:[^\s"]+/.exec(line)?.[0] ?? "");
    await this.#up.catch(async (error: unknown) => {
      throw new Error(`the server did not start: ${(await process.ended).stderr}`, { cause: error });
    });
  }

  /** Kills the server, while clients are at work, and starts it again. */
  async killAndRestart(): Promise<void> {
    const before = this.#process;
    let restarted: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (restarted = resolve));
    this.#up = gate.then(() => this.#up);
    before?.kill("SIGKILL");
    await before?.ended;
    await this.start();
    restarted();
  }
}

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly headers: http.IncomingHttpHeaders;
}

/** One request; rejects when the connection breaks. */
async function ask(url: string, method: string, headers: Record<string, string>, body: string): Promise<Answer> {
  const request = http.request(url, { method, headers, agent: false });
  request.end(body);
  const [response] = (await once(request, "response")) as [http.IncomingMessage]; // the event's argument
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += String(chunk);
  return { status: response.statusCode ?? 0, body: text, headers: response.headers };
}

/** The same request again and again until it has an answer: what an honest client does. */
async function insist(server: KilledServer, name: string, method: string, headers: Record<string, string>, body: string): Promise<Answer> {
  for (;;) {
    const url = await server.whenUp;
    try {
      return await ask(`${url}${name}`, method, headers, body);
    } catch (error) {
      // The connection broke with the server; whether the append is there is what the retry finds out.
      assert.ok(error instanceof Error);
    }
  }
}

class Producer {
  readonly sent: string[] = [];
  readonly #server: KilledServer;
  readonly #id: string;
  readonly #stream: string;

  constructor(server: KilledServer, index: number) {
    this.#server = server;
    this.#id = `p${index}`;
    // Half of them share a stream, the others have one each.
    this.#stream = index % 2 === 0 ? SHARED : `own/${index}`;
  }

  get stream(): string {
    return this.#stream;
  }

  get id(): string {
    return this.#id;
  }

  /** Appends one message and does not rest until it is acknowledged. */
  async append(): Promise<void> {
    const seq = this.sent.length;
    const padding = "x".repeat(seq % 40 === 7 ? 10_000 : seq % 90);
    const headers = { "Content-Type": "application/json", "Producer-Id": this.#id, "Producer-Epoch": "0", "Producer-Seq": String(seq) };
    const message = JSON.stringify({ p: this.#id, seq, padding });
    const { status, body } = await insist(this.#server, this.#stream, "POST", headers, message);
    assert.ok(status === 200 || status === 204, `${status} ${body}`);
    this.sent.push(message);
  }
}

/** Follows a stream by long-polls across all kills, and keeps what it saw. */
async function watch(server: KilledServer, name: string, isOver: () => boolean): Promise<string[]> {
  const seen: string[] = [];
  let offset = "-1";
  for (;;) {
    const last = isOver();
    const { status, body, headers } = await insist(server, `${name}?live=long-poll&offset=${offset}`, "GET", {}, "");
    if (status === 200) seen.push(...(JSON.parse(body) as unknown[]).map((message) => JSON.stringify(message))); // a JSON stream reads as an array
    else assert.equal(status, 204, body);
    offset = String(headers["stream-next-offset"]);
    if (last && headers["stream-closed"] === "true") return seen;
  }
}

async function readAll(server: KilledServer, name: string): Promise<string[]> {
  const { body } = await insist(server, name, "GET", {}, "");
  return (JSON.parse(body) as unknown[]).map((message) => JSON.stringify(message)); // a JSON stream reads as an array
}

test("kill -9 under load loses, doubles, reorders and takes back nothing", async (context) => {
  const server = new KilledServer(context);
  await server.start();
  const producers = Array.from({ length: PRODUCERS }, (_, index) => new Producer(server, index));
  const names = [...new Set(producers.map(({ stream }) => stream))];
  for (const name of names) await insist(server, name, "PUT", { "Content-Type": "application/json" }, "");
  let isOver = false;
  const watchers = names.map((name) => watch(server, name, () => isOver));

  for (let life = 0; life <= KILLS; life += 1) {
    let left = APPENDS_PER_LIFE;
    let isKilled = life === KILLS;
    const working = producers.map(async (producer) => {
      while (left > 0) {
        left -= 1;
        await producer.append();
        if (left > APPENDS_PER_LIFE / 2 || isKilled) continue;
        // In the middle of the others' appends.
        isKilled = true;
        await server.killAndRestart();
      }
    });
    await Promise.all(working);
  }

  isOver = true;
  for (const name of names) await insist(server, name, "POST", { "Stream-Closed": "true" }, "");
  for (const [index, name] of names.entries()) {
    const stored = await readAll(server, name);
    assert.deepEqual(await watchers[index], stored, `a watcher of ${name} saw what is stored`);
    const writers = producers.filter(({ stream }) => stream === name);
    assert.equal(stored.length, writers.reduce((sum, { sent }) => sum + sent.length, 0));
    for (const { id, sent } of writers) {
      assert.deepEqual(stored.filter((message) => message.startsWith(`{"p":"${id}"`)), sent, `${id} in ${name}`);
    }
  }
  // Producers are remembered: the last append of each, sent once more, is a duplicate.
  await server.killAndRestart();
  for (const { id, stream, sent } of producers) {
    const headers = { "Content-Type": "application/json", "Producer-Id": id, "Producer-Epoch": "0", "Producer-Seq": String(sent.length - 1) };
    const { status } = await insist(server, stream, "POST", headers, sent.at(-1) ?? "");
    assert.equal(status, 409, "closed, by somebody else");
  }
});
