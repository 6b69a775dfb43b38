import { subscribe } from "node:diagnostics_channel";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { Agent, install, setGlobalDispatcher } from "undici";
import { makeAuthority } from "../helpers/certificates.js";

/** The name of the protocol in the handshake, by what CONFORMANCE_OVER may be. */
const PROTOCOLS: Readonly<Record<string, string>> = { https: "http/1.1", h2: "h2" };

/** TLS between the tests' fetch and the server. */
export class Over {
  readonly #authority = makeAuthority();
  readonly #protocol: string;

  private constructor(protocol: string) {
    this.#protocol = protocol;
    const isHttp2 = protocol === "h2";
    install();
    setGlobalDispatcher(new Agent({ allowH2: isHttp2, connect: { ca: this.#authority.ca, ALPNProtocols: [protocol] } }));
    subscribe("undici:client:connected", (message) => {
      const { alpnProtocol } = (message as { socket: TLSSocket }).socket; // as undici documents it
      if (alpnProtocol !== this.#protocol) throw new Error(`connected over ${String(alpnProtocol)}`);
    });
  }

  /** What CONFORMANCE_OVER asks for; `null` for plain HTTP/1.1. From then on every fetch of this process goes over it. */
  static asked(): Over | null {
    const protocol = PROTOCOLS[process.env["CONFORMANCE_OVER"] ?? ""];
    return protocol === undefined ? null : new Over(protocol);
  }

  /** Puts a certificate into a folder; the flags that a server takes it with. */
  flags(folder: string): string[] {
    const { cert, key } = this.#authority.issue();
    const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
    writeFileSync(certFile, cert);
    writeFileSync(keyFile, key, { mode: 0o600 });
    return ["--tls-cert", certFile, "--tls-key", keyFile];
  }
}
