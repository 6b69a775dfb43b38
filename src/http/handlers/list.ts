// Lists streams.

import { chain } from "../../stream/loaded/chain.js";
import type { MaybePromise } from "../../stream/loaded/stream.js";
import type { Context } from "../context/context.js";
import { isProblem } from "../encoding/problems.js";
import type { Exchange } from "../exchange/exchange.js";
import { eventStreamHead } from "../reading/event-stream-head.js";
import type { ListFeed } from "../reading/list/list-feed.js";
import { listPage, type ReadersOf } from "../reading/list/list-page.js";
import { parseListQuery } from "../request/list-query.js";

/** `GET {prefix}__ds/streams`: a page of the list of streams, or what becomes of them (docs/api.md, List). */
export function list(context: Context, feed: ListFeed, readersOf: ReadersOf, exchange: Exchange): MaybePromise<void> {
  const { access, responder } = context;
  return chain(access.listerOf(exchange), (lister): MaybePromise<void> => {
    if (isProblem(lister)) return responder.refuse(exchange, lister);
    const query = parseListQuery(exchange.target.query);
    if (isProblem(query)) return responder.refuse(exchange, query);
    // A HEAD tells how the answer begins, and follows nothing.
    if (query.live && exchange.req.method === "HEAD")
      return responder.send(exchange, 200, eventStreamHead(exchange), null);
    if (query.live) return feed.open(exchange, lister, query);
    return chain(
      listPage(context, lister, query, readersOf, () => exchange.isGone),
      (page) => {
        if (isProblem(page)) return responder.refuse(exchange, page);
        const headers = ["Content-Type", "application/json", "Cache-Control", "no-store"];
        responder.send(exchange, 200, headers, Buffer.from(JSON.stringify(page)));
      },
    );
  });
}
