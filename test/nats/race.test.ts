import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { headers } from "@nats-io/transport-node";
import { chainsOf, type Chains } from "./chains.js";
import { pause } from "./load/fronts.js";
import { NatsCluster } from "./nats-cluster.js";
import { natsServerPath, oldNatsServerPath } from "./nats-server-path.js";
import { EXPECTED, RawCluster } from "./raw-cluster.js";

/** How long two clients race; more with `STREAMDIR_FAULT_SECONDS`. */
const SECONDS = Number(process.env["STREAMDIR_FAULT_SECONDS"] ?? 2);
const STREAM = "RACE";
const SUBJECTS = Array.from({ length: 20 }, (_, at) => `race.${at}`);

test("two clients at once never both follow one message", async (context) => {
  const { messages, broken } = await raceOn(context, await natsServerPath());
  assert.ok(messages > 500, `${messages} messages`);
  assert.deepEqual(broken, []);
});

test("the same race finds the server of Debian's release out", async (context) => {
  const { broken } = await raceOn(context, await oldNatsServerPath(), true);
  assert.ok(broken.length > 0, "its compare-and-swap held");
});

async function raceOn(context: TestContext, program: string, isOld = false): Promise<Chains> {
  const cluster = await NatsCluster.start({ size: 3, program, isOld });
  context.after(() => cluster.stop());
  const clients = await Promise.all(cluster.servers.slice(0, 2).map((server) => RawCluster.connect([server])));
  context.after(async () => void (await Promise.all(clients.map((client) => client.close()))));
  const [first] = clients;
  assert.ok(first);
  await makeStream(first);
  const untilMs = performance.now() + SECONDS * 1000;
  const racing = clients.flatMap((client) => SUBJECTS.map((subject) => race(client, subject, untilMs)));
  const stored = (await Promise.all(racing)).reduce((sum, count) => sum + count, 0);
  const chains = await chainsOf([first.messagesOfLeader(STREAM, "race.>")]);
  context.diagnostic(`${chains.messages} messages, ${stored} acknowledged, ${chains.broken.length} broken chains`);
  return chains;
}

/** A cluster that has just started may have no leader yet. */
async function makeStream(client: RawCluster): Promise<void> {
  const config = { name: STREAM, subjects: ["race.>"], num_replicas: 3, storage: "file", retention: "limits", allow_direct: true };
  for (let tries = 0; ; tries += 1) {
    const answer = await client.call(`STREAM.CREATE.${STREAM}`, config);
    if (answer !== null && answer["error"] === undefined) return;
    assert.ok(tries < 100, `no stream can be made: ${JSON.stringify(answer)}`);
    await pause(200);
  }
}

/** Publishes behind what is last, as far as this client knows, as a front end does; gives how often it was stored. */
async function race(client: RawCluster, subject: string, untilMs: number): Promise<number> {
  let expected = 0;
  let stored = 0;
  while (performance.now() < untilMs) {
    const header = headers();
    header.append(EXPECTED, String(expected));
    const answer = await client.connection.request(subject, "x".repeat(100), { headers: header, timeout: 2000 }).catch(() => null);
    const sequence: unknown = answer === null ? null : Reflect.get(answer.json<object>(), "seq");
    if (typeof sequence === "number" && sequence > 0) {
      stored += 1;
      expected = sequence;
    } else expected = await lastOf(client, subject);
  }
  return stored;
}

async function lastOf(client: RawCluster, subject: string): Promise<number> {
  const last = (await client.call(`STREAM.MSG.GET.${STREAM}`, { last_by_subj: subject }))?.["message"];
  const sequence: unknown = typeof last === "object" && last !== null ? Reflect.get(last, "seq") : 0;
  return Number(sequence);
}
