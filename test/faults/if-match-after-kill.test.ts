import assert from "node:assert/strict";
import test from "node:test";
import { codeOf, RealServer, type Reply } from "../helpers/real-server.js";

const KILLS = 3;
const WRITERS = 6;
/** Acknowledged appends between two kills, over all writers. */
const APPENDS_PER_LIFE = 60;
const TEXT = { "Content-Type": "text/plain" };
const SIZES = ["--journal-bytes", "64KiB", "--segment-bytes", "4KiB", "--tail-cache-bytes", "64KiB"];

/** An append that was answered: where it was to begin, and where it ended. */
interface Stored {
  readonly at: string;
  readonly end: string;
  readonly body: string;
}

const offsetOf = ({ headers }: Reply): string => String(headers["stream-next-offset"]);

/** Appends with If-Match alone: what a kill leaves unanswered is looked up, as a client without a producer's id would. */
class CarefulWriter {
  readonly stored: Stored[] = [];
  readonly #server: RealServer;
  readonly #name: string;
  #sent = 0;
  #tail = "";

  constructor(server: RealServer, name: string) {
    this.#server = server;
    this.#name = name;
  }

  /** Appends one message after whatever the stream has. */
  async append(): Promise<void> {
    const body = `${this.#name}:${this.#sent++}:${"x".repeat(this.#sent % 50)};`;
    for (this.#tail ||= offsetOf(await this.#server.insist("HEAD", "s")); ;) {
      const at = this.#tail;
      const headers = { ...TEXT, "If-Match": `"${at}"` };
      const { lives } = this.#server;
      const answer = await this.#server.ask("POST", "s", { headers, body }).catch(() => null);
      if (answer === null) {
        await this.#server.nextLife(lives);
        if (await this.#isThere(at, body)) return;
        continue;
      }
      this.#tail = offsetOf(answer);
      if (answer.status === 204) return void this.stored.push({ at, end: this.#tail, body });
      assert.deepEqual([answer.status, codeOf(answer)], [412, "tail-moved"]);
    }
  }

  /** Whether an append without an answer is at the one place where it can be; the tail is what was read. */
  async #isThere(at: string, body: string): Promise<boolean> {
    const read = await this.#server.insist("GET", `s?offset=${at}`);
    this.#tail = offsetOf(read);
    return read.body.startsWith(body);
  }
}

test("appends with If-Match stay a chain across kill -9: each is there once, where it was to be", async (context) => {
  const server = new RealServer(context, SIZES);
  await server.start();
  await server.ask("PUT", "s", { headers: TEXT });
  const writers = Array.from({ length: WRITERS }, (_, at) => new CarefulWriter(server, `w${at}`));
  let isOver = false;
  const acknowledged = (): number => writers.reduce((sum, { stored }) => sum + stored.length, 0);
  let reached: (() => void) | null = null;
  let goal = 0;
  const work = writers.map(async (writer) => {
    while (!isOver) {
      await writer.append();
      if (acknowledged() >= goal) reached?.();
    }
  });
  for (let kill = 1; kill <= KILLS; kill += 1) {
    goal = acknowledged() + APPENDS_PER_LIFE;
    await new Promise<void>((resolve) => (reached = resolve));
    await server.killAndRestart();
  }
  isOver = true;
  await Promise.all(work);
  const all = await server.ask("GET", "s?offset=-1");
  assert.equal(all.headers["stream-up-to-date"], "true");
  const messages = all.body.split(";").slice(0, -1);
  assert.equal(new Set(messages).size, messages.length, "none is there twice");
  for (const { at, end, body } of writers.flatMap(({ stored }) => stored)) {
    const { body: rest } = await server.ask("GET", `s?offset=${at}`);
    assert.ok(rest.startsWith(body), `${body} begins at ${at}`);
    const { body: after } = await server.ask("GET", `s?offset=${end}`);
    assert.equal(rest, body + after, `${body} ends at ${end}`);
  }
  await server.stop();
  await server.verify();
});
