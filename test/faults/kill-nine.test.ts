import assert from "node:assert/strict";
import test from "node:test";
import { assertExactlyOnce, HonestProducer, messagesOf } from "../helpers/honest-producer.js";
import { RealServer } from "../helpers/real-server.js";
import { watchByEvents, watchByLongPoll } from "../helpers/watchers.js";

const KILLS = 5;
const PRODUCERS = 8;
/** Acknowledged appends between two kills, over all producers. */
const APPENDS_PER_LIFE = 150;
const SHARED = "shared";
const JSON_TYPE = { "Content-Type": "application/json" };
/** A small journal, so that kills fall into checkpoints too; a low bypass, so that they fall into large appends. */
const SIZES = ["--journal-bytes", "64KiB", "--journal-bypass-bytes", "8KiB", "--segment-bytes", "32KiB", "--tail-cache-bytes", "64KiB"];

/** Large ones go past the journal. */
const lengthOf = (seq: number): number => (seq % 40 === 7 ? 10_000 : seq % 90);

/** Makes streams of a name and deletes them again, and knows of each whether it is to be there. */
class Churner {
  /** What each name that was made holds, `null` where it was deleted. */
  readonly names = new Map<string, string | null>();
  readonly #server: RealServer;

  constructor(server: RealServer) {
    this.#server = server;
  }

  /** Makes the next one, with a body that every fifth time goes past the journal; two of three are deleted again. */
  async turn(): Promise<void> {
    const turn = this.names.size;
    const name = `churn/${turn}`;
    const body = JSON.stringify([{ turn, padding: "y".repeat(turn % 5 === 2 ? 9000 : 20) }]);
    const { status } = await this.#server.insist("PUT", name, { headers: JSON_TYPE, body });
    assert.ok(status === 201 || status === 200, String(status));
    this.names.set(name, body);
    if (turn % 3 === 0) return;
    // Not acknowledged the first time, it may be gone the second.
    const deleted = await this.#server.insist("DELETE", name);
    assert.ok(deleted.status === 204 || deleted.status === 404, String(deleted.status));
    this.names.set(name, null);
  }

  async check(): Promise<void> {
    for (const [name, body] of this.names) {
      const found = await this.#server.insist("GET", name);
      if (body === null) assert.equal(found.status, 404, `${name} is deleted`);
      else assert.equal(found.body, body);
    }
  }
}

/** Lets everybody work until so many appends are acknowledged; the server is killed in the middle of them. */
async function live(server: RealServer, producers: readonly HonestProducer[], churner: Churner, isLast: boolean): Promise<void> {
  let left = APPENDS_PER_LIFE;
  let isKilled = isLast;
  const appending = producers.map(async (producer) => {
    while (left > 0) {
      left -= 1;
      await producer.append(lengthOf(producer.count));
      if (left > APPENDS_PER_LIFE / 2 || isKilled) continue;
      isKilled = true;
      await server.killAndRestart();
    }
  });
  const churning = async (): Promise<void> => {
    while (left > 0) await churner.turn();
  };
  await Promise.all([...appending, churning()]);
}

/** Each stream of one producer is closed with its last append, in the middle of which the server is killed. */
async function closeAll(server: RealServer, producers: readonly HonestProducer[]): Promise<void> {
  const closing = producers
    .filter(({ stream }) => stream !== SHARED)
    .map((producer, index) => producer.append(index % 2 === 0 ? 10_000 : 10, true));
  await Promise.race(closing);
  await Promise.all([...closing, server.killAndRestart(), server.insist("POST", SHARED, { headers: { "Stream-Closed": "true" } })]);
}

test("kill -9 under load loses, doubles, reorders and takes back nothing", async (context) => {
  const server = new RealServer(context, SIZES);
  await server.start();
  const producers = Array.from(
    { length: PRODUCERS },
    (_, index) => new HonestProducer(server, index % 2 === 0 ? SHARED : `own/${index}`, `p${index}`),
  );
  const streams = [...new Set(producers.map(({ stream }) => stream))];
  for (const stream of streams) assert.equal((await server.ask("PUT", stream, { headers: JSON_TYPE })).status, 201);
  const churner = new Churner(server);
  const watchers = streams.flatMap((stream) => [watchByLongPoll, watchByEvents].map((watch) => watch(server, stream)));

  for (let life = 0; life <= KILLS; life += 1) await live(server, producers, churner, life === KILLS);
  await closeAll(server, producers);

  const stored = await Promise.all(streams.map((stream) => messagesOf(server, stream)));
  const seen = await Promise.all(watchers);
  for (const [index, messages] of seen.entries()) {
    assert.deepEqual(messages, stored[Math.floor(index / 2)], `a watcher of ${streams[Math.floor(index / 2)]} saw what is stored`);
  }
  await assertExactlyOnce(server, producers);
  await churner.check();
  await server.killAndRestart();
  // Producers and closures are remembered: who closed is told again that it is done, the others that it is closed.
  for (const producer of producers) {
    const { headers } = await server.ask("HEAD", producer.stream);
    assert.equal(headers["stream-closed"], "true");
    const isCloser = producer.stream !== SHARED;
    assert.equal(await producer.repeatLast(isCloser), isCloser ? 204 : 409);
  }
  await churner.check();
  assert.equal((await server.stop()).status, 0);
  await server.verify();
});
