import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { freePort } from "../helpers/free-ports.js";
import { ask } from "../helpers/real-server.js";
import { tempDir } from "../helpers/temp-dir.js";
import { lacksCaddy, startCaddy, startCaddyProcess } from "./caddy.js";
import { Crowd } from "./crowd.js";
import { Origin } from "./origin.js";
import { proxyPromises } from "./promises.js";

const TEXT = { "Content-Type": "text/plain" };

describe("behind Caddy as docs/Caddyfile has it", { skip: lacksCaddy, timeout: 300_000 }, () => {
  proxyPromises(startCaddy);

  test("HEAD tells the tail, and every read reaches the origin: there is no cache", async (context) => {
    const origin = await Origin.start(context);
    const url = await startCaddy(context, origin.port);
    await ask(`${url}s`, "PUT", { headers: TEXT, body: "one" });
    for (let reader = 0; reader < 3; reader += 1) assert.equal((await ask(`${url}s?offset=-1`, "GET")).body, "one");
    assert.equal(origin.reads, 3);
    const appended = await ask(`${origin.url}s`, "POST", { headers: TEXT, body: "two" });
    assert.equal((await ask(`${url}s`, "HEAD")).headers["stream-next-offset"], appended.headers["stream-next-offset"]);
  });

  test("what is no stream is not found, so that no check of it passes", async (context) => {
    const url = await startCaddy(context, (await Origin.start(context)).port);
    assert.equal((await ask(new URL("/health", url).href, "GET")).status, 404);
  });

  test("while the server is away a request without a body waits for it; one with a body is a 502 of Caddy's, and not stored", async (context) => {
    const [dir, port] = [tempDir(), await freePort()];
    const before = await Origin.start(context, { dir }, port);
    await ask(`${before.url}s`, "PUT", { headers: TEXT });
    await before.stop();
    // At this level it logs each try.
    const { url, process } = await startCaddyProcess(context, port, ["debug"]);
    const tried = (method: string): Promise<string> =>
      process.stderrLine(new RegExp(`"upstream roundtrip".*"method":"${method}".*connection refused`));
    const [read, appended] = [ask(`${url}s?offset=-1`, "GET"), ask(`${url}s`, "POST", { headers: TEXT, body: "one" })];
    await Promise.all([tried("GET"), tried("POST")]);
    const origin = await Origin.start(context, { dir }, port);
    assert.equal((await read).status, 200);
    const { status, headers, body } = await appended;
    assert.deepEqual([status, headers["content-type"], body], [502, undefined, ""]);
    assert.equal((await ask(`${origin.url}s?offset=-1`, "GET")).body, "");
  });

  test("a ticket is in no log", async (context) => {
    const origin = await Origin.start(context);
    await origin.stop();
    const { url, process } = await startCaddyProcess(context, origin.port);
    const headers = { Referer: `${url}s?ticket=v1.secret` };
    assert.equal((await ask(`${url}s?offset=-1&ticket=v1.secret`, "GET", { headers })).status, 502);
    assert.match(await process.stderrLine(/connection refused/), /"uri":"\/v1\/stream\/s\?offset=-1&ticket=REDACTED"/);
    assert.ok(!process.stderrText().includes("v1.secret"));
  });

  test("a thousand long-poll readers get every byte and the close", async (context) => {
    const origin = await Origin.start(context, { longPollTimeoutMs: 60_000 });
    const url = await startCaddy(context, origin.port);
    await ask(`${origin.url}s`, "PUT", { headers: TEXT });
    const crowd = new Crowd(context, `${url}s`);
    crowd.join(1000, "-1");
    let expected = "";
    for (const text of ["one;", "two;"]) {
      expected += text;
      await ask(`${origin.url}s`, "POST", { headers: TEXT, body: text });
      await crowd.all((reader) => reader.text === expected);
    }
    await ask(`${origin.url}s`, "POST", { headers: { "Stream-Closed": "true" } });
    await crowd.end();
    assert.ok(crowd.readers.every(({ text }) => text === expected));
  });
});
