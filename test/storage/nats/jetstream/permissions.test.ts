import assert from "node:assert/strict";
import { test } from "node:test";
import { kindOf, whyNotPublish } from "../../../../src/storage/nats/jetstream/permissions.js";
import type { Answer, Requests } from "../../../../src/storage/nats/jetstream/requests.js";

for (const [subject, kind] of [
  ["sd.chats.0.s.a_2Fb", "sd.chats"],
  ["sda.chats", "sda.chats"],
  ["_INBOX.abc.*", "_INBOX.abc"],
  ["$JS.API.STREAM.MSG.GET.SD_chats_0", "$JS.API.STREAM.MSG.GET"],
  ["$JS.API.CONSUMER.CREATE.SD_chats_0.sd_0123", "$JS.API.CONSUMER.CREATE.SD_chats_0"],
] as const)
  test(`${subject} is told of as ${kind}`, () => assert.equal(kindOf(subject), kind));

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
