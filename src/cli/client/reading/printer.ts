// Prints what is read from a stream.

import { visibleStrings } from "../../../ops/log.js";
import { isJsonContentType } from "../../../protocol/content-type.js";
import type { DataOutput, Written } from "../session/data-output.js";
import { asLines, firstLines, jsonLine, messagesOf } from "./messages.js";
import type { ReadPage } from "./pages.js";

/** Whether there is more to print: `gone` when nobody reads it, `enough` when the limit is reached. */
export type Printed = "more" | "enough" | "gone" | "unreadable";

/** The options of {@link Printer}. */
export interface PrinterOptions {
  readonly out: DataOutput;
  readonly asJson: boolean;
  /** Most messages, or lines of a stream of bytes; `null` for all. */
  readonly limit: number | null;
}

/** Messages of JSON streams a line each, other bytes as they are; with `asJson` each with its offset. */
export class Printer {
  readonly #options: PrinterOptions;
  #left: number;
  #contentType = "application/octet-stream";

  constructor(options: PrinterOptions) {
    this.#options = options;
    this.#left = options.limit ?? Infinity;
  }

  /** Prints one answer. */
  async print({ body, contentType, next }: Pick<ReadPage, "body" | "contentType" | "next">): Promise<Printed> {
    this.#contentType = contentType ?? this.#contentType;
    const isJson = isJsonContentType(this.#contentType);
    const messages = !isJson || body.length === 0 ? [body] : messagesOf(body);
    if (messages === null) return "unreadable";
    if (body.length === 0) return "more";
    const written = isJson ? this.#printMessages(messages, next) : this.#printBytes(body, next);
    if ((await written) === "gone") return "gone";
    return this.#left <= 0 ? "enough" : "more";
  }

  #printMessages(messages: readonly Buffer[], next: string): Promise<Written> {
    const shown = messages.slice(0, Math.min(messages.length, this.#left));
    this.#left -= shown.length;
    const { asJson, out } = this.#options;
    // A terminal would obey what strings hold; a pipe gets each message to the byte.
    if (!asJson) return out.write(out.isTerminal ? visibleStrings(asLines(shown).toString()) : asLines(shown));
    const lines = shown.map((message, at) =>
      jsonLine(at === messages.length - 1 ? next : null, message, this.#contentType),
    );
    return out.write(lines.join(""));
  }

  #printBytes(body: Buffer, next: string): Promise<Written> {
    const { bytes, lines } = this.#left === Infinity ? { bytes: body, lines: 0 } : firstLines(body, this.#left);
    this.#left -= lines;
    const { asJson, out } = this.#options;
    const offset = bytes.length === body.length ? next : null;
    return out.write(asJson ? jsonLine(offset, bytes, this.#contentType) : bytes);
  }
}
