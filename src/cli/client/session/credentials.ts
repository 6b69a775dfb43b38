// Who a client verb is to the server: a token, a certificate, or nobody.

import { CertificateError, readCertificate, type Certificate } from "../../../ops/certificate-files.js";
import { WatchedFile } from "../../../ops/watched-file.js";
import type { Given } from "../../command/task.js";
import { quoted } from "../../command/value.js";
import type { Env } from "../../command/variables.js";
import { EXIT } from "../../command/verb.js";
import { failure, type Failure } from "../remote/failure.js";
import type { ServerAddress } from "../remote/server-address.js";

/** What a verb shows of itself. Where it has both, servers look at the token. */
export interface Credentials {
  readonly token: string | null;
  readonly certificate: Certificate | null;
}

const MAX_TOKEN_BYTES = 64 * 1024;

/** Reads what the flags and the variables name; a failure where one of them can't be used. */
export async function credentialsOf(given: Given, env: Env, address: ServerAddress): Promise<Credentials | Failure> {
  const token = await tokenOf(given.text("token-file"), env["STREAMDIR_TOKEN"]);
  if (typeof token === "object" && token !== null) return token;
  const certificate = await certificateOf(given, address);
  return certificate !== null && "kind" in certificate ? certificate : { token, certificate };
}

async function tokenOf(path: string | null, variable: string | undefined): Promise<string | null | Failure> {
  const text = path === null ? (variable ?? "") : await read(path);
  if (typeof text !== "string") return text;
  const token = text.trim();
  if (token === "") return path === null ? null : failure(EXIT.usage, `--token-file ${quoted(path)} is empty`);
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  return failure(EXIT.usage, `${path === null ? "STREAMDIR_TOKEN" : "--token-file"} holds no token`);
}

async function read(path: string): Promise<string | Failure> {
  try {
    return await WatchedFile.read(path, MAX_TOKEN_BYTES);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return failure(EXIT.usage, `--token-file: ${error.message}`);
  }
}

async function certificateOf(given: Given, { isSecure }: ServerAddress): Promise<Certificate | Failure | null> {
  const [cert, key] = [given.text("cert-file"), given.text("key-file")];
  const called = given.nameOf(cert === null ? "key-file" : "cert-file");
  if (cert === null) return key === null ? null : failure(EXIT.usage, `${called} needs --cert-file FILE`);
  // A variable is for many servers, and some of them speak no TLS.
  if (!isSecure) return called === "--cert-file" ? failure(EXIT.usage, `${called} needs a server of https://`) : null;
  try {
    return await readCertificate({ cert, key: key ?? cert });
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    return failure(EXIT.usage, `${called}: ${error.message}`);
  }
}
