import type { MaybePromise } from "../../stream/stream.js";
import type { CreateOutcome } from "../../stream/outcome.js";
import { receiveBody } from "../body.js";
import type { Context } from "../context.js";
import type { Exchange } from "../exchange.js";
import { locationOf } from "../location.js";
import { isProblem } from "../problems.js";
import { readCreateHead } from "../request.js";
import { EMPTY_BODY } from "../respond.js";

/** `PUT`: creates a stream, or finds it there as asked for (specification 4.1). */
export function create(context: Context, exchange: Exchange, name: string): MaybePromise<void> {
  const head = readCreateHead(exchange.headers, context.settings.prefix);
  if (isProblem(head)) return context.responder.refuse(exchange, head);
  return receiveBody(context, exchange, async (body) => {
    const { contentType, ttlSeconds, expiresAtMs, closed, fork } = head;
    answer(context, exchange, await context.registry.create(name, { contentType, ttlSeconds, expiresAtMs, closed, fork, body }));
  });
}

function answer({ responder }: Context, exchange: Exchange, outcome: CreateOutcome): void {
  if (outcome.kind === "refused") return responder.refuse(exchange, outcome);
  const headers = ["Content-Type", outcome.contentType, "Stream-Next-Offset", outcome.nextOffset];
  if (outcome.closed) headers.push("Stream-Closed", "true");
  if (outcome.created) headers.push("Location", locationOf(exchange));
  responder.send(exchange, outcome.created ? 201 : 200, headers, EMPTY_BODY);
}
