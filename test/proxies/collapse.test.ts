import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ask } from "../helpers/real-server.js";
import { Crowd } from "./crowd.js";
import { lacksNginx, Nginx } from "./nginx.js";
import { Origin } from "./origin.js";

const TEXT = { "Content-Type": "text/plain" };
const READERS = 1000;
/** Requests that one append may cost the origin, however many read it. */
const FEW = 5;
const TIMEOUT_MS = 300_000;

describe("a thousand long-poll readers behind nginx", { skip: lacksNginx, timeout: TIMEOUT_MS }, () => {
  test("cost the origin a few requests an append, and get every byte and the close", async (context) => {
    const origin = await Origin.start(context, { longPollTimeoutMs: 60_000 });
    const nginx = await Nginx.start(context, origin.port);
    const stream = `${origin.url}s`;
    await ask(stream, "PUT", { headers: TEXT });
    const crowd = new Crowd(context, `${nginx.url}s`);
    crowd.join(READERS, "-1");
    let expected = "";
    for (let append = 0; append < 5; append += 1) {
      await nginx.holds(READERS);
      const readsBefore = origin.reads;
      const text = `append ${append};`;
      expected += text;
      await ask(stream, "POST", { headers: TEXT, body: text });
      await crowd.all((reader) => reader.text === expected);
      await nginx.holds(READERS);
      const cost = origin.reads - readsBefore;
      assert.ok(cost < FEW, `append ${append} cost ${cost} requests`);
    }
    const readsBefore = origin.reads;
    await ask(stream, "POST", { headers: { "Stream-Closed": "true" } });
    await crowd.end();
    assert.ok(origin.reads - readsBefore < FEW, `the close cost ${origin.reads - readsBefore} requests`);
    assert.ok(crowd.readers.every(({ text }) => text === expected));
  });

  test("cost no more after the next append when they came one after another", async (context) => {
    const origin = await Origin.start(context, { longPollTimeoutMs: 60_000 });
    const nginx = await Nginx.start(context, origin.port);
    const stream = `${origin.url}s`;
    await ask(stream, "PUT", { headers: TEXT });
    const crowd = new Crowd(context, `${nginx.url}s`);
    let written = "";
    const append = async (text: string): Promise<void> => {
      written += text;
      await ask(stream, "POST", { headers: TEXT, body: text });
      await crowd.all((reader) => reader.text === written);
      await nginx.holds(crowd.readers.length);
    };
    const [groups, groupSize] = [10, 50];
    for (let group = 0; group < groups; group += 1) {
      // They have read what was there, and have no cursor yet.
      crowd.join(groupSize, "-1");
      await append(`${group};`);
    }
    const readsBefore = origin.reads;
    const rounds = 3;
    for (let round = 0; round < rounds; round += 1) await append(`round ${round};`);
    assert.ok(origin.reads - readsBefore < FEW * rounds, `${rounds} appends cost ${origin.reads - readsBefore} requests`);
    await ask(stream, "POST", { headers: { ...TEXT, "Stream-Closed": "true" }, body: "end" });
    await crowd.end();
    assert.ok(crowd.readers.every(({ text }) => text === `${written}end`));
  });

  test("cost a few requests also where nothing comes for longer than a long-poll lasts", async (context) => {
    const origin = await Origin.start(context, { longPollTimeoutMs: 2000 });
    const nginx = await Nginx.start(context, origin.port);
    await ask(`${origin.url}s`, "PUT", { headers: TEXT });
    const crowd = new Crowd(context, `${nginx.url}s`);
    // Who comes later than a second after the others has an answer, and a cursor, of its own: a slow machine is slower.
    crowd.join(READERS, "-1", { inStep: true });
    const rounds = 3;
    await crowd.all(({ timeouts }) => timeouts >= rounds);
    const most = Math.max(...crowd.readers.map(({ timeouts }) => timeouts));
    assert.ok(origin.reads < FEW * (most + 1), `${most} rounds cost ${origin.reads} requests`);
    await ask(`${origin.url}s`, "POST", { headers: { "Stream-Closed": "true" } });
    await crowd.end();
  });
});
