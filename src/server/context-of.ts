// Builds what the handlers of requests work with.

import type { Authority } from "../auth/authority.js";
import type { ClientCertificate } from "../auth/rights/credentials.js";
import { Access } from "../http/access/access.js";
import { RequestRates } from "../http/access/request-rates.js";
import { SitePolicy } from "../http/access/site-policy.js";
import { AccessLog } from "../http/answer/access-log.js";
import { Compression } from "../http/answer/compression.js";
import { InFlight } from "../http/answer/in-flight.js";
import { ReadBuffers } from "../http/answer/read-buffers.js";
import { RequestLog } from "../http/answer/request-log.js";
import { SlowRequests } from "../http/answer/slow-requests.js";
import { Responder } from "../http/answer/respond.js";
import { BodyMemory } from "../http/bounds/body-memory.js";
import { Clients } from "../http/bounds/clients.js";
import { LiveReaders } from "../http/bounds/live-readers.js";
import { UnreadAnswers } from "../http/bounds/unread.js";
import type { Context } from "../http/context/context.js";
import { CorsPolicy } from "../http/encoding/cors.js";
import type { Exchange } from "../http/exchange/exchange.js";
import { certificateOf } from "../http/http2/client-certificate.js";
import { isCertifiedFor } from "../http/http2/own-certificate.js";
import { ConnectionFigures } from "../metrics/connection-figures.js";
import { EventLoopMeter } from "../metrics/process-figures.js";
import type { StorageObservations } from "../metrics/storage-observations.js";
import type { Clock } from "../ops/clock.js";
import type { LineQueue } from "../ops/lines/line-queue.js";
import type { Log } from "../ops/log.js";
import type { Settings } from "../options.js";
import { ReadFreshness } from "../protocol/cache-control.js";
import type { StreamList } from "../stream/loaded/stream.js";
import type { Registry } from "../stream/registry.js";
import { metricsReport } from "./metrics-report.js";

/**
 * Most bytes of request bodies in memory at a time, and of answers that their clients have not taken: of small ones,
 * and of others.
 */
const MAX_SMALL_BYTES = 64 * 1024 * 1024;
const MAX_LARGE_BYTES = 256 * 1024 * 1024;

/** What a context is built from, beside the settings. */
export interface ContextParts {
  readonly registry: Registry;
  readonly streamList: StreamList;
  readonly observations: StorageObservations;
  /** `null` without an auth file. */
  readonly authority: Authority | null;
  readonly clock: Clock;
  readonly log: Log;
  /** Where the lines of the access log go; `null` without one. */
  readonly accessLines: LineQueue | null;
  /** A clock with fractions of a millisecond that never goes back. */
  readonly stopwatchMs: () => number;
  /** Whether somebody else's server listens. */
  readonly isEmbedded: boolean;
}

/** What the handlers of requests work with. */
export function contextOf(settings: Settings, parts: ContextParts): Context {
  const { registry, observations, authority, clock, log, accessLines, stopwatchMs } = parts;
  const { maxAppendBytes, chunkBytes, prefix } = settings;
  const limits = { maxSmallBytes: MAX_SMALL_BYTES, maxLargeBytes: MAX_LARGE_BYTES, clock };
  const inFlight = new InFlight({
    requestLog: RequestLog.of(log, prefix),
    accessLog: accessLines === null ? null : new AccessLog(accessLines, clock),
    slowRequests: new SlowRequests(log),
    nowMs: stopwatchMs,
  });
  const bodyMemory = new BodyMemory({ ...limits, maxBodyBytes: maxAppendBytes });
  const unread = new UnreadAnswers({ ...limits, chunkBytes });
  const cors = new CorsPolicy(allowedOriginsOf(settings), {
    hidesUrls: authority !== null,
    hasCertificates: authority !== null && settings.clientCa !== "",
  });
  const responder = new Responder({ cors, inFlight, unread, clock, log });
  const site = new SitePolicy({
    cors,
    allowHost: settings.allowHost,
    checksHosts: checksHosts(settings, parts.isEmbedded),
    isCertifiedFor: ({ req }, name) => isCertifiedFor(req.socket, name),
  });
  const liveReaders = new LiveReaders(settings, log);
  const rates = new RequestRates(settings.rateLimit, clock);
  const connections = new ConnectionFigures();
  const eventLoop = new EventLoopMeter();
  const measured = { registry, inFlight, liveReaders, connections, observations, accessLines, eventLoop, authority };
  return {
    settings,
    registry,
    streamList: parts.streamList,
    clock,
    log,
    random: Math.random,
    responder,
    inFlight,
    bodyMemory,
    unread,
    compression: settings.compress ? new Compression() : null,
    readBuffers: new ReadBuffers(chunkBytes, clock),
    readFreshness: new ReadFreshness(settings.readMaxAgeMs),
    clients: new Clients(settings.trustProxy, log),
    liveReaders,
    connections,
    metricsReport: metricsReport(measured),
    eventLoop,
    access: new Access({ authority, site, rates, clock, prefix, certificateOf: certificateReader(settings) }),
    authority,
  };
}

function certificateReader({ clientCa }: Settings): (exchange: Exchange) => ClientCertificate | null {
  return clientCa === "" ? () => null : ({ req }) => certificateOf(req.socket);
}

/** Without an auth file only the pages of this machine may call (docs/SECURITY.md). */
function allowedOriginsOf({ corsOrigin, auth }: Settings): string {
  if (corsOrigin !== "auto") return corsOrigin;
  return auth === "" ? "loopback" : "*";
}

/** Who lists hosts means it; else names are checked where nothing but the loopback device keeps others out. */
function checksHosts({ allowHost, auth, insecure }: Settings, isEmbedded: boolean): boolean {
  return allowHost !== "" || (auth === "" && !insecure && !isEmbedded);
}
