import { randomBytes, sign, type KeyObject } from "node:crypto";
import { isIP } from "node:net";
import { ecPair } from "./key-pairs.js";

/** A certificate and its private key, in PEM. */
export interface Issued {
  readonly cert: string;
  readonly key: string;
}

/** What a certificate says. */
export interface Claims {
  /** Host names and IPv4 addresses. */
  readonly names?: readonly string[];
  /** Several where a list; none where that is empty. */
  readonly commonName?: string | readonly string[];
  /** For a client instead of a server. */
  readonly client?: boolean;
  readonly from?: Date;
  readonly until?: Date;
}

/** An authority of a test's own. */
export interface Authority {
  /** Its certificate in PEM. */
  readonly ca: string;
  issue(claims?: Claims): Issued;
  /** An authority that this one has signed: its `ca` is not to be trusted, but to be sent along. */
  below(commonName: string): Authority;
}

const DAY_MS = 86_400_000;
/** Before the time of all tests. */
const LONG_AGO = new Date(Date.UTC(2020, 0, 1));

/** Makes an authority whose certificates only those accept that are told to. */
export function makeAuthority(commonName = "A test's authority"): Authority {
  return authorityBelow(null, commonName);
}

/** One that `above` has signed, or that has signed itself. */
function authorityBelow(above: Signer | null, commonName: string): Authority {
  const keys = ecPair("P-256");
  const isAuthority = extension("551d13", seq(der(0x01, Buffer.from([0xff]))), true);
  const signer = { issuer: nameOf(commonName), key: keys.privateKey };
  return {
    ca: certificate(above ?? signer, { subject: commonName, publicKey: keys.publicKey, extensions: [isAuthority] }),
    below: (name) => authorityBelow(signer, name),
    issue({ names = ["localhost", "127.0.0.1"], commonName: subject = names[0] ?? "nobody", client = false, from, until } = {}) {
      const own = ecPair("P-256");
      const alternatives = names.map((name) =>
        isIP(name) === 4 ? der(0x87, Buffer.from(name.split(".").map(Number))) : der(0x82, Buffer.from(name)),
      );
      const usage = oid(client ? "2b06010505070302" : "2b06010505070301");
      const extensions = [extension("551d25", seq(usage)), ...(names.length > 0 ? [extension("551d11", seq(...alternatives))] : [])];
      return {
        cert: certificate(signer, { subject, publicKey: own.publicKey, extensions, from, until }),
        key: own.privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
      };
    },
  };
}

interface Signer {
  readonly issuer: Buffer;
  readonly key: KeyObject;
}

interface Subject {
  readonly subject: string | readonly string[];
  readonly publicKey: KeyObject;
  readonly extensions: readonly Buffer[];
  readonly from?: Date | undefined;
  readonly until?: Date | undefined;
}

/** An X.509 certificate of version 3 (RFC 5280, 4.1), in PEM. */
function certificate({ issuer, key }: Signer, { subject, publicKey, extensions, from, until }: Subject): string {
  const signedWith = seq(oid("2a8648ce3d040302")); // ECDSA with SHA-256
  const notBefore = from ?? LONG_AGO;
  const notAfter = until ?? new Date(Date.now() + 90 * DAY_MS);
  const toBeSigned = seq(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    signedWith,
    issuer,
    seq(time(notBefore), time(notAfter)),
    nameOf(subject),
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, seq(...extensions)),
  );
  const signature = sign("sha256", toBeSigned, key);
  const bytes = seq(toBeSigned, signedWith, der(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const lines = bytes.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

function nameOf(commonName: string | readonly string[]): Buffer {
  const names = typeof commonName === "string" ? [commonName] : commonName;
  return seq(...names.map((name) => der(0x31, seq(oid("550403"), der(0x0c, Buffer.from(name))))));
}

function extension(id: string, value: Buffer, isCritical = false): Buffer {
  return seq(oid(id), ...(isCritical ? [der(0x01, Buffer.from([0xff]))] : []), der(0x04, value));
}

function time(at: Date): Buffer {
  return der(0x18, Buffer.from(`${at.toISOString().replace(/[-:T]/g, "").slice(0, 14)}Z`));
}

function seq(...parts: readonly Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, "hex"));
}

/** A value with its tag and length (X.690, 8.1). */
function der(tag: number, value: Buffer): Buffer {
  const { length } = value;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), value]);
  const digits = Buffer.from(length.toString(16).padStart(length > 0xff ? 4 : 2, "0"), "hex");
  return Buffer.concat([Buffer.from([tag, 0x80 | digits.length]), digits, value]);
}
