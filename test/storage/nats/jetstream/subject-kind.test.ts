import assert from "node:assert/strict";
import { test } from "node:test";
import { kindOf } from "../../../../src/storage/nats/jetstream/subject-kind.js";

for (const [subject, kind] of [
  ["sd.chats.0.s.a_2Fb", "sd.chats"],
  ["sda.chats", "sda.chats"],
  ["_INBOX.abc.*", "_INBOX.abc"],
  ["$JS.API.STREAM.MSG.GET.SD_chats_0", "$JS.API.STREAM.MSG"],
  ["$JS.API.STREAM.INFO.SD_chats_touch", "$JS.API.STREAM.INFO"],
  ["$JS.API.CONSUMER.CREATE.SD_chats_0.sd_0123", "$JS.API.CONSUMER.CREATE"],
] as const)
  test(`${subject} is told of as ${kind}`, () => assert.equal(kindOf(subject), kind));
