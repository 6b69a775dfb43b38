// Writes metrics in the text format of Prometheus.

import type { Histogram } from "./histogram.js";

/** The media type of the text (https://prometheus.io/docs/instrumenting/exposition_formats/). */
export const EXPOSITION_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** The labels of one series, in the order in which they are written. */
export type Labels = Readonly<Record<string, string>>;

/** The value of one series of a family. */
export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

/** The distribution of one series of a family. */
export interface Distribution {
  readonly labels: Labels;
  readonly histogram: Histogram;
}

const NO_LABELS: Labels = {};

/** Gathers families of metrics, each once, and gives them as one text. */
export class Exposition {
  #text = "";

  /** All that was added, as `GET /metrics` answers it. */
  get text(): string {
    return this.#text;
  }

  /** A number that only grows while the process lives; its name ends with `_total`. */
  counter(name: string, help: string, value: number | Iterable<Sample>): void {
    this.#family(name, "counter", help, value);
  }

  /** A number that goes up and down. */
  gauge(name: string, help: string, value: number | Iterable<Sample>): void {
    this.#family(name, "gauge", help, value);
  }

  /** How often values lay below each bound, with their sum. */
  histogram(name: string, help: string, value: Histogram | Iterable<Distribution>): void {
    this.#head(name, "histogram", help);
    const series = Symbol.iterator in value ? value : [{ labels: NO_LABELS, histogram: value }];
    for (const { labels, histogram } of series) this.#distribution(name, labels, histogram);
  }

  #family(name: string, type: "counter" | "gauge", help: string, value: number | Iterable<Sample>): void {
    this.#head(name, type, help);
    if (typeof value === "number") return this.#line(name, NO_LABELS, value);
    for (const sample of value) this.#line(name, sample.labels, sample.value);
  }

  #distribution(name: string, labels: Labels, histogram: Histogram): void {
    let count = 0;
    for (const [at, bound] of histogram.bounds.entries()) {
      count += histogram.countAt(at);
      this.#line(`${name}_bucket`, { ...labels, le: String(bound) }, count);
    }
    this.#line(`${name}_bucket`, { ...labels, le: "+Inf" }, histogram.count);
    this.#line(`${name}_sum`, labels, histogram.sum);
    this.#line(`${name}_count`, labels, histogram.count);
  }

  #head(name: string, type: string, help: string): void {
    this.#text += `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}\n# TYPE ${name} ${type}\n`;
  }

  #line(name: string, labels: Labels, value: number): void {
    const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`);
    this.#text += `${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${formatted(value)}\n`;
  }
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function formatted(value: number): string {
  if (value === Infinity) return "+Inf";
  return value === -Infinity ? "-Inf" : String(value);
}
