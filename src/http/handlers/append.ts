import type { MaybePromise } from "../../stream/stream.js";
import type { AppendOutcome } from "../../stream/outcome.js";
import { receiveBody } from "../body.js";
import type { Context } from "../context.js";
import type { Exchange } from "../exchange.js";
import { guard } from "../guard.js";
import { isProblem } from "../problems.js";
import { readAppendHead } from "../request.js";
import { EMPTY_BODY } from "../respond.js";

/** `POST`: appends, closes, or both (specification 4.2 and 4.3). */
export function append(context: Context, exchange: Exchange, name: string): MaybePromise<void> {
  const head = readAppendHead(exchange.headers);
  if (isProblem(head)) return context.responder.refuse(exchange, head);
  return receiveBody(context, exchange, (body) => {
    const { contentType, closes, producer, seq } = head;
    return context.registry.append(name, { contentType, body, closes, producer, seq }, (outcome) => {
      guard(context, exchange, () => answer(context, exchange, outcome));
    });
  });
}

function answer({ responder }: Context, exchange: Exchange, outcome: AppendOutcome): void {
  if (outcome.kind === "refused") return responder.refuse(exchange, outcome);
  const { producer } = outcome;
  const headers = ["Stream-Next-Offset", outcome.nextOffset];
  if (outcome.closed) headers.push("Stream-Closed", "true");
  if (producer !== null) headers.push("Producer-Epoch", String(producer.epoch), "Producer-Seq", String(producer.seq));
  // Only a producer is told apart whether its data is new.
  const isNewToProducer = producer !== null && outcome.hasData && !outcome.duplicate;
  responder.send(exchange, isNewToProducer ? 200 : 204, headers, isNewToProducer ? EMPTY_BODY : null);
}
