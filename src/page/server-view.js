// The server at a glance: its metrics as small charts.

import { ApiError } from "./api.js";
import { tokenButton } from "./dialogs.js";
import { el, svg } from "./dom.js";
import { bytesText, numberText, parseMetrics, secondsText, sumOf } from "./figures.js";
import { pause } from "./live.js";

/** @typedef {ReturnType<typeof parseMetrics>} Samples */
/** @typedef {(now: Samples, before: Samples, seconds: number) => number | null} Measure */

const EVERY_MS = 2000;
const POINTS = 60;

/**
 * @param {string} name
 * @param {string} [label]
 * @returns {Measure}
 */
const rate = (name, label) => (now, before, seconds) => {
  const [to, from] = [sumOf(now, name, label), sumOf(before, name, label)];
  return to === null ? null : Math.max(0, to - (from ?? 0)) / seconds;
};

/**
 * @param {string} name
 * @returns {Measure}
 */
const gauge = (name) => (now) => sumOf(now, name);

/**
 * The mean of what was observed since the last look.
 * @param {string} name
 * @returns {Measure}
 */
const mean = (name) => (now, before) => {
  const count = (sumOf(now, `${name}_count`) ?? 0) - (sumOf(before, `${name}_count`) ?? 0);
  return count <= 0 ? null : ((sumOf(now, `${name}_sum`) ?? 0) - (sumOf(before, `${name}_sum`) ?? 0)) / count;
};

/** @type {[string, Measure, (value: number) => string][]} */
const CHARTS = [
  ["Appends a second", rate("streamdir_requests_total", 'operation="append"'), numberText],
  ["Requests a second", rate("streamdir_requests_total"), numberText],
  ["Time of a sync", mean("streamdir_journal_sync_duration_seconds"), secondsText],
  ["Appended a second", rate("streamdir_appended_bytes_total"), bytesText],
  ["Served a second", rate("streamdir_served_bytes_total"), bytesText],
  ["Written to disk a second", rate("streamdir_journal_written_bytes_total"), bytesText],
  ["Live readers", gauge("streamdir_live_readers"), numberText],
  ["Streams in memory", gauge("streamdir_streams_loaded"), numberText],
  ["Memory", gauge("process_resident_memory_bytes"), bytesText],
];

export class ServerView {
  element = el("section", { className: "server" }, el("h1", {}, "Server"));
  #api;
  #ending = new AbortController();
  #status = el("p", { className: "status", role: "status" }, "Reading /metrics …");
  #charts = CHARTS.map(([title, measure, write]) => new Chart(title, measure, write));

  /** @param {import("./api.js").Api} api */
  constructor(api) {
    this.#api = api;
    this.element.append(
      this.#status,
      el("div", { className: "charts" }, ...this.#charts.map(({ element }) => element)),
    );
  }

  async start() {
    const { signal } = this.#ending;
    /** @type {Samples | null} */
    let before = null;
    for (let readAt = 0; !signal.aborted;) {
      try {
        const samples = parseMetrics(await this.#api.metrics());
        if (sumOf(samples, "streamdir_build_info") === null)
          throw new ApiError(404, "unknown-path", "What is at that address is not streamdir's.");
        const now = performance.now();
        for (const chart of this.#charts)
          chart.add(samples, before ?? samples, before === null ? Infinity : (now - readAt) / 1000);
        [before, readAt] = [samples, now];
        const said = writable(samples);
        // A screen reader says what changes there.
        if (this.#status.textContent !== said) this.#status.textContent = said;
      } catch (error) {
        const isRefused = error instanceof ApiError && error.status >= 400 && error.status < 500;
        this.#status.textContent = isRefused
          ? `No figures: ${error.message} They need the right admin, or are at the address of --admin-listen.`
          : "The server can't be reached; trying again.";
        if (isRefused && error.status === 401) this.#status.append(" ", tokenButton());
        if (isRefused) return;
        before = null;
      }
      await pause(EVERY_MS, signal);
    }
  }

  stop() {
    this.#ending.abort();
  }
}

/** @param {Samples} samples */
function writable(samples) {
  const version =
    /version="([^"]*)"/.exec(samples.find(({ name }) => name === "streamdir_build_info")?.labels ?? "")?.[1] ?? "";
  const isWritable = sumOf(samples, "streamdir_storage_writable") === 1;
  const damaged = sumOf(samples, "streamdir_damaged_streams") ?? 0;
  return `streamdir ${version} · ${isWritable ? "reads and writes" : "writes are refused"}${damaged > 0 ? ` · ${damaged} damaged streams` : ""} · the last two minutes`;
}

class Chart {
  #line = svg("path", { class: "line", d: "" });
  #area = svg("path", { class: "area", d: "" });
  #value = el("b", {}, "—");
  #measure;
  #write;
  /** @type {number[]} */
  #values = [];

  /**
   * @param {string} title
   * @param {Measure} measure
   * @param {(value: number) => string} write
   */
  constructor(title, measure, write) {
    this.#measure = measure;
    this.#write = write;
    const drawing = svg(
      "svg",
      { viewBox: `0 0 ${POINTS - 1} 30`, preserveAspectRatio: "none", "aria-hidden": "true" },
      this.#area,
      this.#line,
    );
    this.element = el("figure", {}, el("figcaption", {}, el("span", {}, title), this.#value), drawing);
  }

  /**
   * @param {Samples} now
   * @param {Samples} before
   * @param {number} seconds
   */
  add(now, before, seconds) {
    const value = this.#measure(now, before, seconds);
    if (value === null) return;
    this.#values = [...this.#values, value].slice(-POINTS);
    this.#value.textContent = this.#write(value);
    const top = Math.max(...this.#values) * 1.1 || 1;
    const from = POINTS - this.#values.length;
    const points = this.#values.map((one, at) => `${from + at},${(29 - (one / top) * 28).toFixed(2)}`);
    this.#line.setAttribute("d", `M${points.join("L")}`);
    this.#area.setAttribute("d", `M${from},30L${points.join("L")}L${POINTS - 1},30Z`);
  }
}
