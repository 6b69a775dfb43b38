import type { MaybePromise } from "../storage/storage.js";
import { chain } from "./loaded/chain.js";
import type { AppendHead, CreateHead } from "./rules/command.js";
import { refuseConfig } from "./rules/config-difference.js";
import { refuseFork, refuseSource } from "./rules/fork.js";
import { refuse, type Refused } from "./rules/outcome.js";
import type { Registry } from "./registry.js";
import { Stream } from "./loaded/stream.js";

/**
 * Why an append is refused for what its head says: what it would be told now if its body were there. `null` when that
 * takes the body; then all is decided when it is there, for the stream may have changed. Without `hasData` nobody knows
 * yet whether the body will be empty. Throws as `Registry.find`.
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

/** The same for a create: no body is needed to tell what has the name, and whether the source can be forked. */
export async function refusalOfCreate(registry: Registry, name: string, head: CreateHead): Promise<Refused | null> {
  const found = await registry.find(name);
  if (found instanceof Stream) {
    const { config, reservedClosed } = found;
    return found.whenDurable(() => refuseConfig(config, reservedClosed, head));
  }
  if (found.code === "stream-gone") return refuse("name-held-by-forks");
  if (found.code !== "stream-not-found") return found;
  if (head.fork === null) return null;
  const source = await registry.find(head.fork.source);
  return source instanceof Stream ? refuseFork(source.stored, head.contentType) : refuseSource(source);
}
