// Speaks to the server, as any other client does.

import { encodeName } from "./route.js";
import { SseParser } from "./sse.js";

/**
 * A stream as the list has it.
 * @typedef {object} Entry
 * @property {string} name
 * @property {string} contentType
 * @property {boolean} closed
 * @property {string} nextOffset
 * @property {string} earliestOffset
 * @property {number | null} bytes `null` where only the list would say.
 * @property {string | null} createdAt
 * @property {string | null} lastAppendAt
 * @property {number | null} ttlSeconds
 * @property {string | null} expiresAt
 * @property {boolean} isFork
 * @property {string | null} forkedFrom
 * @property {number | null} liveReaders
 * @property {number | null} producers
 * @property {string[]} may
 */

/**
 * The server, and what whoever asks may do: with one stream, or with some.
 * @typedef {{ prefix: string, metrics: string | null, caller: string | null, allow: string[] }} Facts
 */

/** @typedef {{ bytes: Uint8Array, next: string, upToDate: boolean, closed: boolean, contentType: string }} Chunk */
/** @typedef {Record<string, string>} Fields */

/** What the server refuses, or that it can't be reached (status 0). */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} code
   * @param {string} detail
   */
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

const TOKEN_KEY = "streamdir-token";
/** Time for an answer to begin. */
const ANSWER_MS = 20_000;
/**
 * After so much silence it is read anew: a connection may be dead without a word, as when a telephone changes its network.
 * The server sends a comment every 15 s, unless `--sse-heartbeat` says otherwise.
 */
const SILENT_MS = 45_000;

export class Api {
  /** In front of names; ends with a slash. */
  base = new URL("../../", location.href);
  /** @type {Promise<Facts> | null} */
  #server = null;
  #token = orNull(() => sessionStorage.getItem(TOKEN_KEY)) ?? "";

  get token() {
    return this.#token;
  }

  /**
   * Only this tab keeps it, until it is closed; where the browser keeps nothing, until the page is loaded again. Throws for
   * what no header can have.
   */
  set token(token) {
    if (token !== "") headersOf(bearer(token));
    this.#server = null;
    this.#token = token;
    if (token === "") orNull(() => sessionStorage.removeItem(TOKEN_KEY));
    else orNull(() => sessionStorage.setItem(TOKEN_KEY, token));
  }

  /**
   * @param {string} name
   * @param {Fields} [query]
   */
  urlOf(name, query = {}) {
    const url = new URL(this.base);
    const path = url.pathname + encodeName(name);
    url.pathname = path;
    // Browsers take dots for steps: what is somewhere else then must not get the token.
    if (url.pathname !== path) throw new ApiError(400, "invalid-name", "No stream can have this name.");
    url.search = new URLSearchParams(query).toString();
    return url;
  }

