/** streamdir as a library: a server of durable append-only byte streams, or a handler for a server of your own. */

export { createHandler, createServer, StartError } from "./server.js";
export type { RunningServer, ServerOptions, StreamHandler } from "./server.js";
export type { Settings } from "./options.js";
export type { Clock, Timer } from "./ops/clock.js";
export type { LineOutput } from "./ops/lines/line-queue.js";
export type { Log, LogFields } from "./ops/log.js";
