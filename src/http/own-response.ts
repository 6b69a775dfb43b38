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
  /** Lets go of a head that is out, nearly 1 KB of text: from then on Node only asks whether there is one. */
  forgetHead(): void {
    const keeper = this as this & HeadKeeper; // see there
    if (keeper._headerSent) keeper._header = SENT;
  }
}
