// Tells the page what it has to know of the server, and of what its user may do.

import { packageVersion } from "../../ops/version.js";
import { checkedName } from "../../protocol/names/stream-name.js";
import { chain } from "../../stream/loaded/chain.js";
import type { MaybePromise } from "../../stream/loaded/stream.js";
import type { Settings } from "../../options.js";
import type { Context } from "../context/context.js";
import { isProblem, problem, type Problem } from "../encoding/problems.js";
import type { Exchange } from "../exchange/exchange.js";
import { readParameters } from "../request/list-query.js";

/** What a server that takes no changes refuses to everybody. */
const CHANGES: readonly string[] = ["append", "create", "close", "delete"];
const VERSION = packageVersion();

/** `GET {prefix}__ds/ui/facts?stream=NAME`: the server, and what the caller may do with that stream, there or not. */
export function answerFacts({ access, responder, settings }: Context, exchange: Exchange): MaybePromise<void> {
  const asked = nameIn(exchange.target.query);
  if (isProblem(asked)) return responder.refuse(exchange, asked);
  return chain(access.rightsOf(exchange, asked.name), (rights) => {
    if (isProblem(rights)) return responder.refuse(exchange, rights);
    const { readOnly, prefix, maxAppendBytes } = settings;
    const facts = {
      version: VERSION,
      prefix: exchange.mount + prefix,
      metrics: exchange.isOwn ? wayToMetrics(settings) : null,
      maxAppendBytes,
      readOnly,
      guarded: access.isGuarded,
      caller: rights.caller,
      allow: rights.allow.filter((operation) => !readOnly || !CHANGES.includes(operation)),
    };
    const headers = ["Content-Type", "application/json", "Cache-Control", "no-store"];
    responder.send(exchange, 200, headers, Buffer.from(JSON.stringify(facts)));
  });
}

/** The stream that a query names; `null` where it names none. */
function nameIn(query: string): { readonly name: string | null } | Problem {
  const given = readParameters(query, ["stream"]);
  if (isProblem(given)) return given;
  const stream = given.get("stream");
  if (stream === undefined) return { name: null };
  const checked = checkedName(stream);
  return "fault" in checked ? problem("invalid-query", { detail: checked.fault }) : checked;
}

/** From the page to the metrics, also behind a proxy that adds a path; `null` where they are not beside it. */
function wayToMetrics({ prefix, adminListen }: Settings): string | null {
  if (adminListen !== "" || prefix === "/") return null;
  return `${"../".repeat(prefix.split("/").length)}metrics`;
}
