import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { OPERATIONS } from "../../../src/auth/rights/operation.js";
import { signTicket } from "../../../src/auth/ticket.js";
import { AuthFile } from "../../helpers/auth-file.js";
import { authDocument, openAuthority, TICKET_SECRET, tokenOf } from "../../helpers/auth-files.js";
import { claimsWith, JWT_NOW_MS, jwtOf } from "../../helpers/jwt.js";
import { requestBytes, startServer, type TestServer } from "../../helpers/test-server.js";

const MIB = 1024 * 1024;
const PAD = "x".repeat(15_000);

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void; // the flag has made it

/** Several turns: what a connection held goes a turn after its end, and buffers some time after a collection. */
async function usedMiB(): Promise<number> {
  let least = Infinity;
  for (let turn = 0; turn < 8; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    least = Math.min(least, (heapUsed + arrayBuffers) / MIB);
  }
  return least;
}

/** What stays in memory after `flood`, in MiB; what its first turn loads does not count. */
async function keptMiB(flood: (from: number, to: number) => unknown, turns: number): Promise<number> {
  await flood(0, Math.ceil(turns / 100));
  const before = await usedMiB();
  await flood(Math.ceil(turns / 100), turns);
  return (await usedMiB()) - before;
}

/** Sends requests, 50 at a time on a few connections, and takes their answers; their statuses, each once. */
async function sendMany(server: TestServer, from: number, to: number, requestOf: (at: number) => Buffer): Promise<number[]> {
  const statuses = new Set<number>();
  const connection = await server.connect();
  for (let at = from; at < to; at += 10) {
    const end = Math.min(to, at + 10);
    connection.write(Buffer.concat(Array.from({ length: end - at }, (_, index) => requestOf(at + index))));
    for (let each = at; each < end; each++) statuses.add((await connection.answer()).status);
  }
  await connection.close();
  return [...statuses];
}

describe("a flood of credentials leaves nothing in memory:", () => {
  test("a million wrong ones", async (context) => {
    const { who } = await openAuthority(context);
    const token = tokenOf("ci").slice(0, -8);
    const jwt = jwtOf("HS256", claimsWith({ iss: "hmac" })).slice(0, -8);
    const ticket = signTicket(TICKET_SECRET, { expiresS: JWT_NOW_MS / 1000 + 60, close: false, kid: "k1" }, "chat/1").slice(0, -8);
    const wrong = (at: number): string | null => {
      const other = at.toString(36).padStart(7, "-");
      if (at % 10 === 0) return who({ authorization: `Bearer ${jwt}${other}A` });
      if (at % 10 < 3) return who({ ticket: `${ticket}${other}A` }, `chat/${at}`);
      if (at % 10 < 6) return who({ authorization: `Bearer sd_n${at}_${"A".repeat(43)}` });
      return who({ authorization: `Bearer ${token}${other}B` });
    };
    const kept = await keptMiB((from, to) => {
      for (let at = from; at < to; at++) assert.equal(wrong(at), "invalid-token");
    }, 1_000_000);
    assert.ok(kept < 4, `${kept} MiB`);
    assert.equal(who({ authorization: `Bearer ${tokenOf("ci")}` }), "token ci", "what is right is still known");
  });

  test("wrong ones over HTTP, in headers as large as they may be", async (context) => {
    const file = new AuthFile();
    file.token("ci", [{ streams: ["**"], allow: OPERATIONS }]);
    file.write();
    const server = await startServer(context, { auth: file.path, rateLimit: "1000000" });
    const statuses: number[] = [];
    const kept = await keptMiB(async (from, to) => {
      statuses.push(
        ...(await sendMany(server, from, to, (at) => {
          const credential = at % 2 === 0 ? `Bearer sd_ci_${randomBytes(32).toString("base64url")}` : `Bearer ${PAD}${at}`;
          return requestBytes("GET", `s${at}`, { headers: { Authorization: credential } });
        })),
      );
    }, 10_000);
    assert.deepEqual([...new Set(statuses)], [401]);
    assert.ok(kept < 8, `${kept} MiB`);
  });

  test("tickets that are right, each in a URL as long as it may be", async (context) => {
    const file = new AuthFile();
    const owner = file.token("owner", [{ streams: ["**"], allow: OPERATIONS }]);
    file.write();
    const server = await startServer(context, { auth: file.path });
    const headers = { Authorization: `Bearer ${owner}`, "Content-Type": "text/plain" };
    assert.equal((await server.send("PUT", "a", { headers })).status, 201);
    const nowS = Math.floor(server.clock.nowMs() / 1000);
    const kept = await keptMiB(
      (from, to) => sendMany(server, from, to, (at) => requestBytes("GET", `a?ticket=${file.ticket("a", nowS + 60 + at)}&${PAD}`)),
      4_000,
    );
    assert.ok(kept < 12, `${kept} MiB`);
  });

  test("JWTs that are right, and say much that nobody asks for", async (context) => {
    const { who } = await openAuthority(context, authDocument());
    const more = Array.from({ length: 2_000 }, () => 0);
    const kept = await keptMiB((from, to) => {
      for (let at = from; at < to; at++) {
        const claims = claimsWith({
          iss: "hmac",
          sub: `u${at}`,
          more,
          authorization_details: [{ type: "urn:streamdir:grant", streams: ["a"], allow: ["read"] }],
        });
        assert.equal(who({ authorization: `Bearer ${jwtOf("HS256", claims)}` }), `jwt hmac u${at}`);
      }
    }, 2_000);
    assert.ok(kept < 24, `${kept} MiB`);
  });

  test("JWTs that are right, with as many grants as they may have", async (context) => {
    const { who } = await openAuthority(context, authDocument());
    const others = { type: "other", more: Array.from({ length: 500 }, () => ({})) };
    const grantsOf = (at: number, count: number) =>
      Array.from({ length: count / 10 }, (_, grant) => ({
        type: "urn:streamdir:grant",
        streams: Array.from({ length: 10 }, (_, each) => `${at}/*/b/${grant}/${each}*`),
        allow: ["read"],
      }));
    const show = (at: number, count: number): string | null => {
      const claims = claimsWith({ iss: "hmac", sub: `u${at}`, authorization_details: [others, ...grantsOf(at, count)] });
      return who({ authorization: `Bearer ${jwtOf("HS256", claims)}` });
    };
    const kept = await keptMiB((from, to) => {
      for (let at = from; at < to; at++) assert.equal(show(at, 100), `jwt hmac u${at}`);
    }, 2_000);
    assert.ok(kept < 64, `${kept} MiB`);
    assert.equal(show(1, 110), "invalid-token");
  });

  test("names of streams, each in a URL as long as it may be", async (context) => {
    const server = await startServer(context);
    const kept = await keptMiB(
      (from, to) =>
        sendMany(server, from, to, (at) =>
          requestBytes("PUT", `the-stream-of-number-${at}?${PAD}`, { headers: { "Content-Type": "text/plain" } }),
        ),
      2_000,
    );
    assert.ok(kept < 12, `${kept} MiB`);
  });
});
