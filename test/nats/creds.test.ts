import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { createAccount, createOperator, createUser, encodeAccount, encodeOperator, encodeUser, fmtCreds, type KeyPair } from "@nats-io/jwt";
import { startStreamdir } from "../helpers/process.js";
import { ask } from "../helpers/real-server.js";
import { tempDir } from "../helpers/temp-dir.js";
import { HERE, startFrontEnd } from "./front-end.js";
import { NatsCluster } from "./nats-cluster.js";

const QUERY = "?replicas=1&shards=1";
const TEXT = { "Content-Type": "text/plain" };
const UNLIMITED = { conn: -1, subs: -1, data: -1, payload: -1, imports: -1, exports: -1, wildcards: true, leaf: -1 };
const JETSTREAM = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 };

/** What a server that trusts this operator needs: its accounts, one with JetStream and the system's. */
async function configurationOf(operator: KeyPair, account: KeyPair): Promise<string> {
  const system = createAccount();
  const accounts = [
    [account, await encodeAccount("streams", account, { limits: { ...UNLIMITED, ...JETSTREAM } }, { signer: operator })],
    [system, await encodeAccount("SYS", system, { limits: UNLIMITED }, { signer: operator })],
  ] as const;
  return `operator: ${await encodeOperator("test", operator, { system_account: system.getPublicKey() })}
system_account: ${system.getPublicKey()}
resolver: MEMORY
resolver_preload: {
${accounts.map(([key, jwt]) => `  ${key.getPublicKey()}: ${jwt}`).join("\n")}
}`;
}

/** The creds file of a new user of an account, good until `exp`, in seconds. */
async function credsOf(account: KeyPair, exp?: number): Promise<string> {
  const user = createUser();
  const jwt = await encodeUser("front", user, account, {}, exp === undefined ? {} : { exp });
  return Buffer.from(fmtCreds(jwt, user)).toString();
}

describe("NATS servers that want a JWT", { timeout: 120_000 }, () => {
  const account = createAccount();
  const folder = tempDir();
  let cluster: NatsCluster;
  before(async () => {
    cluster = await NatsCluster.start({ size: 1, more: await configurationOf(createOperator(), account) });
  });
  after(() => cluster.stop());

  function written(text: string): string {
    const path = join(folder, "front.creds");
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  }

  for (const [how, given] of [
    ["--nats-creds", (file: string) => ({ args: ["--nats-creds", file] })],
    ["STREAMDIR_NATS_CREDS", (file: string) => ({ env: { STREAMDIR_NATS_CREDS: file } })],
  ] as const)
    test(`are used with the creds file of ${how}`, async (t) => {
      const bucket = how === "--nats-creds" ? "flag" : "variable";
      const file = written(await credsOf(account));
      const { url, process } = await startFrontEnd(t, cluster.storageOf(bucket, QUERY), given(file));
      assert.equal((await ask(`${url}s`, "PUT", { headers: TEXT, body: "bytes" })).status, 201);
      assert.equal((await ask(`${url}s`, "GET")).body, "bytes");
      process?.kill("SIGTERM");
      assert.equal((await process?.ended)?.status, 0);
    });

  for (const [what, text, why] of [
    ["there is no creds file", () => null, /: .*authorization violation/i],
    ["it is of an account that the servers do not know", () => credsOf(createAccount()), /: .*authorization violation/i],
    ["it has expired", () => credsOf(account, 1_000_000_000), /: .*(authorization violation|expired)/i],
    ["it is no creds file", () => "nothing of the kind", /: unable to parse credentials$/m],
  ] as const)
    test(`refuse in one line where ${what}`, async (t) => {
      const creds = await text();
      const args = ["serve", "--port", "0", "--storage", cluster.storageOf("b", QUERY)];
      const command = startStreamdir(t, creds === null ? args : [...args, "--nats-creds", written(creds)], { cwd: HERE });
      const { status, stdout, stderr } = await command.ended;
      t.diagnostic(stderr);
      assert.deepEqual([status, stdout], [1, ""]);
      assert.match(stderr, /^streamdir: Cannot start: no NATS server can be used at 127\.0\.0\.1:\d+: [^\n]+\n$/);
      assert.match(stderr, why);
    });
});
