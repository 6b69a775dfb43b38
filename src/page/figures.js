// Writes numbers for people, and reads the server's metrics.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** @param {number} bytes */
export function bytesText(bytes) {
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(value) : value.toFixed(value < 10 ? 1 : 0)} ${UNITS[unit]}`;
}

/** @param {number} value */
export function numberText(value) {
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
  if (value >= 1e4) return `${(value / 1e3).toFixed(1)} k`;
  return value >= 100 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(1);
}

/** @param {number} seconds */
export function secondsText(seconds) {
  if (seconds < 0.001) return `${(seconds * 1e6).toFixed(0)} µs`;
  return seconds < 1 ? `${(seconds * 1e3).toFixed(1)} ms` : `${seconds.toFixed(1)} s`;
}

/**
 * The samples of a report in the text format of Prometheus.
 * @param {string} text
 * @returns {{ name: string, labels: string, value: number }[]}
 */
export function parseMetrics(text) {
  const samples = [];
  for (const line of text.split("\n")) {
    const found = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (found !== null) samples.push({ name: found[1] ?? "", labels: found[2] ?? "", value: Number(found[3]) });
  }
  return samples;
}

/**
 * The sum of the samples of a name whose labels have a text; `null` without one.
 * @param {ReturnType<typeof parseMetrics>} samples
 * @param {string} name
 * @param {string} [label]
 * @returns {number | null}
 */
export function sumOf(samples, name, label = "") {
  const found = samples.filter((sample) => sample.name === name && sample.labels.includes(label));
  return found.length === 0 ? null : found.reduce((sum, { value }) => sum + value, 0);
}
