import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { NatsConnection, NatsMessage } from "../../../../src/storage/nats/client/nats-client.js";
import { Subscriptions } from "../../../../src/storage/nats/jetstream/subscriptions.js";
import { ManualClock } from "../../../helpers/manual-clock.js";

type Callback = Parameters<NatsConnection["subscribe"]>[1]["callback"];

/** A server that refuses some subjects, and says so before it answers a flush. */
class Server implements Pick<NatsConnection, "subscribe" | "flush"> {
  readonly refused = new Set<string>();
  readonly live = new Map<string, Callback>();
  /** What was subscribed to, in order. */
  asked: string[] = [];
  isConnected = true;

  subscribe(subject: string, { callback }: { readonly callback: Callback }): { unsubscribe(): void } {
    this.asked.push(subject);
    this.live.set(subject, callback);
    return { unsubscribe: () => void this.live.delete(subject) };
  }

  /** Ends the subscriptions that are refused now. */
  refuse(...subjects: readonly string[]): void {
    for (const subject of subjects) this.refused.add(subject);
    for (const [subject, callback] of [...this.live]) {
      if (!this.refused.has(subject)) continue;
      this.live.delete(subject);
      callback(new Error(`not ${subject}`), {} as NatsMessage); // the client gives an empty one
    }
  }

  flush(): Promise<void> {
    if (!this.isConnected) return Promise.reject(new Error("disconnected"));
    this.refuse();
    return Promise.resolve();
  }
}

/** Subscriptions to these subjects, and what their subscribers are told. */
function subscribed(...subjects: readonly string[]) {
  const server = new Server();
  const clock = new ManualClock();
  const subscriptions = new Subscriptions(server, clock);
  const told: string[] = [];
  subscriptions.onAgain = (again) => void told.push(`again: ${again.join(" ")}`);
  const ends = subjects.map((subject) =>
    subscriptions.add(subject, {
      onMessage: ({ subject: on }) => void told.push(`message ${on}`),
      onRefused: (why) => void told.push(why),
      onAgain: () => void told.push(`heard ${subject}`),
    }),
  );
  server.asked = [];
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await new Promise(setImmediate);
  };
  return { server, clock, subscriptions, told, ends, pass };
}

describe("subscriptions", () => {
  test("that a server refuses are tried every few seconds until they are taken", async () => {
    const { server, clock, told, pass } = subscribed("a");
    server.refuse("a");
    assert.deepEqual(told.splice(0), ["not a"]);
    await pass(2999);
    assert.deepEqual(server.asked, []);
    await pass(1);
    await pass(3000);
    assert.deepEqual(server.asked, ["a", "a"]);
    assert.deepEqual(told.splice(0), ["not a", "not a"]);

    server.refused.clear();
    await pass(3000);
    assert.deepEqual(told.splice(0), ["heard a", "again: a"]);
    server.live.get("a")?.(null, { subject: "a", data: Buffer.alloc(0) });
    assert.deepEqual(told, ["message a"]);
    assert.equal(clock.pendingCount, 0);
  });

  test("of one kind are tried one at a time, each in its turn, and all of them once one is taken", async () => {
    const names = ["sdr.b.0.s.x", "sdr.b.0.s.y", "sdr.b.0.s.z"];
    const { server, told, pass } = subscribed(...names, "sda.b");
    server.refuse(...names, "sda.b");
    for (const [index, name] of names.entries()) {
      await pass(3000);
      assert.deepEqual(server.asked.splice(0).sort(), ["sda.b", name], `${index}`);
    }
    told.length = 0;
    for (const name of names) server.refused.delete(name);
    await pass(3000);
    assert.deepEqual(server.asked.splice(0).sort(), ["sda.b", ...names]);
    const good = told.filter((line) => !line.startsWith("not ")).sort();
    assert.deepEqual(good, ["again: sdr.b.0.s.x", ...names.map((name) => `heard ${name}`)]);
    await pass(3000);
    assert.deepEqual(server.asked, ["sda.b"]);
  });

  test("are tried at once on a new connection, and again where that is lost meanwhile", async () => {
    const { server, subscriptions, told, pass } = subscribed("a");
    server.refuse("a");
    server.refused.clear();
    server.isConnected = false;
    await subscriptions.tryAgain();
    assert.deepEqual(told.splice(0), ["not a"]);
    assert.equal(server.live.size, 0, "nobody is subscribed twice");
    server.isConnected = true;
    await Promise.all([subscriptions.tryAgain(), subscriptions.tryAgain()]);
    assert.deepEqual(told, ["heard a", "again: a"]);
    await pass(10_000);
    assert.deepEqual(server.asked, ["a", "a"]);
  });

  test("that nobody is told of are tried ever more rarely, until something has changed", async () => {
    const { server, subscriptions, pass } = subscribed("b");
    for (const subject of ["optional", "other"]) subscriptions.add(subject, { onMessage: () => {} });
    server.asked = [];
    server.refuse("optional");
    /** The seconds of so many after which it was tried. */
    const triedIn = async (seconds: number): Promise<number[]> => {
      const tried: number[] = [];
      for (let second = 1; second <= seconds; second += 1) {
        await pass(1000);
        if (server.asked.splice(0).includes("optional")) tried.push(second);
      }
      return tried;
    };
    assert.deepEqual(await triedIn(214), [3, 9, 21, 45, 93, 153, 213]);
    server.refuse("other");
    assert.deepEqual(await triedIn(10), [3, 9], "another was refused");
    server.refused.delete("other");
    assert.deepEqual(await triedIn(22), [11, 14, 20], "it was taken");
    await subscriptions.tryAgain();
    server.asked = [];
    assert.deepEqual(await triedIn(10), [3, 9], "on a new connection");
    server.refuse("b");
    assert.deepEqual(await triedIn(10), [3, 6, 9], "one that can't be done without");
  });

  test("that have ended are not tried", async () => {
    const { server, ends, pass } = subscribed("a", "b");
    server.refuse("a");
    for (const end of ends) end();
    assert.equal(server.live.size, 0);
    await pass(3000);
    assert.deepEqual(server.asked, []);
  });

  test("are not tried any more once all is closed", async () => {
    const { server, clock, subscriptions, pass } = subscribed("a", "b");
    server.refuse("a");
    subscriptions.stop();
    server.refuse("b");
    assert.equal(clock.pendingCount, 0);
    await subscriptions.tryAgain();
    await pass(3000);
    assert.deepEqual(server.asked, []);
  });
});
