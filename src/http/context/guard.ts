import {
  DamagedStreamError,
  DeletedStreamError,
  NoMajorityError,
  StorageBusyError,
  TrimmedStreamError,
  type MaybePromise,
} from "../../stream/loaded/stream.js";
import { offsetIn } from "../../stream/rules/offset-tokens.js";
import type { Context } from "./context.js";
import type { Exchange } from "../exchange/exchange.js";
import { logFault } from "../exchange/fault.js";
import { problem, type Problem } from "../encoding/problems.js";

/** Runs a request's handler. A fault of the server ends that request and nothing else. */
export function guard(context: Context, exchange: Exchange, work: () => MaybePromise<void>): void {
  try {
    const pending = work();
    if (pending instanceof Promise) pending.catch((fault: unknown) => fail(context, exchange, fault));
  } catch (fault) {
    fail(context, exchange, fault);
  }
}

/** The refusal for an error of a read that is not the handler's fault. */
function expectedProblem(fault: unknown): Problem | null {
  // The engine has logged it, with the place.
  if (fault instanceof DamagedStreamError) return damaged(fault);
  if (fault instanceof NoMajorityError)
    return problem("overloaded", {
      detail: "The NATS servers can't answer for this stream now: /health says whether a majority of them does.",
    });
  if (fault instanceof StorageBusyError)
    return problem("overloaded", {
      detail:
        "Too many files are open, too many reads wait, a NATS server is behind, or " +
        "the stream's beginning is dropped as fast as it is read.",
    });
  if (fault instanceof TrimmedStreamError)
    return problem("offset-gone", { earliestOffset: offsetIn(fault.stream, fault.stream.earliest) });
  return fault instanceof DeletedStreamError ? problem("stream-not-found") : null;
}

function damaged({ readable }: DamagedStreamError): Problem {
  if (readable === null) return problem("stream-damaged", { detail: "None of it can be read." });
  const nextOffset = offsetIn(readable.stream, readable.position);
  return problem("stream-damaged", { nextOffset, detail: `It can be read again from the offset ${nextOffset} on.` });
}

/** Whether an error needs no line in the log: it was logged where it was found, or is no fault. */
export function isExpected(fault: unknown): boolean {
  return expectedProblem(fault) !== null;
}

/** Logs what a handler threw and answers 500; an answer that has begun is cut off. */
export function fail(context: Context, exchange: Exchange, fault: unknown): void {
  const expected = expectedProblem(fault);
  // What it waited for may have been given up because it left.
  if (expected !== null && exchange.isGone) return context.inFlight.end(exchange);
  if (expected !== null && !exchange.isAnswered) return context.responder.refuse(exchange, expected);
  if (expected === null) logFault(context.log, exchange, fault);
  if (!exchange.isAnswered) return context.responder.refuse(exchange, problem("internal-error"));
  if (expected === null) context.inFlight.fails(exchange);
  context.inFlight.end(exchange);
  exchange.req.socket.destroy();
}
