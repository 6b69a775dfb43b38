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
 * @property {number} bytes
 * @property {string} createdAt
 * @property {string | null} lastAppendAt
 * @property {number | null} ttlSeconds
 * @property {string | null} expiresAt
 * @property {boolean} isFork
 * @property {string | null} forkedFrom
 * @property {number} liveReaders
 * @property {number} producers
 * @property {string[]} may
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

export class Api {
  /** In front of names; ends with a slash. */
  base = new URL("../../", location.href);

  get token() {
    return sessionStorage.getItem(TOKEN_KEY) ?? "";
  }

  /** Only this tab keeps it, until it is closed. */
  set token(token) {
    if (token === "") sessionStorage.removeItem(TOKEN_KEY);
    else sessionStorage.setItem(TOKEN_KEY, token);
  }

  /**
   * @param {string} name
   * @param {Fields} [query]
   */
  urlOf(name, query = {}) {
    const url = new URL(encodeName(name), this.base);
    url.search = new URLSearchParams(query).toString();
    return url;
  }

  /**
   * @param {string} method
   * @param {URL} url
   * @param {{ headers?: Fields, body?: string | Uint8Array, signal?: AbortSignal | undefined }} [parts]
   */
  async send(method, url, { headers = {}, body, signal } = {}) {
    const given = this.token === "" ? headers : { ...headers, Authorization: `Bearer ${this.token}` };
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
      throw new ApiError(0, "unreachable", "The server can't be reached.");
    } finally {
      clearTimeout(timer);
    }
    if (answer.ok) return answer;
    const problem = await answer.json().catch(() => ({}));
    const detail = String(problem.detail ?? problem.title ?? `The server answered ${answer.status}.`);
    throw new ApiError(answer.status, String(problem.code ?? ""), detail);
  }

  /**
   * @param {Fields} query
   * @param {AbortSignal} [signal]
   * @returns {Promise<{ streams: Entry[], next: string | null }>}
   */
  async list(query, signal) {
    return (await this.send("GET", this.#own("streams", query), { signal })).json();
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
   * Calls back with each event, until the server ends the answer.
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
      const { done, value } = await reader.read();
      if (done) return;
      for (const event of parser.push(decoder.decode(value, { stream: true }))) onEvent(event, isBase64);
    }
  }

  /** @param {Fields} query */
  listFeed(query) {
    return this.#own("streams", { ...query, live: "sse" });
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
    return (await this.send("GET", new URL("/metrics", this.base))).text();
  }

  /**
   * @param {string} path
   * @param {Fields} query
   */
  #own(path, query) {
    const url = new URL(`__ds/${path}`, this.base);
    url.search = new URLSearchParams(query).toString();
    return url;
  }
}
