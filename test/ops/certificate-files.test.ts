import assert from "node:assert/strict";
import { createPrivateKey } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CertificateError, readCertificate } from "../../src/ops/certificate-files.js";
import { makeAuthority } from "../helpers/certificates.js";
import { tempDir } from "../helpers/temp-dir.js";

const DAY_MS = 86_400_000;

function file(text: string): string {
  const path = join(tempDir(), "file.pem");
  writeFileSync(path, text);
  return path;
}

/** A private key, locked by a passphrase. */
function encrypted(key: string, type: "pkcs8" | "sec1"): string {
  return createPrivateKey(key).export({ type, format: "pem", cipher: "aes-128-cbc", passphrase: "open" }).toString();
}

test("a certificate and its key are read, with beginning and end of the certificate", async () => {
  const authority = makeAuthority();
  const until = new Date(Math.floor(Date.now() / 1000) * 1000 + DAY_MS);
  const from = new Date(until.getTime() - 3 * DAY_MS);
  const { cert, key } = authority.issue({ from, until });
  const read = await readCertificate({ cert: file(cert + authority.ca), key: file(key) });
  assert.deepEqual(read, { cert: cert + authority.ca, key, beginsAtMs: from.getTime(), endsAtMs: until.getTime() });
});

test("one file may have a certificate, the chain above it, and its key, in any order", async () => {
  const authority = makeAuthority();
  const { cert, key } = authority.issue();
  for (const pem of [cert + authority.ca + key, key + cert + authority.ca]) {
    const path = file(pem);
    const read = await readCertificate({ cert: path, key: path });
    assert.deepEqual([read.cert, read.key], [pem, pem]);
  }
});

test("files that can't be used are refused with their names", async () => {
  const authority = makeAuthority();
  const { cert, key } = authority.issue();
  const [certFile, keyFile] = [file(cert), file(key)];
  const cases = [
    [{ cert: certFile, key: file(authority.issue().key) }, /^The key in .* is not that of the first certificate in /],
    [
      { cert: certFile, key: file(encrypted(key, "pkcs8")) },
      /^Cannot use .*: it has a passphrase, which openssl pkey -in … -out … takes off$/,
    ],
    [{ cert: certFile, key: file(encrypted(key, "sec1")) }, /^Cannot use .*: it has a passphrase, /],
    [{ cert: certFile, key: "/nowhere/key.pem" }, /^Cannot read \/nowhere\/key\.pem: /],
    [{ cert: file("text"), key: keyFile }, /^Cannot use .*file\.pem: /],
    [{ cert: certFile, key: file(cert) }, /^There is no private key in .*file\.pem$/],
    [{ cert: certFile, key: file("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n") }, /^Cannot use .*file\.pem: /],
  ] as const;
  for (const [files, message] of cases)
    await assert.rejects(readCertificate(files), (error) => error instanceof CertificateError && message.test(error.message));
});
