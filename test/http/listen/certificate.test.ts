import assert from "node:assert/strict";
import { createPrivateKey } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CertificateError, readAuthorities, readCertificate, warningOf } from "../../../src/http/listen/certificate.js";
import { makeAuthority } from "../../helpers/certificates.js";
import { tempDir } from "../../helpers/temp-dir.js";

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

test("the authorities of clients are read, all that a file has", async () => {
  const pem = `${makeAuthority().ca}\n${makeAuthority().ca}`;
  const read = await readAuthorities(file(pem));
  assert.deepEqual([read.pem, read.certificates.length], [pem, 2]);
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
    [{ cert: certFile, key: file(cert) }, /^Cannot use .*file\.pem: /],
  ] as const;
  for (const [files, message] of cases)
    await assert.rejects(readCertificate(files), (error) => error instanceof CertificateError && message.test(error.message));
  for (const [path, message] of [
    [file("text"), /^Cannot use .*file\.pem: /],
    [file(""), /^Cannot use .*file\.pem: /],
    ["/nowhere/ca.pem", /^Cannot read \/nowhere\/ca\.pem: /],
  ] as const)
    await assert.rejects(readAuthorities(path), (error) => error instanceof CertificateError && message.test(error.message));
});

test("a certificate that does not hold yet is warned of", () => {
  const certificate = { beginsAtMs: 1000, endsAtMs: 1000 + 90 * DAY_MS };
  assert.deepEqual([warningOf(certificate, 999), warningOf(certificate, 1000)], ["early", null]);
});

test("a certificate that ends within 14 days, or in the last quarter of a shorter life, or has ended, is warned of", () => {
  const nowMs = 1_000_000;
  for (const [days, warnedDays] of [
    [90, 14],
    [56, 14],
    [8, 2],
  ] as const) {
    const at = (endsAtMs: number) => warningOf({ beginsAtMs: endsAtMs - days * DAY_MS, endsAtMs }, nowMs);
    const firstMs = nowMs + warnedDays * DAY_MS;
    assert.deepEqual([at(firstMs), at(firstMs - 1), at(nowMs + 1), at(nowMs)], [null, "soon", "soon", "over"], `${days} days`);
  }
});
