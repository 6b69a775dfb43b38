import assert from "node:assert/strict";
import { Agent } from "node:http";
import { test } from "node:test";
import type { TestScope } from "../helpers/process.js";
import { ask, RealServer } from "../helpers/real-server.js";
import { EventFollower } from "./follow.js";

const TEXT = { "Content-Type": "text/plain" };

/** Starts a proxy before the server on a port of this machine; gives what a stream's name is appended to. */
export type StartBefore = (scope: TestScope, originPort: number) => Promise<string>;

/** What a client of the real server may count on behind every proxy that is documented. */
export function proxyPromises(startBefore: StartBefore): void {
  const start = async (scope: TestScope, args: readonly string[] = []): Promise<string> => {
    const server = new RealServer(scope, ["--trust-proxy", "127.0.0.1", ...args]);
    await server.start();
    return startBefore(scope, Number(new URL(server.url).port));
  };

  test("each append reaches an SSE reader as it is made, a comment when there is none, and at last the close", async (context) => {
    const url = await start(context, ["--sse-heartbeat", "300ms"]);
    await ask(`${url}s`, "PUT", { headers: TEXT });
    const reader = await EventFollower.start(context, `${url}s?live=sse&offset=-1`);
    assert.equal(reader.headers["content-type"], "text/event-stream");
    assert.ok(reader.headers["stream-next-offset"] !== undefined && reader.headers["stream-cursor"] !== undefined);
    let expected = "";
    for (const text of ["one", "two", "three"]) {
      await ask(`${url}s`, "POST", { headers: TEXT, body: text });
      expected += expected === "" ? text : `|${text}`;
      await reader.until(({ data }) => data === expected);
    }
    await reader.until(({ comments }) => comments > 0);
    await ask(`${url}s`, "POST", { headers: { ...TEXT, "Stream-Closed": "true" }, body: "end" });
    const { streamClosed } = (await reader.end()) as { streamClosed?: boolean }; // a control event
    assert.deepEqual([reader.data, streamClosed], [`${expected}|end`, true]);
  });

  test("a long-poll is answered when something is appended, when its time is over, and at the close", async (context) => {
    const url = await start(context, ["--long-poll-timeout", "1s"]);
    const created = await ask(`${url}s`, "PUT", { headers: TEXT });
    const at = (token: unknown, cursor: unknown): string =>
      `${url}s?${cursor === undefined ? "" : `cursor=${String(cursor)}&`}live=long-poll&offset=${String(token)}`;
    const idle = await ask(at(created.headers["stream-next-offset"], undefined), "GET");
    assert.deepEqual([idle.status, idle.headers["stream-up-to-date"]], [204, "true"]);
    const waiting = ask(at(idle.headers["stream-next-offset"], idle.headers["stream-cursor"]), "GET");
    await ask(`${url}s`, "POST", { headers: TEXT, body: "news" });
    const { status, body, headers } = await waiting;
    assert.deepEqual([status, body], [200, "news"]);
    await ask(`${url}s`, "POST", { headers: { "Stream-Closed": "true" } });
    const last = await ask(at(headers["stream-next-offset"], headers["stream-cursor"]), "GET");
    assert.deepEqual([last.status, last.headers["stream-closed"]], [204, "true"]);
  });

  test("an append as large as it may be is stored", async (context) => {
    const url = await start(context);
    const largest = Buffer.alloc(16 * 1024 * 1024, "x");
    assert.equal((await ask(`${url}s`, "PUT", { headers: TEXT, body: largest })).status, 201);
    assert.equal((await ask(`${url}s`, "GET")).body.length, largest.length);
  });

  test("a head nearly as long as it may be comes through, in one header", async (context) => {
    const url = await start(context);
    const headers = { ...TEXT, "X-Long": "x".repeat(15 * 1024) };
    assert.equal((await ask(`${url}s`, "PUT", { headers })).status, 201);
  });

  test("each client is counted by itself, and can't say who it is", async (context) => {
    const url = await start(context, ["--rate-limit", "1"]);
    // Of 127.0.0.0/8 the server trusts only the proxy's own address.
    const from = (localAddress: string): { agent: Agent } => ({ agent: new Agent({ localAddress }) });
    const forged = { "X-Forwarded-For": "127.0.0.77", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "gopher" };
    const created = await ask(`${url}s`, "PUT", { headers: { ...TEXT, ...forged }, ...from("127.0.0.5") });
    assert.deepEqual([created.status, created.headers["location"]], [201, `${url}s`]);
    const statuses = new Set<number>();
    for (let count = 0; count < 20; count += 1) {
      const headers = { "X-Forwarded-For": `127.0.1.${count}` };
      statuses.add((await ask(`${url}s`, "HEAD", { headers, ...from("127.0.0.5") })).status);
    }
    assert.ok(statuses.has(429), "one client has one bucket, whatever it says");
    assert.equal((await ask(`${url}s`, "HEAD", from("127.0.0.6"))).status, 200);
  });

  test("names come through as they are, and an answer says where the client finds its stream", async (context) => {
    const url = await start(context);
    for (const name of ["a/b", "c%2Fd", "100%25", "%C3%A9"]) {
      const { status, headers } = await ask(`${url}${name}`, "PUT", { headers: TEXT });
      assert.deepEqual([status, headers["location"]], [201, `${url}${name}`]);
      assert.equal((await ask(`${url}${name}`, "HEAD")).status, 200);
    }
    assert.equal((await ask(`${url}none`, "GET")).status, 404);
  });
}
