import type { AppendHead, Body } from "../../stream/rules/command.js";
import { refusalOfAppend } from "../../stream/head-refusal.js";
import type { AppendOutcome, Refused } from "../../stream/rules/outcome.js";
import type { MaybePromise } from "../../stream/loaded/stream.js";
import { BodyUse, receiveBody } from "../context/body.js";
import type { Context } from "../context/context.js";
import type { Exchange } from "../exchange/exchange.js";
import { guard } from "../context/guard.js";
import { isProblem } from "../encoding/problems.js";
import { readAppendHead } from "../request/commands.js";
import { EMPTY_BODY } from "../answer/respond.js";

/** `POST`: appends, closes, or both (docs/api.md, Append). */
export function append(context: Context, exchange: Exchange, name: string): MaybePromise<void> {
  const head = readAppendHead(exchange.headers);
  if (isProblem(head)) return context.responder.refuse(exchange, head);
  return receiveBody(new Append(context, exchange, name, head));
}

/** An append request. */
class Append extends BodyUse<AppendHead> {
  override refusal(hasData: boolean): MaybePromise<Refused | null> {
    return refusalOfAppend(this.context.registry, this.name, this.head, hasData);
  }

  override use(body: Body): MaybePromise<void> {
    const { contentType, closes, producer, seq, ifMatch } = this.head;
    return this.context.registry.append(this.name, { contentType, body, closes, producer, seq, ifMatch }, (outcome) => {
      guard(this.context, this.exchange, () => answer(this.context, this.exchange, outcome));
    });
  }
}

function answer({ responder }: Context, exchange: Exchange, outcome: AppendOutcome): void {
  if (outcome.kind === "refused") return responder.refuse(exchange, outcome);
  const { producer } = outcome;
  const headers = ["Stream-Next-Offset", outcome.nextOffset];
  if (outcome.closed) headers.push("Stream-Closed", "true");
  if (producer !== null) headers.push("Producer-Epoch", String(producer.epoch), "Producer-Seq", String(producer.seq));
  // Only for a producer does the status say whether its data is new.
  const isNewToProducer = producer !== null && outcome.hasData && !outcome.duplicate;
  responder.send(exchange, isNewToProducer ? 200 : 204, headers, isNewToProducer ? EMPTY_BODY : null);
}
