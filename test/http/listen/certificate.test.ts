import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CertificateError, endsSoon, readCertificate } from "../../../src/http/listen/certificate.js";
import { makeAuthority } from "../../helpers/certificates.js";
import { tempDir } from "../../helpers/temp-dir.js";

const DAY_MS = 86_400_000;

function file(text: string): string {
  const path = join(tempDir(), "file.pem");
  writeFileSync(path, text);
  return path;
}

test("a certificate and its key are read, with the end of the certificate", async () => {
  const authority = makeAuthority();
  const until = new Date(Math.floor(Date.now() / 1000) * 1000 + DAY_MS);
  const { cert, key } = authority.issue({ until });
  const read = await readCertificate({ cert: file(cert + authority.ca), key: file(key), clientCa: file(authority.ca) });
  assert.deepEqual([read.cert, read.key, read.clientCa], [cert + authority.ca, key, authority.ca]);
  assert.equal(read.endsAtMs, until.getTime());
});

test("files that can't be used are refused with their names", async () => {
  const authority = makeAuthority();
  const { cert, key } = authority.issue();
  const [certFile, keyFile] = [file(cert), file(key)];
  const cases = [
    [{ cert: certFile, key: file(authority.issue().key), clientCa: null }, /^The key in .* is not that of the certificate in /],
    [{ cert: certFile, key: "/nowhere/key.pem", clientCa: null }, /^Cannot read \/nowhere\/key\.pem: /],
    [{ cert: file("text"), key: keyFile, clientCa: null }, /^Cannot use .*file\.pem: /],
    [{ cert: certFile, key: file(cert), clientCa: null }, /^Cannot use .*file\.pem: /],
    [{ cert: certFile, key: keyFile, clientCa: file("text") }, /^Cannot use .*file\.pem: /],
  ] as const;
  for (const [files, message] of cases)
    await assert.rejects(readCertificate(files), (error) => error instanceof CertificateError && message.test(error.message));
});

test("a certificate that ends within 14 days, or has ended, is warned of", () => {
  const nowMs = 1_000_000;
  assert.equal(endsSoon({ endsAtMs: nowMs + 14 * DAY_MS }, nowMs), null);
  assert.equal(endsSoon({ endsAtMs: nowMs + 14 * DAY_MS - 1 }, nowMs), "the TLS certificate ends soon");
  assert.equal(endsSoon({ endsAtMs: nowMs }, nowMs), "the TLS certificate has expired");
});
