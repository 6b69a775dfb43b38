import type { MaybePromise } from "../storage/storage.js";
import { chain } from "./loaded/chain.js";
import type { AppendHead, CreateHead } from "./rules/command.js";
import { refuseConfig } from "./rules/config-difference.js";
import { refuseFork, refuseSource } from "./rules/fork.js";
import { MOVED, refuse, type Refused } from "./rules/outcome.js";
import type { Registry } from "./registry.js";
import { Stream } from "./loaded/stream.js";

/**
 * Why an append is refused for its head alone, before its body has arrived; `null` when the answer depends on the body.
 * In that case everything is decided again with the body, because the stream may have changed. Without `hasData` the
 * body may turn out to be empty. Throws what `Registry.find` throws.
 */
export function refusalOfAppend(
  registry: Registry,
  name: string,
  head: AppendHead,
  hasData: boolean,
): MaybePromise<Refused | null> {
  return chain(registry.find(name), (found) => {
    if (!(found instanceof Stream)) return found;
    return hasData ? found.refusalOf(head) : null;
  });
}

/** Why a create is refused for its head alone: because of what has the name, or because its source can't be forked. */
export async function refusalOfCreate(registry: Registry, name: string, head: CreateHead): Promise<Refused | null> {
  const found = await registry.find(name);
  if (found instanceof Stream) {
    const { config, reservedClosed } = found;
    const refusal = await found.whenDurable(() => refuseConfig(config, reservedClosed, head));
    return refusal === MOVED ? null : refusal;
  }
  if (found.code === "stream-gone") return refuse("name-held-by-forks");
  if (found.code !== "stream-not-found") return found;
  if (head.fork === null) return null;
  const source = await registry.find(head.fork.source);
  return source instanceof Stream ? refuseFork(source.stored, head.contentType) : refuseSource(source);
}
