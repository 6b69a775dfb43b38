// Makes TLS connections of plain ones, and keeps the certificate up to date.

import { constants, type X509Certificate } from "node:crypto";
import type { Socket } from "node:net";
import { createServer, type Server, type TLSSocket, type TlsOptions } from "node:tls";
import type { TlsFailure } from "../../metrics/connection-figures.js";
import type { Clock, Timer } from "../../ops/clock.js";
import type { Log } from "../../ops/log.js";
import { isReadFailure, WatchedFile, type FileFault } from "../../ops/watched-file.js";
import { clientAddressBelow, plainSocketOf } from "../node/plain-socket-of.js";
import { CertificateError, readCertificate, type Certificate } from "../../ops/certificate-files.js";
import { DAY_MS, readAuthorities, warningOf, type TrustedAuthorities } from "./certificate.js";
import type { TlsFiles } from "./plan.js";

/** For a client's handshake. */
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** OpenSSL's code for GET, HEAD, POST or PUT in place of a handshake. */
const PLAIN_REQUEST = "ERR_SSL_HTTP_REQUEST";
/** The code of an error, where it is not of the handshake itself. */
const FAILURES: ReadonlyMap<string | undefined, TlsFailure> = new Map([
  [PLAIN_REQUEST, "plain"],
  ["ECONNRESET", "left"],
  ["ERR_TLS_HANDSHAKE_TIMEOUT", "left"],
]);
const OWN_END = {
  early: "the TLS certificate does not hold yet",
  soon: "the TLS certificate ends soon",
  over: "the TLS certificate has expired",
} as const;
const AUTHORITY_END = {
  early: "an authority of clients does not hold yet",
  soon: "an authority of clients ends soon",
  over: "an authority of clients has expired",
} as const;
/** The best first. */
const PROTOCOLS = ["h2", "http/1.1"];

/** What a door is opened with. */
export interface TlsDoorOptions {
  readonly files: TlsFiles;
  readonly clock: Clock;
  readonly log: Log;
  /** Takes a connection whose handshake is done. */
  readonly onSecure: (socket: TLSSocket, protocol: "h2" | "http/1.1") => void;
  /** Takes when the certificate in use ends, whenever one was read. */
  readonly onEnd?: (endsAtMs: number) => void;
  /** Takes whether the files hold as they were read last. */
  readonly onRead?: (isCurrent: boolean) => void;
  /** Takes why a connection became none of TLS. */
  readonly onFailure?: (reason: TlsFailure) => void;
  /** Takes the authorities whose clients are let in, whenever they were read; where clients are not asked, nothing. */
  readonly onClientAuthorities?: (authorities: readonly X509Certificate[]) => void;
  /** The last word, as bytes of HTTP, to a client that asks without TLS. */
  readonly plainAnswer: string;
  /** How often the files are looked at. */
  readonly intervalMs?: number;
  /** How long a client may take for its handshake. */
  readonly handshakeTimeoutMs?: number;
}

/** What a door shows, and whom it believes. */
interface Identity {
  readonly certificate: Certificate;
  /** `null` where clients are not asked for a certificate. */
  readonly authorities: TrustedAuthorities | null;
}

/** Where connections become TLS connections. */
export class TlsDoor {
  readonly #options: TlsDoorOptions;
  readonly #server: Server;
  readonly #watched: WatchedFile;
  /** Connections whose handshake is not done. */
  readonly #shaking = new Set<Socket>();
  #loading: Promise<boolean> = Promise.resolve(true);
  #identity: Identity;
  /** Until ends are looked at again. */
  #endsTimer: Timer | null = null;

