// Sends one request and takes its whole answer.

import http from "node:http";
import https from "node:https";
import { formatAuthority } from "../../../net/listen-address.js";
import type { Certificate } from "../../../ops/certificate-files.js";
import { stopwatchMs } from "../../../ops/clock.js";
import { BodyBlocks } from "../../../protocol/json/body-blocks.js";
import type { ServerAddress } from "./server-address.js";

/** One request. */
export interface Asked {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** Percent-encoded, with its query. */
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

/** A whole answer. */
export interface Answer {
  readonly kind: "answer";
  readonly status: number;
  /** The value of a header, by its name in lower case; `null` where it is not there. */
  header(name: string): string | null;
  readonly body: Buffer;
  /** From the first byte sent to the last taken, in milliseconds. */
  readonly tookMs: number;
}

/**
 * What becomes of a request: no answer, where the connection broke or could not be made, or nothing came in time
 * (`hasStalled`); nothing sent, where a header has characters that none may have.
 */
export type Heard =
  | Answer
  | { readonly kind: "silence"; readonly why: string; readonly hasStalled?: boolean }
  | { readonly kind: "too-long" }
  | { readonly kind: "unsendable"; readonly why: string };

/** What sends requests; tests replace it. */
export interface Client {
  /** Silence, too, where nothing goes or comes for `answerMs` before the answer begins. */
  ask(asked: Asked, answerMs?: number): Promise<Heard>;
  close(): void;
}

/** The longest answer. A read is longer than `--chunk-bytes` only for one append or message that is. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;
/** Longer than a server lets a long-poll wait, but for those told otherwise: then the poll begins again. */
const SILENCE_MS = 120_000;

/** The options of {@link HttpClient}. */
export interface HttpClientOptions {
  readonly address: ServerAddress;
  /** Sent as a bearer token; `null` for none. */
  readonly token: string | null;
  /** Shown to a server that asks for one; `null` for none. */
  readonly certificate: Certificate | null;
  readonly userAgent: string;
  /** Connections at a time. */
  readonly connections: number;
  /** Breaks what is under way. */
  readonly signal: AbortSignal;
}

/** Requests to one server, over connections that are kept. */
export class HttpClient implements Client {
  readonly #options: HttpClientOptions;
  readonly #agent: http.Agent;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(options: HttpClientOptions) {
    this.#options = options;
    const { address, token, certificate, userAgent, connections } = options;
    const settings = { keepAlive: true, maxSockets: connections };
    const shown = certificate === null ? {} : { cert: certificate.cert, key: certificate.key };
    this.#agent = address.isSecure ? new https.Agent({ ...settings, ...shown }) : new http.Agent(settings);
    const authorization = token === null ? {} : { Authorization: `Bearer ${token}` };
    // A zone means something on this machine alone (RFC 6874, 4).
    const [bare = "", zone] = address.host.split("%");
    const host = zone === undefined ? {} : { Host: formatAuthority(bare, address.port) };
    this.#headers = { ...host, "User-Agent": userAgent, ...authorization };
  }

  /** Resolves when the answer is whole, or there is none. Never rejects. */
  ask(asked: Asked, answerMs = SILENCE_MS): Promise<Heard> {
    const beganMs = stopwatchMs();
    let silenceMs = Math.min(answerMs, SILENCE_MS);
    let hasStalled = true;
    return new Promise((resolve) => {
      const request = this.#requestOf(asked, silenceMs);
      if (request instanceof Error) return resolve({ kind: "unsendable", why: request.message });
      const closed = (): void => resolve({ kind: "silence", why: "the connection was closed" });
      request.on("response", (response) => {
        // The end of an answer may come after that of its connection.
        request.off("close", closed);
        silenceMs = SILENCE_MS;
        hasStalled = false;
        request.setTimeout(silenceMs);
        takeIn(response, beganMs, resolve);
      });
      request.on("timeout", () => {
        resolve({ kind: "silence", why: `nothing came for ${silenceMs / 1000} s`, hasStalled });
        request.destroy();
      });
      request.on("error", (error) => resolve({ kind: "silence", why: whyOf(error) }));
      request.on("close", closed);
      request.end(asked.body);
    });
  }

  #requestOf({ method, target, headers, body }: Asked, timeout: number): http.ClientRequest | Error {
    const { address, signal } = this.#options;
    const { host, port, socketPath, isSecure } = address;
    try {
      return (isSecure ? https : http).request({
        method,
        path: target,
        agent: this.#agent,
        signal,
        // Unlike setTimeout(), also while it connects.
        timeout,
        headers: { ...this.#headers, ...headers, ...(body === undefined ? {} : { "Content-Length": body.length }) },
        ...(socketPath === null ? { host, port } : { socketPath, host }),
      });
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      return error;
    }
  }

  /** Ends the connections. */
  close(): void {
    this.#agent.destroy();
  }
}

function takeIn(response: http.IncomingMessage, beganMs: number, resolve: (heard: Heard) => void): void {
  // The server decides how small the parts are.
  const parts = new BodyBlocks();
  response.on("data", (part: Buffer) => {
    parts.add(part);
    if (parts.length <= MAX_ANSWER_BYTES) return;
    resolve({ kind: "too-long" });
    response.destroy();
  });
  response.on("error", (error) => resolve({ kind: "silence", why: whyOf(error) }));
  response.on("end", () => {
    const { statusCode: status = 0, headers } = response;
    const header = (name: string): string | null => {
      const value = headers[name];
      return value === undefined ? null : String(value);
    };
    const tookMs = stopwatchMs() - beganMs;
    resolve({ kind: "answer", status, header, body: parts.join(), tookMs });
  });
}

/** A few words: the code of the error where it has one, for its message repeats the address. */
function whyOf(error: Error): string {
  return "code" in error && typeof error.code === "string" ? error.code : error.message;
}
