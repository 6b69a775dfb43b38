import assert from "node:assert/strict";
import { test } from "node:test";
import { whyNotPublish } from "../../../../src/storage/nats/jetstream/permissions.js";
import type { Answer, Requests } from "../../../../src/storage/nats/jetstream/requests.js";

for (const [answer, why] of [
  [{ kind: "refused", why: "a violation" }, "a violation"],
  [{ kind: "silence" }, null],
  [{ kind: "nobody" }, null],
] as const satisfies readonly (readonly [Answer, string | null])[])
  test(`whether it may publish, where the question ends so: ${answer.kind}`, async () => {
    const asked: unknown[] = [];
    const ask = (subject: string, ...rest: unknown[]): Promise<Answer> => {
      asked.push(subject, rest.at(-1));
      return Promise.resolve(answer);
    };
    assert.equal(await whyNotPublish({ ask } as unknown as Requests, "sd.b.0.r"), why); // it uses no more of them
    // What is sent must never be stored: no JetStream stream has this name.
    assert.deepEqual(asked, ["sd.b.0.r", [["Nats-Expected-Stream", "none"]]]);
  });
