// What an answer to a read holds, message by message.

import { isUtf8 } from "node:buffer";
import { visibleJson, visibleStrings } from "../../../ops/log.js";
import { isJsonContentType } from "../../../protocol/content-type.js";
import { frameJson, messagesLength } from "../../../protocol/json/json-frame.js";
import { MAX_JSON_DEPTH } from "../../../protocol/json/json-scanner.js";

const LINE_FEED = 0x0a;
/** What stands behind a framed message. */
const FRAME_END = ",\n";

/** What is wrong with an answer that {@link messagesOf} finds none in. */
export const UNREADABLE_JSON = `the answer is not valid JSON, or nested deeper than ${MAX_JSON_DEPTH} levels`;

/** The messages of a JSON answer, each as it was written but on one line; `null` where the body is no array. */
export function messagesOf(body: Buffer): Buffer[] | null {
  const framed = frameJson(body);
  if (framed.kind === "invalid") return null;
  if (framed.kind === "empty-array") return [];
  const messages: Buffer[] = [];
  for (let from = 0; from < framed.bytes.length;) {
    const end = framed.bytes.indexOf(LINE_FEED, from);
    messages.push(framed.bytes.subarray(from, end + 1 - FRAME_END.length));
    from = end + 1;
  }
  return messages;
}

/** Messages as lines. */
export function asLines(messages: readonly Buffer[]): Buffer {
  return Buffer.concat(messages.flatMap((message) => [message, Buffer.from("\n")]));
}

/** The first `count` lines of `bytes`, and how many there are of them; the last may be unfinished. */
export function firstLines(bytes: Buffer, count: number): { readonly bytes: Buffer; readonly lines: number } {
  const { length, count: lines } = messagesLength(bytes, count);
  return { bytes: lines < count ? bytes : bytes.subarray(0, length), lines };
}

/** The last `count` lines of `bytes`, 1 or more; the last may be unfinished. */
export function lastLines(bytes: Buffer, count: number): Buffer {
  // The line feed at the very end ends the last line, and begins none.
  let end = bytes.at(-1) === LINE_FEED ? bytes.length - 1 : bytes.length;
  for (let left = count; left > 0; left -= 1) {
    if (end <= 0) return bytes;
    end = bytes.lastIndexOf(LINE_FEED, end - 1);
  }
  return bytes.subarray(end + 1);
}

/**
 * A line of `--json`: what was read, and where to go on behind it; `null` where the answer has more, for only its end
 * is a known offset. Bytes that are no text are in base64. Strings have no character that acts on a terminal.
 */
export function jsonLine(offset: string | null, data: Buffer, contentType: string): string {
  const place = `{"offset":${visibleJson(offset)},`;
  if (isJsonContentType(contentType)) return `${place}"data":${visibleStrings(data.toString())}}\n`;
  if (isUtf8(data)) return `${place}"data":${visibleJson(data.toString())}}\n`;
  return `${place}"base64":${JSON.stringify(data.toString("base64"))}}\n`;
}

/** Messages as a read answers with them. */
export function asArray(messages: readonly Buffer[]): Buffer {
  const parts = messages.flatMap((message, at) => [Buffer.from(at === 0 ? "" : ",\n"), message]);
  return Buffer.concat([Buffer.from("["), ...parts, Buffer.from("]")]);
}
