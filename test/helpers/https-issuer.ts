import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { RequestListener } from "node:http";
import { join } from "node:path";
import type { TestScope } from "./process.js";
import { tempDir } from "./temp-dir.js";

/** An https server whose certificate, for localhost, is its own CA. */
export interface HttpsIssuer {
  readonly url: string;
  /** The file with its CA, in PEM. */
  readonly caFile: string;
  readonly ca: string;
}

/** Whether there is a program that makes certificates. */
export function canMakeCertificates(): boolean {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Serves `answer` over https for one test. */
export async function httpsIssuer(scope: TestScope, answer: RequestListener): Promise<HttpsIssuer> {
  const dir = tempDir();
  const [key, cert] = [join(dir, "key.pem"), join(dir, "cert.pem")];
  const request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
  execFileSync("openssl", [...request, ...names, "-keyout", key, "-out", cert], { stdio: "ignore" });
  // Whatever the umask is: a server warns of one that all may write.
  chmodSync(cert, 0o644);
  const ca = readFileSync(cert, "utf8");
  const server: Server = createServer({ key: readFileSync(key), cert: ca }, answer);
  server.listen(0, "localhost");
  await once(server, "listening");
  scope.after(async () => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return { url: `https://localhost:${port}/keys`, caFile: cert, ca };
}