  private constructor(options: TlsDoorOptions, identity: Identity, watched: WatchedFile) {
    this.#options = options;
    this.#identity = identity;
    this.#watched = watched;
    const { files, log, onSecure, plainAnswer, onFailure, handshakeTimeoutMs = HANDSHAKE_TIMEOUT_MS } = options;
    this.#server = createServer({
      ...contextOf(identity),
      ALPNProtocols: PROTOCOLS,
      handshakeTimeout: handshakeTimeoutMs,
      requestCert: files.clientCa !== null,
      // A client without a certificate may have another credential; one with a wrong certificate is cut below.
      rejectUnauthorized: false,
    });
    this.#server.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
      log.debug("a TLS handshake failed", { fault: error.message, ...senderOf(socket) });
      onFailure?.(FAILURES.get(error.code) ?? "handshake");
      if (error.code === PLAIN_REQUEST) plainSocketOf(socket)?.write(plainAnswer);
      socket.destroy();
    });
    this.#server.on("secureConnection", (socket) => {
      const plain = plainSocketOf(socket);
      // Where it is not known whose handshake is done, none is cut.
      if (plain === null) this.#shaking.clear();
      else this.#shaking.delete(plain);
      socket.allowHalfOpen = true;
      const fault = faultOfClient(socket);
      if (fault === null) return onSecure(socket, socket.alpnProtocol === "h2" ? "h2" : "http/1.1");
      const { subject, serialNumber } = socket.getPeerCertificate();
      log.debug("a client's certificate was refused", {
        fault,
        ...senderOf(socket),
        ...("CN" in subject ? { name: String(subject.CN) } : {}),
        serialNumber,
      });
      onFailure?.("certificate");
      socket.on("error", () => undefined).destroy();
    });
  }

  /** Reads the files. Throws {@link CertificateError}. */
  static async open(options: TlsDoorOptions): Promise<TlsDoor> {
    const { cert, key, clientCa } = options.files;
    const paths = [cert, key, ...(clientCa === null ? [] : [clientCa])];
    let door: TlsDoor | null = null;
    const onChange = (): void => {
      if (door === null) watched.lookAgain();
      else void door.#reloadInTurn();
    };
    // Before the first read: a change during it is seen.
    const watched = new WatchedFile(paths, onChange, options.intervalMs);
    try {
      const certificate = await readCertificate(options.files);
      const authorities = clientCa === null ? null : await readAuthorities(clientCa);
      if (await WatchedFile.isReadableByAll(key))
        options.log.warn("every user of this machine may read the TLS key; chmod 600 keeps it to its owner", {
          file: key,
        });
      door = new TlsDoor(options, { certificate, authorities }, watched);
      door.#take();
      options.onRead?.(true);
      return door;
    } catch (error) {
      watched.close();
      throw error;
    }
  }

  /** Takes a connection whose client begins with its handshake. */
  accept(socket: Socket): void {
    this.#shaking.add(socket);
    socket.on("close", () => this.#shaking.delete(socket));
    // Asked for once, an address is there when the connection is over.
    void socket.remoteAddress;
    // Who ends a side before the handshake is done has left.
    socket.allowHalfOpen = false;
    this.#server.emit("connection", socket);
  }

  /** Cuts the connections whose handshake is not done. */
  cutHandshakes(): void {
    for (const socket of this.#shaking) socket.destroy();
  }

  /**
   * Reads the files again; false where one can't be used, or certificate and key do not belong together: then the old
   * ones are kept. Neither these nor the authorities of clients hold up the others. Connections that are open go on
   * with the server's certificate that they began with; their client's counts while its authority does.
   */
  reload(): Promise<boolean> {
    this.#watched.tellAnew();
    return this.#reloadInTurn();
  }

  #reloadInTurn(): Promise<boolean> {
    this.#loading = this.#loading.then(() => this.#load());
    return this.#loading;
  }

  async #load(): Promise<boolean> {
    const { files } = this.#options;
    const faults: (FileFault & { readonly message: string })[] = [];
    const failed =
      (message: string) =>
      (error: unknown): null => {
        const fault = error instanceof Error ? error.message : String(error);
        const isUnread = error instanceof CertificateError && isReadFailure(error.cause);
        faults.push({ message, fault, isUnread });
        return null;
      };
    const certificate = await readCertificate(files).catch(
      failed("the TLS certificate is not changed: its files can't be used"),
    );
    const authorities =
      files.clientCa === null
        ? null
        : await readAuthorities(files.clientCa).catch(
            failed("the authorities of clients are not changed: their file can't be used"),
          );
    const before = this.#identity;
    const isOther =
      (certificate !== null &&
        (certificate.cert !== before.certificate.cert || certificate.key !== before.certificate.key)) ||
      (authorities !== null && authorities.pem !== before.authorities?.pem);
    // A file that can't be read is tried again and again: that changes nothing for those who are connected.
    if (faults.length === 0 || isOther)
      try {
        this.#replace({
          certificate: certificate ?? before.certificate,
          authorities: authorities ?? before.authorities,
        });
      } catch (error) {
        failed("the TLS files can't be taken")(error);
      }
    if (this.#watched.noteFaults(faults))
      for (const { message, fault } of faults) this.#options.log.error(message, { fault });
    this.#options.onRead?.(faults.length === 0);
    return faults.length === 0;
  }

  #replace(identity: Identity): void {
    this.#identity = identity;
    // Its ticket keys are new: a session that began before is not resumed.
    this.#server.setSecureContext(contextOf(identity));
    this.#options.log.info("the TLS files were read again", { endsAt: dateOf(identity.certificate.endsAtMs) });
    this.#take();
  }

  /** Tells of what is in use now. */
  #take(): void {
    const { authorities, certificate } = this.#identity;
    const { onClientAuthorities, onEnd, files, log } = this.#options;
    if (authorities !== null) onClientAuthorities?.(authorities.certificates);
    onEnd?.(certificate.endsAtMs);
    for (const { subject } of rootlessOf(authorities?.certificates ?? []))
      log.warn("the clients of an authority are refused: who has signed it is not in the file", {
        file: files.clientCa,
        name: subject,
      });
    this.#warnOfEnds();
  }

  /** Warns of what ends soon, has ended, or has not begun; and again each day, and when the next one has ended. */
  #warnOfEnds(): void {
    const { clock, log, files } = this.#options;
    const nowMs = clock.nowMs();
    const ends = endsOf(this.#identity, files);
    for (const { lines, file, beginsAtMs, endsAtMs, name } of ends) {
      const warning = warningOf({ beginsAtMs, endsAtMs }, nowMs);
      const when = warning === "early" ? { beginsAt: dateOf(beginsAtMs) } : { endsAt: dateOf(endsAtMs) };
      if (warning !== null) log.warn(lines[warning], { file, ...name, ...when });
    }
    const nextMs = Math.min(DAY_MS, ...ends.map(({ endsAtMs }) => endsAtMs - nowMs).filter((ms) => ms > 0));
    this.#endsTimer?.cancel();
    this.#endsTimer = clock.after(nextMs, () => this.#warnOfEnds());
  }

  /** Looks at the files no more. */
  close(): void {
    this.#endsTimer?.cancel();
    this.#watched.close();
  }
}

