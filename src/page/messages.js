// Cuts what a stream holds into messages to show.

/**
 * The values of a JSON array, or the members of an object, each as it was written: numbers keep all their digits.
 * @param {string} text
 * @param {number} [limit] Of how many are wanted.
 * @returns {string[]}
 */
export function splitArray(text, limit = Infinity) {
  /** @type {string[]} */
  const values = [];
  let start = text.search(/[[{]/) + 1;
  if (start === 0) return [];
  let depth = 0;
  let quoted = false;
  for (let at = start; at < text.length && values.length < limit; at += 1) {
    const character = text[at];
    if (quoted) {
      if (character === "\\") at += 1;
      else if (character === '"') quoted = false;
    } else if (character === '"') quoted = true;
    else if (character === "{" || character === "[") depth += 1;
    else if (depth > 0 && (character === "}" || character === "]")) depth -= 1;
    else if (depth === 0 && (character === "," || character === "]" || character === "}")) {
      const value = text.slice(start, at).trim();
      if (value !== "") values.push(value);
      start = at + 1;
    }
  }
  return values;
}

/**
 * What a JSON object or array has, in its order: each key, and its value as it was written. A key that is there twice
 * comes twice.
 * @param {string} text
 * @param {number} [limit] Of how many are wanted.
 * @returns {[key: string, value: string][]}
 */
export function membersOf(text, limit) {
  const members = splitArray(text, limit);
  if (text.trimStart().startsWith("[")) return members.map((value, index) => [String(index), value]);
  return members.map((member) => {
    const [key = '""'] = /^"[^"\\]*(?:\\.[^"\\]*)*"/.exec(member) ?? [];
    return [JSON.parse(key), member.slice(member.indexOf(":", key.length) + 1).trim()];
  });
}

const LINE_FEED = 10;

/**
 * Lines, the last without its end too, as the bytes that they have.
 * @param {Uint8Array} bytes
 * @returns {Uint8Array[]} Copies: a line does not keep all that was read with it.
 */
export function splitLines(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length;) {
    const found = bytes.indexOf(LINE_FEED, at);
    const end = found === -1 ? bytes.length : found;
    lines.push(bytes.slice(at, end));
    at = end + 1;
  }
  return lines;
}

/**
 * Bytes as far as they are whole lines.
 * @param {Uint8Array} bytes
 */
export function linesEnd(bytes) {
  return bytes.lastIndexOf(LINE_FEED) + 1;
}

/** @param {Uint8Array[]} parts */
export function joined(parts) {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/**
 * What was typed, with a line feed at its end: the next append begins a line.
 * @param {string} text
 */
export function asLines(text) {
  return text.endsWith("\n") ? text : `${text}\n`;
}

/**
 * One JSON array of many, none of which has anything but white space around it.
 * @param {readonly Uint8Array[]} arrays
 * @returns {Uint8Array[]} In pieces.
 */
export function joinedArrays(arrays) {
  const encoder = new TextEncoder();
  const members = arrays.map((bytes) => bytes.subarray(bytes.indexOf(0x5b) + 1, bytes.lastIndexOf(0x5d)));
  const pieces = members
    .filter(({ length }) => length > 0)
    .flatMap((bytes, at) => (at === 0 ? [bytes] : [encoder.encode(","), bytes]));
  return [encoder.encode("["), ...pieces, encoder.encode("]")];
}

/** Bytes of a piece of a binary stream. */
const PIECE_BYTES = 4096;

/**
 * @param {Uint8Array} bytes
 * @returns {Uint8Array[]}
 */
export function splitBytes(bytes) {
  const pieces = [];
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) pieces.push(bytes.subarray(at, at + PIECE_BYTES));
  return pieces;
}

/**
 * @param {string} base64
 * @returns {Uint8Array}
 */
export function fromBase64(base64) {
  return Uint8Array.from(atob(base64.replace(/\s/g, "")), (character) => character.charCodeAt(0));
}

/**
 * What kind of messages a stream of a content type has.
 * @param {string} contentType
 * @returns {"json" | "text" | "bytes"}
 */
export function kindOf(contentType) {
  const type = (contentType.split(";", 1)[0] ?? "").trim().toLowerCase();
  if (type === "application/json") return "json";
  return type.startsWith("text/") || /[+/](?:json|xml|x-ndjson|jsonl)$/.test(type) ? "text" : "bytes";
}

/**
 * A dump: places, bytes, characters.
 * @param {Uint8Array} bytes
 * @returns {string}
 */
export function hexDump(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const row = [...bytes.subarray(at, at + 16)];
    const hex = row.map((byte, index) => byte.toString(16).padStart(2, "0") + (index === 7 ? " " : "")).join(" ");
    const text = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(8, "0")}  ${hex.padEnd(48)}  ${text}`);
  }
  return lines.join("\n");
}
