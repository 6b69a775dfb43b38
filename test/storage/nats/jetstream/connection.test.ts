import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { ClusterConnection } from "../../../../src/storage/nats/jetstream/connection.js";
import type { NatsClient, NatsConnection, NatsFault, NatsMessage, NatsStatus } from "../../../../src/storage/nats/client/nats-client.js";
import { keptLog } from "../../../helpers/engine.js";
import { ManualClock } from "../../../helpers/manual-clock.js";

type Callback = Parameters<NatsConnection["subscribe"]>[1]["callback"];

/** The connection of a client to servers that refuse some subscriptions. */
class Connection implements NatsConnection {
  readonly info = { version: "2.12.0", server_name: "n1", max_payload: 1024, jetstream: true, connect_urls: ["n1"] };
  readonly refused = new Set<string>();
  readonly #live = new Map<string, Callback>();
  readonly #said: NatsStatus[] = [];
  #wake: () => void = () => {};
  /** The servers that are next. */
  readonly next: string[] = [];

  publish(): void {}

  subscribe(subject: string, { callback }: { readonly callback: Callback }): { unsubscribe(): void } {
    this.#live.set(subject, callback);
    return { unsubscribe: () => void this.#live.delete(subject) };
  }

  /** Ends the subscriptions that are refused now. */
  async flush(): Promise<void> {
    for (const subject of this.refused) {
      const callback = this.#live.get(subject);
      this.#live.delete(subject);
      callback?.(new Error(`not ${subject}`), {} as NatsMessage); // the client gives an empty one
    }
  }

  /** Says what has become of the connection, and waits until that was heard. */
  async say(type: string, error?: NatsFault): Promise<void> {
    this.#said.push(error === undefined ? { type } : { type, error });
    this.#wake();
    await new Promise(setImmediate);
  }

  async *status(): AsyncGenerator<NatsStatus> {
    for (;;) {
      const next = this.#said.shift();
      if (next !== undefined) yield next;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  async reconnect(): Promise<void> {
    await this.say("disconnect");
    this.info.server_name = this.next.shift() ?? assert.fail("no server is next");
    await this.say("reconnect");
  }

  async close(): Promise<void> {}
}

async function connected(t: TestContext, servers: readonly string[]) {
  const made = new Connection();
  const clock = new ManualClock();
  const kept = keptLog();
  const client: NatsClient = {
    connect: () => Promise.resolve(made),
    headers: () => ({ code: 0, description: "", get: () => "", append: () => {} }),
    credsAuthenticator: () => assert.fail("nobody signs in"),
  };
  const address = { servers, user: null, isTls: false, bucket: "b", replicas: null, shards: null };
  const connection = await ClusterConnection.open({ address, credsFile: "", client, clock, log: kept.log });
  t.after(() => connection.close());
  return { made, clock, connection, kept };
}

describe("a connection to a cluster", () => {
  test("has what was missed read again once a refused subscription is taken", async (t) => {
    const { made, clock, connection } = await connected(t, ["n1"]);
    const told: string[] = [];
    connection.onGap = () => void told.push("gap");
    connection.subscribe("sda.b", ({ subject }) => void told.push(subject));
    made.refused.add("sda.b");
    await made.flush();
    await made.say("error", { operation: "subscription", subject: "sda.b", message: "no" });
    clock.advance(3000);
    await new Promise(setImmediate);
    assert.deepEqual(told, []);
    made.refused.clear();
    clock.advance(6000);
    await new Promise(setImmediate);
    assert.deepEqual(told, ["gap"]);
  });

  test("leaves a server that refuses something for another, which it tells of once", async (t) => {
    const { made, connection, kept } = await connected(t, ["n1", "n2"]);
    const moves: string[] = [];
    connection.onMoved = () => void moves.push("moved");
    connection.onGap = () => void moves.push("gap");
    // The client may come to the server once more that it has left.
    made.next.push("n1", "n2", "n1", "n1", "n1");
    for (const [isFirst, name] of [
      [true, "n2"],
      [false, "n1"],
      [false, "n1"],
    ] as const) {
      assert.equal(connection.leaveServer("refusing", isFirst), true);
      for (let turn = 0; turn < 6; turn += 1) await new Promise(setImmediate);
      assert.equal(made.info.server_name, name);
      await made.say("error", { operation: "publish", subject: "sd.b.0.s.x", message: "no" });
    }
    assert.deepEqual(made.next, [], "it stays with the one that it has left where there is no other");
    assert.deepEqual(moves, ["moved", "gap", "moved", "gap", "moved", "gap"]);
    const told = kept.lines.filter(({ level }) => level !== "debug").map(({ level, message }) => `${level} ${message}`);
    assert.deepEqual(told, [
      "warn the NATS server refuses what streamdir needs: trying another",
      "warn the connection to the NATS cluster is lost",
      "info connected to the NATS cluster again",
      "error the user of the NATS servers may not use a subject",
    ]);
  });

  test("tells of what is refused anew on the next connection", async (t) => {
    const { made, kept } = await connected(t, ["n1"]);
    const refuse = () => made.say("error", { operation: "publish", subject: "sda.b", message: "no" });
    for (const type of ["error", "disconnect", "reconnect", "error"]) await (type === "error" ? refuse() : made.say(type));
    await refuse();
    assert.equal(kept.lines.filter(({ message }) => message.includes("may not use a subject")).length, 2);
  });

  test("stays at a server that can be used, though it came from one that could not a moment ago", async (t) => {
    const { made, clock, connection } = await connected(t, ["n1", "n2"]);
    made.next.push("without", "n2");
    made.info.jetstream = false;
    await made.reconnect();
    assert.notEqual(connection.fault, null);
    made.info.jetstream = true;
    await made.reconnect();
    assert.equal(connection.fault, null);
    const left = made.info.server_name;
    made.next.push("other");
    clock.advance(2000);
    for (let turn = 0; turn < 6; turn += 1) await new Promise(setImmediate);
    assert.deepEqual([made.info.server_name, made.next], [left, ["other"]]);
  });

  test("leaves a server that can't be used for another, and tells of each such once", async (t) => {
    const { made, clock, connection, kept } = await connected(t, ["n1", "n2"]);
    made.next.push("without", "without", "n2");
    const goOn = async (): Promise<void> => {
      made.info.jetstream = made.next[0] !== "without";
      clock.advance(2000);
      for (let turn = 0; turn < 6; turn += 1) await new Promise(setImmediate);
    };
    made.info.jetstream = false;
    await made.reconnect();
    const why = "the NATS server without has JetStream turned off";
    for (let tries = 0; tries < 2; tries += 1) {
      assert.equal(connection.fault, why);
      await goOn();
    }
    assert.deepEqual([connection.fault, made.info.server_name, made.next], [null, "n2", []]);
    await goOn();
    assert.equal(kept.lines.filter(({ fields }) => fields["fault"] === why).length, 1);
  });

  test("keeps the only server that it knows, whatever that refuses", async (t) => {
    const { made, connection } = await connected(t, ["n1"]);
    assert.equal(connection.leaveServer("refusing", true), false);
    made.info.connect_urls = ["n1", "n2"];
    made.next.push("n2");
    assert.equal(connection.leaveServer("refusing", true), true);
  });

  test("is told of as an error once there has been none for four seconds, with the reason, and then of the next", async (t) => {
    const { made, clock, kept } = await connected(t, ["n1"]);
    const told = () => kept.lines.splice(0).map(({ level, message, fields }) => [level, message, fields["fault"]]);
    await made.say("disconnect");
    await made.say("error", { message: "Authorization Violation" });
    // The client says so of each attempt.
    clock.advance(3999);
    await made.say("disconnect");
    assert.deepEqual(told(), [
      ["warn", "the connection to the NATS cluster is lost", undefined],
      ["warn", "a NATS server reports a fault", "Authorization Violation"],
    ]);
    clock.advance(1);
    assert.deepEqual(told(), [["error", "no server of the NATS cluster is connected", "Authorization Violation"]]);
    clock.advance(60_000);
    await made.say("reconnect");
    assert.deepEqual(told(), [["info", "connected to the NATS cluster again", undefined]]);
    await made.say("disconnect");
    clock.advance(3000);
    await made.say("reconnect");
    clock.advance(60_000);
    assert.deepEqual(
      told().map(([level]) => level),
      ["warn", "info"],
    );
  });

  test("says of an outage that it is over, also where a server was left again for what it refuses", async (t) => {
    const { made, clock, connection, kept } = await connected(t, ["n1", "n2"]);
    t.mock.method(made, "reconnect", () => made.say("disconnect"));
    connection.leaveServer("silent", false);
    await new Promise(setImmediate);
    clock.advance(4000);
    made.info.server_name = "n2";
    await made.say("reconnect");
    const told = kept.lines.filter(({ level }) => level !== "debug").map(({ level, message }) => `${level} ${message}`);
    assert.deepEqual(told, ["error no server of the NATS cluster is connected", "info connected to the NATS cluster again"]);
  });

  test("takes as much in a message as the server that it has now, and says so where that is less", async (t) => {
    const { made, connection, kept } = await connected(t, ["n1"]);
    assert.equal(connection.maxPayloadBytes, 1024);
    await made.say("disconnect");
    made.info.max_payload = 512;
    await made.say("reconnect");
    assert.equal(connection.maxPayloadBytes, 512);
    const told = kept.lines.filter(({ message }) => message === "a message of the NATS servers may have less than before");
    assert.deepEqual(told, [{ level: "warn", message: told[0]?.message, fields: { maxPayloadBytes: 512 } }]);
  });
});
