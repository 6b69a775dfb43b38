import assert from "node:assert/strict";
import { test } from "node:test";
import { certificatesIn } from "../../src/net/certificates.js";
import { makeAuthority } from "../helpers/certificates.js";

test("all certificates in a text are found, and one without any is refused", () => {
  const [one, two] = [makeAuthority("one"), makeAuthority("two")];
  const subjects = (pem: string): string[] => certificatesIn(pem).map(({ subject }) => subject);
  assert.deepEqual(subjects(`about one\n${one.ca}\n${two.ca}`), ["CN=one", "CN=two"]);
  const cut = one.ca.slice(0, 200);
  for (const pem of ["", "no certificate", cut, `${two.ca}${cut}`, `${cut}\n${two.ca}`, `${one.ca}${two.ca.replace("MII", "")}`])
    assert.throws(() => subjects(pem), Error, pem);
});
