// A stream's data as an archive has it: bytes as they are, JSON a message a line.

import { isJsonContentType, sameMediaType } from "../../../protocol/content-type.js";
import { EXIT } from "../../command/verb.js";
import { asLines, messagesOf, UNREADABLE_JSON } from "../reading/messages.js";
import { readPage } from "../reading/pages.js";
import { failure, type Failure } from "../remote/failure.js";
import { streamCalled, type Session } from "../session/session.js";

/** What one answer had; empty at the tail of an empty stream. */
export interface DataPart {
  readonly kind: "data";
  readonly bytes: Buffer;
  /** Where this part began, and where the next one does. */
  readonly from: string;
  readonly next: string;
  readonly isClosed: boolean;
}

/** Reads a stream to its tail, one answer at a time. */
export class StreamData {
  readonly #session: Session;
  readonly #name: string;
  readonly #contentType: string;
  readonly #isJson: boolean;
  #offset: string;
  #isAtTail = false;

  constructor(session: Session, name: string, contentType: string, from = "-1") {
    this.#session = session;
    this.#name = name;
    this.#contentType = contentType;
    this.#isJson = isJsonContentType(contentType);
    this.#offset = from;
  }

  /** The next part; `null` behind the tail. */
  async next(): Promise<DataPart | null | Failure> {
    if (this.#isAtTail) return null;
    const from = this.#offset;
    const page = await readPage(this.#session, this.#name, { offset: from });
    if (page.kind === "failure") return page;
    if (page.kind === "gone") return page.failure;
    const { contentType } = page;
    if (contentType !== null && !sameMediaType(contentType, this.#contentType))
      return failure(EXIT.refused, `${streamCalled(this.#name)} is of ${contentType}, and not of ${this.#contentType}`);
    const messages = this.#isJson ? messagesOf(page.body) : [];
    if (messages === null) return failure(EXIT.fault, `${streamCalled(this.#name)}: ${UNREADABLE_JSON}`);
    this.#offset = page.next;
    this.#isAtTail = page.isUpToDate;
    const bytes = this.#isJson ? asLines(messages) : page.body;
    return { kind: "data", bytes, from, next: page.next, isClosed: page.isClosed };
  }
}
