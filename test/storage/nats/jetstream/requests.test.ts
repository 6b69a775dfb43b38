import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { describe, test } from "node:test";
import type { NatsClient, NatsConnection, NatsMessage } from "../../../../src/storage/nats/client/nats-client.js";
import { Requests } from "../../../../src/storage/nats/jetstream/requests.js";
import { Subscriptions } from "../../../../src/storage/nats/jetstream/subscriptions.js";
import { ManualClock } from "../../../helpers/manual-clock.js";

const CLIENT: Pick<NatsClient, "headers"> = { headers: () => ({ code: 0, description: "", get: () => "", append: () => undefined }) };

/** A connection on which nothing is answered unless a test does. */
class SilentConnection extends EventEmitter<{ published: [] }> {
  readonly subjects: string[] = [];
  readonly replies: string[] = [];
  #take: (message: NatsMessage) => void = () => undefined;
  #refuse: (error: Error) => void = () => undefined;

  publish(subject: string, _payload: unknown, { reply = "" }: { readonly reply?: string }): void {
    if (subject === "too-large") throw new Error("max_payload");
    this.subjects.push(subject);
    this.replies.push(reply);
    this.emit("published");
  }

  subscribe(_subject: string, { callback }: Parameters<NatsConnection["subscribe"]>[1]): { unsubscribe(): void } {
    this.#take = (message) => callback(null, message);
    this.#refuse = (error) => callback(error, {} as NatsMessage); // the client gives an empty one
    return { unsubscribe: () => undefined };
  }

  flush(): Promise<void> {
    return Promise.resolve();
  }

  /** The user may not subscribe. */
  forbid(why: string): void {
    this.#refuse(new Error(why));
  }

  answer(reply: string): void {
    this.#take({ subject: reply, data: Buffer.from("{}") });
  }
}

function requestsOn(connection: SilentConnection, clock = new ManualClock()): Requests {
  const used = connection as unknown as NatsConnection; // it uses no more of it, nor of the client
  return new Requests(CLIENT as NatsClient, used, new Subscriptions(used, clock), clock, () => clock.nowMs());
}

describe("requests", () => {
  test("of one turn go out together, in their order", async () => {
    const connection = new SilentConnection();
    const requests = requestsOn(connection);
    const asked = ["a", "b", "c"].map((subject) => requests.ask(subject, "", 1000));
    assert.deepEqual(connection.subjects, []);
    await once(connection, "published");
    assert.deepEqual(connection.subjects, ["a", "b", "c"]);
    for (const reply of connection.replies) connection.answer(reply);
    assert.deepEqual(
      (await Promise.all(asked)).map(({ kind }) => kind),
      ["reply", "reply", "reply"],
    );
  });

  test("whose subject the user may not use are refused, one for each time that a server says so", async () => {
    const connection = new SilentConnection();
    const requests = requestsOn(connection);
    const asked = ["a", "a", "b"].map((subject) => requests.ask(subject, "", 1000));
    await once(connection, "published");
    requests.refuse("a", "not a");
    requests.refuse("c", "not c");
    assert.deepEqual(await asked[0], { kind: "refused", why: "not a" });
    for (const reply of connection.replies) connection.answer(reply);
    assert.deepEqual([(await asked[1])?.kind, (await asked[2])?.kind], ["reply", "reply"]);
  });

  test("are refused where the user may not have answers, until it may", async () => {
    const connection = new SilentConnection();
    const clock = new ManualClock();
    const requests = requestsOn(connection, clock);
    const sent = requests.ask("sent", "", 1000);
    await once(connection, "published");
    const asked = requests.ask("a", "", 1000);
    connection.forbid("no inbox");
    assert.deepEqual(await sent, { kind: "silence" }, "it may have been carried out");
    assert.deepEqual(await asked, { kind: "refused", why: "no inbox" });
    assert.deepEqual(await requests.ask("b", "", 1000), { kind: "refused", why: "no inbox" });
    assert.deepEqual(await requests.gatherDeliveries("c", "", 1000, () => true), []);
    assert.deepEqual(connection.subjects, ["sent"]);
    assert.equal(requests.deafness, "no inbox");

    clock.advance(3000);
    await new Promise(setImmediate);
    assert.equal(requests.deafness, null);
    const again = requests.ask("again", "", 1000);
    await once(connection, "published");
    connection.answer(connection.replies.at(-1) ?? "");
    assert.equal((await again).kind, "reply");
  });

  test("that ended before they went out are never sent", async () => {
    const connection = new SilentConnection();
    const clock = new ManualClock();
    const requests = requestsOn(connection, clock);
    const late = requests.ask("late", "", 1000);
    clock.advance(1000);
    const lost = requests.ask("lost", "", 1000);
    requests.setConnected(false);
    requests.setConnected(true);
    const sent = requests.ask("sent", "", 1000);
    await once(connection, "published");
    connection.answer(connection.replies[0] ?? "");
    assert.deepEqual(connection.subjects, ["sent"]);
    assert.deepEqual([(await late).kind, (await lost).kind, (await sent).kind], ["silence", "silence", "reply"]);
  });

  test("end in silence each at its own time, whichever was asked first, and those that were answered do not", async () => {
    const connection = new SilentConnection();
    const clock = new ManualClock();
    const requests = requestsOn(connection, clock);
    const ended: string[] = [];
    const ask = (subject: string, timeoutMs: number): void => {
      void requests.ask(subject, "", timeoutMs).then(({ kind }) => ended.push(`${subject} ${kind}`));
    };
    const endedAfter = async (ms: number): Promise<string[]> => {
      clock.advance(ms);
      await Promise.resolve();
      return ended.splice(0);
    };
    ask("long", 3000);
    ask("short", 1000);
    ask("answered", 500);
    await once(connection, "published");
    connection.answer(connection.replies[2] ?? "");
    assert.deepEqual(await endedAfter(0), ["answered reply"]);
    assert.deepEqual(await endedAfter(999), []);
    assert.deepEqual(await endedAfter(1), ["short silence"]);
    assert.deepEqual(await endedAfter(1999), []);
    assert.deepEqual(await endedAfter(1), ["long silence"]);
  });

  test("wait for no time once all are over", async () => {
    const connection = new SilentConnection();
    const clock = new ManualClock();
    const requests = requestsOn(connection, clock);
    const asked = requests.ask("a", "", 1000);
    assert.equal(clock.pendingCount, 1);
    clock.advance(1000);
    assert.deepEqual(await asked, { kind: "silence" });
    assert.equal(clock.pendingCount, 0);
    void requests.ask("b", "", 1000);
    requests.close();
    assert.equal(clock.pendingCount, 0);
  });

  test("whose answer has several messages end with those that came, once no other has come for as long", async () => {
    const connection = new SilentConnection();
    const clock = new ManualClock();
    const requests = requestsOn(connection, clock);
    const gathered = requests.gather("a", "", 1000, () => false);
    await once(connection, "published");
    const [reply = ""] = connection.replies;
    for (let count = 0; count < 3; count += 1) {
      clock.advance(900);
      connection.answer(reply);
    }
    clock.advance(999);
    connection.answer(reply);
    clock.advance(1000);
    assert.equal((await gathered).length, 4);
    connection.answer(reply);
    assert.equal(clock.pendingCount, 0);
  });

  test("that the client refuses have gone to nobody", async () => {
    assert.deepEqual(await requestsOn(new SilentConnection()).ask("too-large", "", 1000), { kind: "nobody" });
  });
});
