import assert from "node:assert/strict";
import { writeFileSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { OPERATIONS } from "../../../src/auth/rights/operation.js";
import { AuthFile } from "../../helpers/auth-file.js";
import { canMakeCertificates, httpsIssuer } from "../../helpers/https-issuer.js";
import { claimsWith, jwtOf, keySet } from "../../helpers/jwt.js";
import { Random } from "../../helpers/random.js";
import { ALL_PATHS, takePath } from "../../helpers/request-paths.js";
import { ask, startSecure } from "../../helpers/secure-server.js";
import { requestBytes, startServer, type TestServer } from "../../helpers/test-server.js";

const TEXT = { "Content-Type": "text/plain" };
const NAMES = ["ann/a", "bob/a", "news"] as const;

/** Somebody who sends requests: what they show, and what they may read. */
interface Sender {
  readonly who: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly query: string;
  /** The status of a read of each of {@link NAMES}. */
  readonly statuses: readonly number[];
}

/** Everybody, and the header of one who may do everything. */
function sendersOf(file: AuthFile, nowMs: number): { readonly senders: readonly Sender[]; readonly owner: string } {
  const owner = file.token("owner", [{ streams: ["**"], allow: OPERATIONS }]);
  const [ann, bob] = ["ann", "bob"].map((id) => file.token(id, [{ streams: [`${id}/**`], allow: ["read"] }]));
  const gone = file.token("gone", [{ streams: ["**"], allow: ["read"] }]);
  file.revoke({ id: "gone" });
  file.grantJwts([{ streams: ["{sub}/**"], allow: ["read"] }]);
  file.grantPublic([{ streams: ["news"], allow: ["read"] }]);
  const exp = Math.floor(nowMs / 1000) + 600;
  const bearer = (text = ""): Record<string, string> => ({ Authorization: `Bearer ${text}` });
  const sender = (who: string, headers: Record<string, string>, query: string, ...statuses: number[]): Sender => ({
    who,
    headers,
    query,
    statuses,
  });
  return {
    owner,
    senders: [
      sender("nobody", {}, "", 401, 401, 200),
      sender("ann by token", bearer(ann), "", 200, 403, 403),
      sender("bob by token", bearer(bob), "", 403, 200, 403),
      sender("ann by JWT", bearer(file.jwt(nowMs, { sub: "ann" })), "", 200, 403, 403),
      sender("bob by JWT", bearer(file.jwt(nowMs, { sub: "bob" })), "", 403, 200, 403),
      sender("who was revoked", bearer(gone), "", 401, 401, 401),
      sender("a wrong secret", bearer(`${ann?.slice(0, -1)}${ann?.endsWith("A") ? "B" : "A"}`), "", 401, 401, 401),
      sender("a forged JWT", bearer(`${file.jwt(nowMs, { sub: "ann" }).slice(0, -4)}AAAA`), "", 401, 401, 401),
      sender("a ticket for ann/a", {}, `ticket=${file.ticket("ann/a", exp)}&`, 200, 401, 401),
      sender("a ticket and a wrong header", bearer("x"), `ticket=${file.ticket("ann/a", exp)}&`, 401, 401, 401),
      sender("an empty header", { Authorization: "" }, "", 401, 401, 401),
    ],
  };
}

async function create(server: TestServer, owner: string): Promise<void> {
  for (const name of NAMES) {
    const made = await server.send("PUT", name, { headers: { Authorization: `Bearer ${owner}`, ...TEXT }, body: `of ${name}` });
    assert.equal(made.status, 201);
  }
}

/** So many reads in a random order, each by somebody. */
function readsOf(senders: readonly Sender[], random: Random, count: number) {
  return Array.from({ length: count }, () => {
    const [sender, at] = [random.pick(senders), random.integer(0, NAMES.length - 1)];
    const [name = "", status = 0] = [NAMES[at], sender.statuses[at]];
    return { sender, name, status, target: `${name}?${sender.query}offset=-1` };
  });
}

for (const path of ALL_PATHS)
  describe(`requests on one connection, ${path}`, () => {
    test("are each answered for their own credential, however they are cut", async (context) => {
      takePath(context, path);
      const file = new AuthFile();
      const { senders, owner } = sendersOf(file, Date.UTC(2026, 0, 1));
      file.write();
      const server = await startServer(context, { auth: file.path });
      await create(server, owner);
      for (let seed = 1; seed <= 6; seed++) {
        const random = new Random(seed);
        const reads = readsOf(senders, random, 60);
        const bytes = Buffer.concat(reads.map(({ sender, target }) => requestBytes("GET", target, { headers: sender.headers })));
        const connection = await server.connect();
        for (let at = 0; at < bytes.length;) {
          const end = at + 1 + random.integer(0, seed % 2 === 0 ? bytes.length : 2000);
          connection.write(bytes.subarray(at, end));
          at = end;
        }
        for (const { sender, name, status } of reads) {
          const answer = await connection.answer();
          assert.equal(answer.status, status, `seed ${seed}: ${sender.who} reads ${name}`);
          if (status === 200) assert.equal(answer.text, `of ${name}`);
          else assert.ok(!answer.text.includes(`of ${name}`));
          const isPrivate = status === 200 && sender.who !== "nobody";
          assert.equal(answer.headers["cache-control"]?.includes("private") ?? false, isPrivate, sender.who);
        }
        await connection.close();
      }
    });

    test("are not made by the body of another", async (context) => {
      takePath(context, path);
      const file = new AuthFile();
      const { owner } = sendersOf(file, Date.UTC(2026, 0, 1));
      const writer = file.token("writer", [{ streams: ["news"], allow: ["append"] }]);
      file.write();
      const server = await startServer(context, { auth: file.path });
      await create(server, owner);
      const inner = requestBytes("DELETE", "ann/a", { headers: { Authorization: `Bearer ${owner}` } });
      const outer = requestBytes("POST", "news", { headers: { Authorization: `Bearer ${writer}`, ...TEXT }, body: inner });
      const refused = requestBytes("POST", "ann/a", { headers: { Authorization: `Bearer ${writer}`, ...TEXT }, body: inner });
      const last = requestBytes("GET", "ann/a?offset=-1", { headers: { Authorization: `Bearer ${owner}` } });
      const connection = await server.connect();
      connection.write(Buffer.concat([outer, last]));
      assert.equal((await connection.answer()).status, 204);
      const { status, text } = await connection.answer();
      assert.deepEqual([status, text], [200, "of ann/a"]);
      const other = await server.connect();
      other.write(Buffer.concat([refused, last]));
      assert.equal((await other.answer()).status, 403);
      other.socket.end();
      assert.equal(await other.rest(), "", "nothing after a body that was not read");
      assert.equal((await server.send("GET", "ann/a?offset=-1", { headers: { Authorization: `Bearer ${owner}` } })).text, "of ann/a");
    });

    test(
      "keep their credential while another's keys are fetched",
      { skip: canMakeCertificates() ? false : "openssl is missing" },
      async (context) => {
        takePath(context, path);
        let arrived: () => void = () => {};
        const asked = new Promise<void>((resolve) => (arrived = resolve));
        let release: () => void = () => {};
        const { url, caFile } = await httpsIssuer(context, (_request, response) => {
          release = () => response.end(keySet());
          arrived();
        });
        const file = new AuthFile();
        const { senders, owner } = sendersOf(file, Date.UTC(2026, 0, 1));
        file.write();
        const document = JSON.parse(readFileSync(file.path, "utf8")) as { issuers: { iss: string }[] }; // as it was written
        const grants = [{ streams: ["{sub}/**"], allow: ["read"] }];
        const remote = { iss: "https://far.example", aud: "streams", algs: ["EdDSA"], jwks: url, jwksCa: caFile, grants };
        writeFileSync(file.path, JSON.stringify({ ...document, issuers: [...document.issuers, remote] }));
        const server = await startServer(context, { auth: file.path });
        await create(server, owner);
        const far = jwtOf("EdDSA", claimsWith({ iss: "https://far.example", sub: "bob" }));
        const waiting: Sender = {
          who: "bob by a JWT from afar",
          headers: { Authorization: `Bearer ${far}` },
          query: "",
          statuses: [403, 200, 403],
        };
        const reads = [
          ...readsOf([waiting], new Random(1), 3),
          ...readsOf(senders, new Random(2), 20),
          ...readsOf([waiting, ...senders], new Random(3), 20),
        ];
        const connection = await server.connect();
        connection.write(Buffer.concat(reads.map(({ sender, target }) => requestBytes("GET", target, { headers: sender.headers }))));
        await asked;
        release();
        for (const { sender, name, status } of reads) {
          const answer = await connection.answer();
          assert.equal(answer.status, status, `${sender.who} reads ${name}`);
          if (status === 200) assert.equal(answer.text, `of ${name}`);
        }
      },
    );
  });

test("streams of one connection of HTTP/2 are each answered for their own credential", async (context) => {
  const file = new AuthFile();
  const { senders, owner } = sendersOf(file, Date.UTC(2026, 0, 1));
  file.write();
  const server = await startSecure(context, { auth: file.path });
  const session = server.session();
  const lower = (headers: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  for (const name of NAMES) {
    const headers = lower({ Authorization: `Bearer ${owner}`, ...TEXT });
    assert.equal((await ask(session, "PUT", name, { headers, body: `of ${name}` })).status, 201);
  }
  const reads = readsOf(senders, new Random(4), 200);
  const answers = await Promise.all(reads.map(({ sender, target }) => ask(session, "GET", target, { headers: lower(sender.headers) })));
  for (const [at, { sender, name, status }] of reads.entries()) {
    assert.equal(answers[at]?.status, status, `${sender.who} reads ${name}`);
    if (status === 200) assert.equal(answers[at]?.body, `of ${name}`);
  }
});
