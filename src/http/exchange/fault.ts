import type { Log } from "../../ops/log.js";
import type { Exchange } from "./exchange.js";

/** Logs what a request's handler threw, as a fault of the server. */
export function logFault(log: Log, { req, target }: Exchange, fault: unknown): void {
  const what = fault instanceof Error ? (fault.stack ?? fault.message) : String(fault);
  log.error("a request failed", { method: req.method ?? "", path: target.path, fault: what });
}
