import type { Body, CreateHead } from "../../stream/rules/command.js";
import { refusalOfCreate } from "../../stream/head-refusal.js";
import type { CreateOutcome, Refused } from "../../stream/rules/outcome.js";
import type { MaybePromise } from "../../stream/loaded/stream.js";
import { BodyUse, receiveBody } from "../context/body.js";
import type { Context } from "../context/context.js";
import type { Exchange } from "../exchange/exchange.js";
import { locationOf } from "../answer/location.js";
import { isProblem } from "../encoding/problems.js";
import { readCreateHead } from "../request/commands.js";
import { EMPTY_BODY } from "../answer/respond.js";

/** `PUT`: creates a stream, or finds it there as asked for (docs/api.md, Create a stream). */
export function create(context: Context, exchange: Exchange, name: string): MaybePromise<void> {
  const head = readCreateHead(exchange.headers, context.settings.prefix);
  if (isProblem(head)) return context.responder.refuse(exchange, head);
  return receiveBody(new Create(context, exchange, name, head));
}

/** A create request. The body of a fork that may inherit JSON is framed once it is complete. */
class Create extends BodyUse<CreateHead> {
  override refusal(): Promise<Refused | null> {
    return refusalOfCreate(this.context.registry, this.name, this.head);
  }

  override async use(body: Body): Promise<void> {
    const { contentType, ttlSeconds, expiresAtMs, closed, fork } = this.head;
    const command = { contentType, ttlSeconds, expiresAtMs, closed, fork, body };
    answer(this.context, this.exchange, await this.context.registry.create(this.name, command));
  }
}

function answer({ responder }: Context, exchange: Exchange, outcome: CreateOutcome): void {
  if (outcome.kind === "refused") return responder.refuse(exchange, outcome);
  const headers = ["Content-Type", outcome.contentType, "Stream-Next-Offset", outcome.nextOffset];
  if (outcome.closed) headers.push("Stream-Closed", "true");
  if (outcome.created) headers.push("Location", locationOf(exchange));
  responder.send(exchange, outcome.created ? 201 : 200, headers, EMPTY_BODY);
}
