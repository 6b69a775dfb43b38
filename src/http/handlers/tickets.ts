// Issues tickets: rights to read one stream that fit into a URL.

import type { Caller } from "../../auth/rights/caller.js";
import { checkedName } from "../../protocol/names/stream-name.js";
import { formatTimestamp } from "../../protocol/timestamp.js";
import { chain } from "../../stream/loaded/chain.js";
import type { MaybePromise } from "../../stream/loaded/stream.js";
import type { Body } from "../../stream/rules/command.js";
import { CREDENTIAL_GONE, lackOf } from "../access/access.js";
import { baseOf } from "../answer/location.js";
import { BodyUse, receiveBody } from "../context/body.js";
import type { Context } from "../context/context.js";
import { isProblem, problem, type Problem } from "../encoding/problems.js";
import type { Exchange } from "../exchange/exchange.js";

const MAX_BODY_BYTES = 8 * 1024;
const MAX_LIFETIME_SECONDS = 7 * 24 * 3600;
const MEMBERS: readonly string[] = ["stream", "close", "expiresIn"];

/** `POST {prefix}__ds/tickets`: a ticket for one stream (docs/api.md, Tickets). */
export function issueTicket(context: Context, exchange: Exchange): MaybePromise<void> {
  const { responder, access } = context;
  return chain(access.callerOf(exchange), (caller) => {
    if (isProblem(caller)) return responder.refuse(exchange, caller);
    return receiveBody(new TicketUse(context, exchange, caller));
  });
}

/** What a request for a ticket asks for. */
interface TicketRequest {
  readonly name: string;
  readonly close: boolean;
  readonly lifetimeMs: number | null;
}

/** A request for a ticket. */
class TicketUse extends BodyUse {
  readonly #caller: Caller;

  constructor(context: Context, exchange: Exchange, caller: Caller) {
    super(context, exchange, "", { contentType: null });
    this.#caller = caller;
  }

  override get maxBytes(): number {
    return MAX_BODY_BYTES;
  }

  override get tooLong(): Problem {
    return invalid(`It has at most ${MAX_BODY_BYTES} bytes.`);
  }

  override refusal(): null {
    return null;
  }

  /** It names no stream before its body: its sender is looked at again when that has come. */
  override lateRefusal(): null {
    return null;
  }

  override use(body: Body): void {
    const { responder } = this.context;
    const answer = this.#answerTo(body);
    if (isProblem(answer)) return responder.refuse(this.exchange, answer);
    const headers = ["Content-Type", "application/json", "Cache-Control", "no-store"];
    responder.send(this.exchange, 200, headers, Buffer.from(JSON.stringify(answer)));
  }

  #answerTo(body: Body): object | Problem {
    const asked = readTicketRequest(body);
    if (isProblem(asked)) return asked;
    const { authority, settings } = this.context;
    const { name, close } = asked;
    // The request may have come slowly: what counts is what its sender may do now.
    const caller = authority?.renew(this.#caller) ?? null;
    if (caller === null) return CREDENTIAL_GONE;
    if (caller.rightTo("read", name) === null) return lackOf(caller, "read");
    if (close && caller.rightTo("close", name) === null) return lackOf(caller, "close");
    const issued = authority?.issueTicket(caller, asked);
    if (issued?.kind !== "ticket")
      return problem("no-ticket-key", { detail: "The auth file has no ticketKeys that may sign for this stream." });
    const path = `${settings.prefix}${name.split("/").map(encodeURIComponent).join("/")}`;
    return {
      stream: name,
      ticket: issued.ticket,
      url: `${baseOf(this.exchange)}${path}?ticket=${issued.ticket}`,
      expiresAt: formatTimestamp(issued.expiresAtMs),
    };
  }
}

/** Reads `{"stream": NAME, "close"?: boolean, "expiresIn"?: seconds}`. */
function readTicketRequest(body: Body): TicketRequest | Problem {
  const value = Buffer.isBuffer(body) ? jsonObjectOf(body) : null;
  if (value === null) return invalid('It is a JSON object like {"stream": "chat/42"}.');
  const unknown = Object.keys(value).find((member) => !MEMBERS.includes(member));
  if (unknown !== undefined) return invalid(`Its members are ${MEMBERS.join(", ")}.`);
  const { stream, close = false, expiresIn = null } = value;
  if (typeof stream !== "string") return invalid('"stream" is the name of a stream.');
  const checked = checkedName(stream);
  if ("fault" in checked) return invalid(checked.fault);
  if (typeof close !== "boolean") return invalid('"close" is true or false.');
  if (expiresIn !== null && !isLifetime(expiresIn))
    return invalid(`"expiresIn" is a whole number of seconds from 1 to ${MAX_LIFETIME_SECONDS}.`);
  return { name: stream, close, lifetimeMs: expiresIn === null ? null : expiresIn * 1000 };
}

function jsonObjectOf(body: Buffer): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(body.toString());
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? { ...value } : null;
  } catch {
    return null; // the only thing that JSON.parse throws for
  }
}

function isLifetime(seconds: unknown): seconds is number {
  return typeof seconds === "number" && Number.isInteger(seconds) && seconds >= 1 && seconds <= MAX_LIFETIME_SECONDS;
}

function invalid(detail: string): Problem {
  return problem("invalid-ticket-request", { detail });
}
