// Follows a stream, across ends of connections and restarts of the server.

import { ApiError } from "./api.js";

/** @typedef {"connecting" | "live" | "waiting" | "closed" | "gone"} LiveState */

/**
 * @typedef {object} Follower
 * @property {(data: string, isBase64: boolean) => void} onData What is certain to come once.
 * @property {(state: LiveState, detail: string) => void} onState
 */

const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 10_000;

/**
 * Follows from an offset until the signal aborts, the stream is closed, or it may not be read any more.
 * @param {import("./api.js").Api} api
 * @param {string} name
 * @param {string} offset
 * @param {AbortSignal} signal
 * @param {Follower} follower
 */
export async function followStream(api, name, offset, signal, { onData, onState }) {
  let place = offset;
  let delayMs = FIRST_DELAY_MS;
  let isOver = false;
  while (!signal.aborted && !isOver) {
    const shown = await whileShown(signal);
    /** @type {{ data: string, isBase64: boolean }[]} */
    let uncertain = [];
    try {
      await api.follow(api.urlOf(name, { live: "sse", offset: place }), shown, ({ event, data }, isBase64) => {
        if (event === "data") uncertain.push({ data, isBase64 });
        if (event !== "control") return;
        // A connection may end between data and the place after it: then the data comes again.
        const control = JSON.parse(data);
        place = control.streamNextOffset;
        delayMs = FIRST_DELAY_MS;
        for (const one of uncertain) onData(one.data, one.isBase64);
        uncertain = [];
        isOver = control.streamClosed === true;
        onState(isOver ? "closed" : "live", "");
      });
    } catch (error) {
      if (signal.aborted) return;
      if (shown.aborted) continue;
      const { status, message } = error instanceof ApiError ? error : { status: 0, message: "The connection broke." };
      const isPassing = status === 0 || status === 429 || status >= 500;
      onState(isPassing ? "waiting" : "gone", message);
      if (!isPassing) return;
      await pause(delayMs * (0.75 + Math.random() / 2), signal);
      delayMs = Math.min(delayMs * 2, MAX_DELAY_MS);
    }
  }
}

/**
 * Waits until the page is shown, and resolves to a signal that aborts when it no longer is: a browser has six connections
 * to a server for all its tabs.
 * @param {AbortSignal} signal
 * @returns {Promise<AbortSignal>}
 */
export async function whileShown(signal) {
  while (document.hidden && !signal.aborted) await changed(signal);
  const hidden = new AbortController();
  const hide = () => {
    if (!document.hidden) return;
    document.removeEventListener("visibilitychange", hide);
    hidden.abort();
  };
  document.addEventListener("visibilitychange", hide, { signal });
  return AbortSignal.any([signal, hidden.signal]);
}

/**
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
function changed(signal) {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
    document.addEventListener("visibilitychange", () => resolve(), { once: true });
  });
}

/**
 * @param {number} ms
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
