import { EXPOSITION_TYPE } from "../../metrics/exposition.js";
import type { Context } from "../context/context.js";
import type { Exchange } from "../exchange/exchange.js";

/** `GET /metrics`: figures for Prometheus (docs/metrics.md). Whoever comes here may see them. */
export function metrics({ metricsReport }: Context, responder: Context["responder"], exchange: Exchange): void {
  const headers = ["Content-Type", EXPOSITION_TYPE, "Cache-Control", "no-store"];
  responder.send(exchange, 200, headers, Buffer.from(metricsReport()));
}
