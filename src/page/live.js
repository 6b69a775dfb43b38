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
    let isHeard = false;
    try {
      await api.follow(api.urlOf(name, { live: "sse", offset: place }), shown, ({ event, data }, isBase64) => {
        if (event === "data") uncertain.push({ data, isBase64 });
        if (event !== "control") return;
        // A connection may end between data and the place after it: then the data comes again.
        const control = JSON.parse(data);
        isHeard = true;
        place = control.streamNextOffset;
        delayMs = FIRST_DELAY_MS;
        for (const one of uncertain) onData(one.data, one.isBase64);
        uncertain = [];
        isOver = control.streamClosed === true;
        onState(isOver ? "closed" : "live", "");
      });
      // A server ends each answer sooner or later; one without a place may end again at once.
      if (!isHeard) throw new ApiError(0, "", "The connection ended.");
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
  while (document.hidden && !signal.aborted) await first([signal, "abort"], [document, "visibilitychange"]);
  return AbortSignal.any([signal, hidden.signal]);
}

/** Aborts when the page is hidden; then another one takes its place. */
let hidden = new AbortController();
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) return;
  hidden.abort();
  hidden = new AbortController();
});

/**
 * Waits, and no longer once there is a network again.
 * @param {number} ms
 * @param {AbortSignal} signal
 */
export function pause(ms, signal) {
  return first([signal, "abort"], [window, "online"], ms);
}

/**
 * Resolves with the first of two events, or after a time.
 * @param {[EventTarget, string]} one
 * @param {[EventTarget, string]} other
 * @param {number} [ms]
 * @returns {Promise<void>}
 */
function first(one, other, ms) {
  return new Promise((resolve) => {
    const heard = new AbortController();
    const end = () => (heard.abort(), clearTimeout(timer), resolve());
    const timer = ms === undefined ? 0 : setTimeout(end, ms);
    for (const [target, type] of [one, other]) target.addEventListener(type, end, heard);
  });
}
