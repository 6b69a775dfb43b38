import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { makeAuthority } from "../helpers/certificates.js";
import { startStreamdir } from "../helpers/process.js";
import { ask } from "../helpers/real-server.js";
import { tempDir } from "../helpers/temp-dir.js";
import { HERE, startFrontEnd } from "./front-end.js";
import { NatsCluster } from "./nats-cluster.js";

const QUERY = "?replicas=1&shards=1";
const TEXT = { "Content-Type": "text/plain" };

describe("NATS servers that speak TLS", { timeout: 120_000 }, () => {
  const folder = tempDir();
  const authority = makeAuthority();
  let cluster: NatsCluster;
  let plain: NatsCluster;
  let misnamed: NatsCluster;

  /** A file with this text. */
  function written(name: string, text: string): string {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  }

  /** A server with a certificate of the authority for these names. */
  function startServer(names: readonly string[]): Promise<NatsCluster> {
    const { cert, key } = authority.issue({ names });
    const [certFile, keyFile] = [written(`${names[0]}.crt`, cert), written(`${names[0]}.key`, key)];
    return NatsCluster.start({ size: 1, more: `tls { cert_file: "${certFile}", key_file: "${keyFile}" }` });
  }

  before(async () => {
    [cluster, misnamed, plain] = await Promise.all([
      startServer(["127.0.0.1"]),
      startServer(["elsewhere.example"]),
      NatsCluster.start({ size: 1 }),
    ]);
  });
  after(() => Promise.all([cluster, misnamed, plain].map((each) => each.stop())));

  function storageOf(servers: NatsCluster): string {
    return servers.storageOf("b", QUERY).replace("nats://", "tls://");
  }

  test("are used with the authority that NODE_EXTRA_CA_CERTS names", async (t) => {
    const env = { NODE_EXTRA_CA_CERTS: written("ca.crt", authority.ca) };
    const { url, process } = await startFrontEnd(t, storageOf(cluster), { env });
    assert.equal((await ask(`${url}s`, "PUT", { headers: TEXT, body: "bytes" })).status, 201);
    assert.equal((await ask(`${url}s`, "GET")).body, "bytes");
    process?.kill("SIGTERM");
    assert.equal((await process?.ended)?.status, 0);
  });

  for (const [what, storage, ca, why] of [
    [
      "no authority is named",
      () => storageOf(cluster),
      null,
      /certificate; an authority of your own has to be in the file of NODE_EXTRA_CA_CERTS$/m,
    ],
    ["another authority is named", () => storageOf(cluster), makeAuthority("Another").ca, /certificate; /],
    ["the certificate is for another name", () => storageOf(misnamed), authority.ca, /Host: 127\.0\.0\.1\. is not|IP: 127\.0\.0\.1 is not/],
    ["the server is without TLS", () => storageOf(plain), authority.ca, /: server does not support 'tls'$/m],
  ] as const)
    test(`are refused in one line where ${what}`, async (t) => {
      const env = ca === null ? {} : { NODE_EXTRA_CA_CERTS: written("of-test.crt", ca) };
      const command = startStreamdir(t, ["serve", "--port", "0", "--storage", storage()], { cwd: HERE, env });
      const { status, stdout, stderr } = await command.ended;
      t.diagnostic(stderr);
      assert.deepEqual([status, stdout], [1, ""]);
      assert.match(stderr, /^streamdir: Cannot start: no NATS server can be used at 127\.0\.0\.1:\d+: [^\n]+\n$/);
      assert.match(stderr, why);
    });
});
