import type { Context } from "../context/context.js";
import type { Exchange } from "../exchange/exchange.js";
import { refusalOfCondition } from "../request/commands.js";

/** `DELETE`: removes a stream with all its data (docs/api.md, Delete a stream). */
export async function remove({ registry, responder }: Context, exchange: Exchange, name: string): Promise<void> {
  const refusal = refusalOfCondition(exchange.headers);
  if (refusal !== null) return responder.refuse(exchange, refusal);
  const outcome = await registry.delete(name);
  if (outcome.kind === "refused") responder.refuse(exchange, outcome);
  else responder.send(exchange, 204, [], null);
}
