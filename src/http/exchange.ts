import type { IncomingMessage, ServerResponse } from "node:http";
import { DirectRequest } from "./direct-request.js";
import { RequestHeaders } from "./request-headers.js";
import type { Target } from "./target.js";

const NO_HEADERS: RequestHeaders = Object.freeze(new RequestHeaders());

/** One request on its way to its answer. */
export class Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly target: Target;
  headers: RequestHeaders;
  /** Whether the client has promised a body that has not been read to its end. */
  bodyPending: boolean;
  /** Whether the client holds its body back until it is told to continue. */
  awaitsContinue: boolean;
  /** Whether it was in turn when it came, and the event that brought it is still handled. */
  arriving = false;
  /** Its place among the requests in flight; negative when it is not among them. */
  slot = -1;
  /** Bytes of its body in memory. */
  heldBytes = 0;

  constructor(req: IncomingMessage, res: ServerResponse, target: Target, headers: RequestHeaders, awaitsContinue: boolean) {
    this.req = req;
    this.res = res;
    this.target = target;
    this.headers = headers;
    this.bodyPending = headers.hasBody;
    this.awaitsContinue = awaitsContinue;
  }

  /** Lets go of the request's headers, where an answer has begun that lasts: a browser sends 1 KB of them, and all are there thrice. */
  forgetHeaders(): void {
    this.headers = NO_HEADERS;
    // In somebody else's server they may still be asked for.
    if (this.req instanceof DirectRequest) this.req.forgetHeaders();
  }
}
