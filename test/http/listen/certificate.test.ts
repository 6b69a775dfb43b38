import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readAuthorities, warningOf } from "../../../src/http/listen/certificate.js";
import { CertificateError } from "../../../src/ops/certificate-files.js";
import { makeAuthority } from "../../helpers/certificates.js";
import { tempDir } from "../../helpers/temp-dir.js";

const DAY_MS = 86_400_000;

function file(text: string): string {
  const path = join(tempDir(), "file.pem");
  writeFileSync(path, text);
  return path;
}

test("the authorities of clients are read, all that a file has", async () => {
  const pem = `${makeAuthority().ca}\n${makeAuthority().ca}`;
  const read = await readAuthorities(file(pem));
  assert.deepEqual([read.pem, read.certificates.length], [pem, 2]);
});

test("authorities that can't be used are refused with their file's name", async () => {
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
