import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { headsOf } from "../../../../src/storage/nats/jetstream/heads.js";
import type { NatsMessage } from "../../../../src/storage/nats/client/nats-client.js";
import { LogUnavailableError } from "../../../../src/storage/nats/log/replicated-log.js";
import { VirtualClock } from "../../../helpers/virtual-clock.js";

/** A head as a consumer delivers it. */
function delivery(sequence: number, delivered: number, pending: number): NatsMessage {
  const headers = { code: 0, values: () => [], get: (name: string) => (name === "Sd" ? `head ${sequence}` : "0") };
  const reply = `$JS.ACK.SD_b_0.c.1.${sequence}.${delivered}.1764000000000000000.${pending}`;
  return { subject: "", data: new Uint8Array(0), reply, headers } as unknown as NatsMessage; // no more is read
}

/** A stream whose fetches are answered in turn with the given, and the last of them from then on. */
function sourceOf(pending: number, fetches: readonly (readonly NatsMessage[])[]) {
  const calls: string[] = [];
  const clock = new VirtualClock();
  let fetched = 0;
  const source = {
    call: (call: string) => {
      calls.push(call);
      return Promise.resolve({ num_pending: pending });
    },
    unavailable: (stream: string, _call: string, otherwise: string) => new LogUnavailableError(otherwise, stream),
    requests: {
      gatherDeliveries: () => {
        const answer = fetches[Math.min(fetched, fetches.length - 1)] ?? [];
        fetched += 1;
        return Promise.resolve(answer);
      },
    },
    clock,
  };
  const list = async (): Promise<number[]> => {
    const sequences: number[] = [];
    for await (const { sequence } of headsOf(source, "SD_b_0", "sd.b.0.s.*")) sequences.push(sequence);
    return sequences;
  };
  return { calls, fetchedTimes: () => fetched, list: () => clock.through(list()) };
}

describe("the heads of a shard", () => {
  test("are fetched until none is pending, and their consumer is deleted", async () => {
    const { list, calls } = sourceOf(3, [[delivery(4, 1, 2), delivery(5, 2, 1)], [delivery(9, 3, 0)]]);
    assert.deepEqual(await list(), [4, 5, 9]);
    assert.deepEqual(calls, ["CONSUMER.CREATE.SD_b_0", "CONSUMER.DELETE.SD_b_0"]);
  });

  test("are asked for again where the server does not know of the consumer yet", async () => {
    const { list, fetchedTimes } = sourceOf(1, [[], [], [delivery(4, 1, 0)]]);
    assert.deepEqual(await list(), [4]);
    assert.equal(fetchedTimes(), 3);
  });

  test("are not to be had where it never does", async () => {
    const { list, calls } = sourceOf(1, [[]]);
    await assert.rejects(list(), /SD_b_0 can't be listed: its consumer is gone/);
    assert.deepEqual(calls.at(-1), "CONSUMER.DELETE.SD_b_0");
  });

  test("are not taken where one was lost on its way", async () => {
    const { list } = sourceOf(2, [[delivery(5, 2, 0)]]);
    await assert.rejects(list(), /a head of SD_b_0 was lost on its way/);
  });
});
