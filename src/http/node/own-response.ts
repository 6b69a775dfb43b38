// Node's ServerResponse, with less memory for long answers.
//
// Private names: `_header` and `_headerSent` of an answer. Node keeps the text of a head until the answer ends, nearly
// 1 KB for each SSE reader, and has no way to release it. Where a version of Node lacks them, nothing is released.

import { ServerResponse, type IncomingMessage } from "node:http";

/** An answer with Node's private members for the text of its head. */
interface HeadKeeper {
  _header: string | null;
  readonly _headerSent: boolean;
}

/** Takes the place of a head that has been sent. */
const SENT = "sent";

/** Node's own answer, in a server of ours. */
export class OwnResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  /** Called when the client has ended its side: it waits for this answer, or is gone. */
  onClientEnd: (() => void) | null = null;

  /** Whether all of it is written, though it only ends when the client has sent its body. */
  isWhole = false;

  /** Has an answer that is sent in chunks take whole ones from now on, and the last one too; false for any other. */
  takeChunks(): boolean {
    const { chunkedEncoding } = this;
    this.chunkedEncoding = false;
    return chunkedEncoding;
  }

  /** Releases the text of a sent head, nearly 1 KB: from then on Node only checks whether there is one. */
  forgetHead(): void {
    const keeper = this as this & HeadKeeper; // as its type says
    if (keeper._headerSent) keeper._header = SENT;
  }
}
