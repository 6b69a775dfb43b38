import { ServerResponse, type IncomingMessage } from "node:http";

/** Where Node keeps the text of a head: there is no other name for it. */
interface HeadKeeper {
  _header: string | null;
  readonly _headerSent: boolean;
}

/** Stands for a head that is out. */
const SENT = "sent";

/** Node's own answer, in a server of ours. */
export class OwnResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  /** Called when the client has ended its side, and waits for this answer or is gone. */
  onClientEnd: (() => void) | null = null;

  /** Whether all of it is written, though it only ends when the client has sent its body. */
  isWhole = false;

  /** Lets go of a head that is out, nearly 1 KB of text: from then on Node only asks whether there is one. */
  forgetHead(): void {
    const keeper = this as this & HeadKeeper; // see there
    if (keeper._headerSent) keeper._header = SENT;
  }
}