function contextOf({ certificate: { cert, key }, authorities }: Identity): TlsOptions {
  // A second handshake could put another certificate in the place of the one that was checked in the first.
  // A resumed session has not all of its client's certificates: each connection shows them anew.
  const secureOptions = constants.SSL_OP_NO_RENEGOTIATION | (authorities === null ? 0 : constants.SSL_OP_NO_TICKET);
  return { cert, key, minVersion: "TLSv1.2", secureOptions, ...(authorities === null ? {} : { ca: authorities.pem }) };
}

/** A certificate that ends. */
interface End {
  readonly lines: typeof OWN_END | typeof AUTHORITY_END;
  readonly file: string;
  readonly beginsAtMs: number;
  readonly endsAtMs: number;
  readonly name: Readonly<Record<string, string>>;
}

function endsOf({ certificate, authorities }: Identity, { cert, clientCa }: TlsFiles): readonly End[] {
  const { beginsAtMs, endsAtMs } = certificate;
  const own = { lines: OWN_END, file: cert, beginsAtMs, endsAtMs, name: {} };
  if (authorities === null || clientCa === null) return [own];
  const ofClients = authorities.certificates.map(({ subject, validFrom, validTo }) => ({
    lines: AUTHORITY_END,
    file: clientCa,
    beginsAtMs: Date.parse(validFrom),
    endsAtMs: Date.parse(validTo),
    name: { name: subject },
  }));
  return [own, ...ofClients];
}

/** OpenSSL believes a client only where all who have signed are there, up to one that has signed itself. */
function rootlessOf(authorities: readonly X509Certificate[]): readonly X509Certificate[] {
  // Nearly all have signed themselves, and there may be a thousand.
  let rooted = authorities.filter(({ subject, issuer }) => subject === issuer);
  let others = authorities.filter(({ subject, issuer }) => subject !== issuer);
  while (rooted.length > 0) {
    const below = others.filter((one) => rooted.some((above) => one.checkIssued(above)));
    others = others.filter((one) => !below.includes(one));
    rooted = below;
  }
  return others;
}

function dateOf(ms: number): string {
  return new Date(ms).toISOString();
}

/** Whose connection it is, for the log. */
function senderOf(socket: TLSSocket): { readonly client?: string } {
  const client = clientAddressBelow(socket);
  return client === undefined ? {} : { client };
}

/** What is wrong with the certificate of a client that has one; `null` for nothing, and for a client without. */
function faultOfClient(socket: TLSSocket): string | null {
  if (socket.authorized || Object.keys(socket.getPeerCertificate()).length === 0) return null;
  const { authorizationError } = socket;
  // Without `clientCa` nobody is asked.
  return authorizationError === undefined || authorizationError === null ? null : String(authorizationError);
}