  /**
   * @param {string} method
   * @param {URL} url
   * @param {{ headers?: Fields, body?: string | Uint8Array, signal?: AbortSignal | undefined }} [parts]
   */
  async send(method, url, { headers = {}, body, signal } = {}) {
    const given = headersOf(this.token === "" ? headers : { ...headers, ...bearer(this.token) });
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), ANSWER_MS);
    const signals = [late.signal, ...(signal === undefined ? [] : [signal])];
    /** @type {RequestInit} */
    const init = {
      method,
      headers: given,
      cache: "no-store",
      credentials: "same-origin",
      signal: AbortSignal.any(signals),
    };
    if (body !== undefined) init.body = /** @type {BodyInit} */ (body);
    /** @type {Response} */
    let answer;
    try {
      answer = await fetch(url, init);
    } catch (error) {
      if (signal?.aborted === true) throw error;
      const isLate = late.signal.aborted;
      const why = isLate ? `The server has not answered for ${ANSWER_MS / 1000} s.` : "The server can't be reached.";
      // What was sent may have come all the same.
      const doubt = method === "GET" || method === "HEAD" ? "" : " It may have been done: look before you do it again.";
      throw new ApiError(0, "unreachable", why + doubt);
    } finally {
      clearTimeout(timer);
    }
    if (answer.ok) return answer;
    const problem = await answer.json().catch(() => ({}));
    const detail = String(problem.detail ?? problem.title ?? WORDS[answer.status] ?? `The answer is ${answer.status}.`);
    // The server's words there are for programs.
    const isWithout = answer.status === 401 && this.token === "" && problem.code !== "invalid-token";
    throw new ApiError(answer.status, String(problem.code ?? ""), isWithout ? "This needs a token." : detail);
  }

  /**
   * @param {Fields} query
   * @param {AbortSignal} [signal]
   * @returns {Promise<{ streams: Entry[], next: string | null }>}
   */
  async list(query, signal) {
    return (await this.send("GET", this.urlOf("__ds/streams", query), { signal })).json();
  }

  /**
   * What may be done with a stream, there or not.
   * @param {string} [name] Without it: with some stream, or the server.
   * @returns {Promise<Facts>}
   */
  async facts(name) {
    return (await this.send("GET", this.urlOf("__ds/ui/facts", name === undefined ? {} : { stream: name }))).json();
  }

  /** The same without a name, asked for once while the token is the same. */
  server() {
    this.#server ??= this.facts().catch((error) => {
      this.#server = null;
      throw error;
    });
    return this.#server;
  }

  /**
   * The stream of this name as the list has it; `null` where the list does not have it.
   * @param {string} name
   * @param {AbortSignal} [signal]
   * @returns {Promise<Entry | null>}
   */
  async entry(name, signal) {
    const { streams } = await this.list({ prefix: name, limit: "1" }, signal);
    return streams.find((stream) => stream.name === name) ?? null;
  }

  /**
   * A stream, also for those who may read but not list.
   * @param {string} name
   * @param {AbortSignal} signal
   * @returns {Promise<Entry>}
   */
  async look(name, signal) {
    const listed = await this.entry(name, signal).catch((error) => {
      if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return null;
      throw error;
    });
    if (listed !== null) return listed;
    const [{ headers }, { allow }] = await Promise.all([
      this.send("HEAD", this.urlOf(name), { signal }),
      this.facts(name),
    ]);
    return {
      ...UNLISTED,
      name,
      contentType: headers.get("content-type") ?? "",
      closed: headers.has("stream-closed"),
      nextOffset: headers.get("stream-next-offset") ?? "",
      earliestOffset: headers.get("stream-earliest-offset") ?? "-1",
      expiresAt: headers.get("stream-expires-at"),
      may: allow,
    };
  }

  /**
   * @param {string} name
   * @param {Fields} query
   * @param {AbortSignal} [signal]
   * @returns {Promise<Chunk>}
   */
  async read(name, query, signal) {
    const answer = await this.send("GET", this.urlOf(name, query), { signal });
    const { headers } = answer;
    return {
      bytes: new Uint8Array(await answer.arrayBuffer()),
      next: headers.get("stream-next-offset") ?? "",
      upToDate: headers.get("stream-up-to-date") === "true",
      closed: headers.get("stream-closed") === "true",
      contentType: headers.get("content-type") ?? "",
    };
  }

  /**
   * Calls back with each event, until the server ends the answer or is silent for long.
   * @param {URL} url
   * @param {AbortSignal} signal
   * @param {(event: import("./sse.js").SseEvent, isBase64: boolean) => void} onEvent
   */
  async follow(url, signal, onEvent) {
    const answer = await this.send("GET", url, { signal });
    const isBase64 = answer.headers.get("stream-sse-data-encoding") === "base64";
    const parser = new SseParser();
    const decoder = new TextDecoder();
    const reader = /** @type {ReadableStream<Uint8Array>} */ (answer.body).getReader();
    for (;;) {
      const timer = setTimeout(() => void reader.cancel(), SILENT_MS);
      const { done, value } = await reader.read().finally(() => clearTimeout(timer));
      if (done) return;
      for (const event of parser.push(decoder.decode(value, { stream: true }))) onEvent(event, isBase64);
    }
  }

  /** @param {Fields} query */
  listFeed(query) {
    return this.urlOf("__ds/streams", { ...query, live: "sse" });
  }

  /**
   * @param {string} name
   * @param {string} contentType
   * @param {string} body
   */
  append(name, contentType, body) {
    return this.send("POST", this.urlOf(name), { headers: { "Content-Type": contentType }, body });
  }

  /**
   * @param {string} name
   * @param {Fields} headers
   * @param {string} [body]
   */
  create(name, headers, body) {
    return this.send("PUT", this.urlOf(name), body === undefined ? { headers } : { headers, body });
  }

  /** @param {string} name */
  close(name) {
    return this.send("POST", this.urlOf(name), { headers: { "Stream-Closed": "true" } });
  }

  /** @param {string} name */
  remove(name) {
    return this.send("DELETE", this.urlOf(name));
  }

  async metrics() {
    const { metrics } = await this.server();
    const unknown = new ApiError(404, "unknown-path", "They are not at this address.");
    if (metrics === null) throw unknown;
    try {
      return await (await this.send("GET", new URL(metrics, location.href))).text();
    } catch (error) {
      // A proxy in front has something else there, or nothing.
      throw error instanceof ApiError && error.status === 404 ? unknown : error;
    }
  }

  /**
   * The path of a stream as the server has it, also behind a proxy that has it elsewhere.
   * @param {string} name
   */
  async pathOf(name) {
    return (await this.server()).prefix + encodeName(name);
  }
}

/**
 * What the browser's storage gives; `null` where it refuses.
 * @template T
 * @param {() => T} use
 */
export function orNull(use) {
  try {
    return use();
  } catch (error) {
    if (error instanceof DOMException) return null;
    throw error;
  }
}

/** @param {string} token */
function bearer(token) {
  return { Authorization: `Bearer ${token}` };
}

/** @param {Fields} given What was typed may have characters that no header can have. */
function headersOf(given) {
  try {
    return new Headers(given);
  } catch {
    const name = "Authorization" in given ? "The token, or what was typed," : "What was typed";
    throw new ApiError(400, "bad-request", `${name} has characters that can't be sent.`);
  }
}

/** What only the list says. */
const UNLISTED = {
  bytes: null,
  createdAt: null,
  lastAppendAt: null,
  ttlSeconds: null,
  isFork: false,
  forkedFrom: null,
  liveReaders: null,
  producers: null,
};

/** For answers to HEAD, which have no words. @type {Record<number, string>} */
const WORDS = {
  401: "The token is not valid, or no longer.",
  403: "That is not allowed here.",
  404: "There is no stream of this name.",
  410: "The stream is deleted.",
};
