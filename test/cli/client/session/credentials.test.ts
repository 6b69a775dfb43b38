import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { AuthFile } from "../../../helpers/auth-file.js";
import { makeAuthority, type Issued } from "../../../helpers/certificates.js";
import { runClient } from "../../../helpers/client-verb.js";
import { startStreamdir, type Ended } from "../../../helpers/process.js";
import { startSecure, testAuthority } from "../../../helpers/secure-server.js";
import { tempDir } from "../../../helpers/temp-dir.js";

function file(text: string): string {
  const path = join(tempDir(), "file.pem");
  writeFileSync(path, text);
  return path;
}

const press = { client: true, names: [], commonName: "press-7" };
const own = testAuthority().issue(press);
const [cert, key] = [file(own.cert), file(own.key)];
const whole = file(own.cert + own.key);

describe("a client verb", { concurrency: 2 }, () => {
  test("shows the certificate of its flags or its variables to a server that asks for one", async (t) => {
    const authority = file(testAuthority().ca);
    const auth = new AuthFile();
    auth.grantCertificates([{ streams: ["machines/{sub}"], allow: ["create", "read"] }]);
    auth.write();
    const { test: server } = await startSecure(t, { clientCa: authority, auth: auth.path });
    // The certificate of the server is trusted by a variable that Node reads when it starts.
    const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> => {
      const world = { NODE_EXTRA_CA_CERTS: authority, STREAMDIR_URL: `https://localhost:${server.port}`, ...env };
      return startStreamdir(t, args, { env: world }).ended;
    };
    const created = await run(["create", "machines/press-7", "--cert-file", cert, "--key-file", key]);
    assert.deepEqual([created.status, created.stderr], [0, ""]);
    assert.equal((await run(["info", "machines/press-7", "--cert-file", whole])).status, 0);
    const byVariables = { STREAMDIR_CERT_FILE: cert, STREAMDIR_KEY_FILE: key };
    assert.equal((await run(["info", "machines/press-7"], byVariables)).status, 0);
    assert.equal((await run(["info", "machines/press-8"], byVariables)).status, 77);
    const none = await run(["info", "machines/press-7"]);
    assert.equal(none.status, 77);
    assert.match(none.stderr, /: The server asks for a token or a certificate: see --token-file and --cert-file\n$/);

    const shown = ({ cert, key }: Issued): Promise<Ended> => run(["info", "machines/press-7", "--cert-file", file(cert + key)]);
    const stranger = await shown(makeAuthority().issue(press));
    const answer = `https://localhost:${server.port} does not answer (ECONNRESET); it may not take this certificate`;
    assert.deepEqual([stranger.status, stranger.stderr], [69, `streamdir: ${answer}\n`]);
    const over = await shown(testAuthority().issue({ ...press, from: new Date(Date.UTC(2021, 0)), until: new Date(Date.UTC(2022, 0)) }));
    assert.deepEqual(
      [over.status, over.stderr],
      [69, `streamdir: the certificate ended at 2022-01-01T00:00:00.000Z\nstreamdir: ${answer}\n`],
    );
  });

  const https = "https://127.0.0.1:1";
  const otherKey = file(testAuthority().issue(press).key);
  for (const [what, url, args, env, line] of [
    ["a key alone", https, ["--key-file", key], {}, /^--key-file needs --cert-file FILE$/],
    ["a variable's key alone", https, [], { STREAMDIR_KEY_FILE: key }, /^STREAMDIR_KEY_FILE needs --cert-file FILE$/],
    ["a certificate alone", https, ["--cert-file", cert], {}, /^--cert-file: There is no private key in .*file\.pem$/],
    ["another's key", https, ["--cert-file", cert, "--key-file", otherKey], {}, /^--cert-file: The key in .* is not that of /],
    ["no file", https, [], { STREAMDIR_CERT_FILE: "/none" }, /^STREAMDIR_CERT_FILE: Cannot read \/none: ENOENT/],
    ["a server without TLS", "http://127.0.0.1:1", ["--cert-file", whole], {}, /^--cert-file needs a server of https:\/\/$/],
  ] as const)
    test(`refuses ${what} with 64`, async () => {
      const { status, stdout, stderr } = await runClient(["info", "a", ...args], { url, env });
      assert.deepEqual([status, stdout], [64, ""]);
      assert.match(stderr.replace(/^streamdir: /, "").trimEnd(), line);
    });

  test("shows no certificate of a variable to a server without TLS", async () => {
    const env = { STREAMDIR_CERT_FILE: "/none" };
    const { status } = await runClient(["info", "a"], { url: "http://127.0.0.1:1", env });
    assert.equal(status, 69);
  });
});
