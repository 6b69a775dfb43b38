// Writes all metrics of a server as one page (docs/metrics.md).

import type { Authority } from "../auth/authority.js";
import type { InFlight } from "../http/answer/in-flight.js";
import type { LiveReaders } from "../http/bounds/live-readers.js";
import { PROBLEMS } from "../http/encoding/problems.js";
import type { ConnectionFigures } from "../metrics/connection-figures.js";
import { Exposition } from "../metrics/exposition.js";
import { processFigures, type EventLoopMeter } from "../metrics/process-figures.js";
import type { StorageObservations } from "../metrics/storage-observations.js";
import type { LineQueue } from "../ops/lines/line-queue.js";
import { packageVersion } from "../ops/version.js";
import type { Registry } from "../stream/registry.js";

/** What is measured. */
export interface MeasuredParts {
  readonly registry: Pick<Registry, "figures" | "storageFigures" | "health" | "producerCount">;
  readonly inFlight: Pick<InFlight, "figures" | "size">;
  readonly liveReaders: Pick<LiveReaders, "sizeOf" | "limit">;
  readonly connections: ConnectionFigures;
  readonly observations: StorageObservations;
  /** `null` without an access log. */
  readonly accessLines: Pick<LineQueue, "dropped"> | null;
  readonly eventLoop: EventLoopMeter;
  /** `null` without an auth file. */
  readonly authority: Pick<Authority, "isCurrent"> | null;
}

/** Every code of a refusal, so that each has a series from the start on. */
const CODES = Object.keys(PROBLEMS);

/** The page, taken anew at each call. */
export function metricsReport(parts: MeasuredParts): () => string {
  // Read once: later there may be no descriptor left.
  const version = packageVersion();
  return () => {
    const page = new Exposition();
    page.gauge("streamdir_build_info", "Version of the server and of Node; always 1.", [
      { labels: { version, node: process.version }, value: 1 },
    ]);
    addRequests(page, parts);
    addConnections(page, parts);
    addReloads(page, parts);
    addJournal(page, parts);
    addStorage(page, parts);
    addCluster(page, parts);
    addStreams(page, parts);
    addEventLoop(page, parts);
    addProcess(page);
    return page.text;
  };
}

function addRequests(page: Exposition, { inFlight, liveReaders, accessLines }: MeasuredParts): void {
  const { figures } = inFlight;
  page.counter(
    "streamdir_requests_total",
    "Requests that are over, by operation and status; code left: the client left before its answer.",
    figures.requests(),
  );
  page.histogram(
    "streamdir_request_duration_seconds",
    "Time from a request's head to its answer; of a live read only to the beginning of its wait.",
    figures.durations(),
  );
  page.gauge("streamdir_requests_in_flight", "Requests without an answer, live readers among them.", inFlight.size);
  page.counter("streamdir_refusals_total", "Refused requests, by the code of the problem.", figures.refusals(CODES));
  page.counter(
    "streamdir_rate_limited_requests_total",
    "Requests that were refused because their client has sent or read too much.",
    figures.refusalsWith("rate-limited"),
  );
  page.counter("streamdir_served_bytes_total", "Bytes of bodies and events that were sent.", figures.sentBytes);
  page.counter(
    "streamdir_access_log_dropped_lines_total",
    "Lines of the access log that were dropped, as nobody took them fast enough or they could not be written.",
    accessLines?.dropped ?? 0,
  );
  page.gauge(
    "streamdir_live_readers",
    "Readers that wait for more, by mode.",
    (["sse", "long-poll"] as const).map((mode) => ({ labels: { mode }, value: liveReaders.sizeOf(mode) })),
  );
  page.gauge("streamdir_live_readers_limit", "How many live readers there may be.", liveReaders.limit);
}

/** Only where the server itself listens. */
function addConnections(page: Exposition, { connections }: MeasuredParts): void {
  const { open, limit } = connections;
  if (limit === null) return;
  page.gauge("streamdir_connections", "Open connections to the addresses with streams.", open);
  page.gauge("streamdir_connections_limit", "How many connections are served at a time.", limit);
  page.counter(
    "streamdir_connections_refused_total",
    "Connections that were one too many: for the server (all), or of one address (client).",
    connections.refusals(),
  );
  page.counter(
    "streamdir_tls_failures_total",
    "Connections that became none of TLS: plain HTTP, left or too slow, no agreement, the client's certificate.",
    connections.tlsFailures(),
  );
  const { certificateEndsAtMs } = connections;
  page.gauge(
    "streamdir_tls_certificate_expiry_timestamp_seconds",
    "When the certificate in use ends; no value without --tls-cert.",
    certificateEndsAtMs === null ? [] : certificateEndsAtMs / 1000,
  );
}

function addReloads(page: Exposition, { authority, connections }: MeasuredParts): void {
  const reloads = [
    { config: "auth", isCurrent: authority?.isCurrent ?? null },
    { config: "tls", isCurrent: connections.isTlsCurrent },
  ].filter(({ isCurrent }) => isCurrent !== null);
  page.gauge(
    "streamdir_config_last_reload_successful",
    "1 where the files of a configuration were taken as they were read last, else 0.",
    reloads.map(({ config, isCurrent }) => ({ labels: { config }, value: isCurrent === true ? 1 : 0 })),
  );
}

function addJournal(page: Exposition, { registry, observations }: MeasuredParts): void {
  const { appendedBytes, queuedBytes, unansweredSeconds, journalFill, sealedFiles, recoveryMs, recoveredRecords } =
    registry.storageFigures();
  page.counter("streamdir_appended_bytes_total", "Bytes of appends and creations that became durable.", appendedBytes);
  page.histogram(
    "streamdir_journal_sync_duration_seconds",
    "Time of a write to the journal with its sync.",
    observations.syncs,
  );
  page.gauge(
    "streamdir_oldest_sync_age_seconds",
    "For how long the disk has not answered a write that appends wait for, in whole seconds.",
    unansweredSeconds,
  );
  page.histogram(
    "streamdir_journal_batch_entries",
    "Changes, nearly all of them appends, that became durable with one sync.",
    observations.batches,
  );
  page.counter("streamdir_journal_written_bytes_total", "Bytes written to the journal.", observations.journalBytes);
  page.counter(
    "streamdir_journal_failed_writes_total",
    "Writes to the journal that failed, as on a full disk.",
    observations.failedBatches,
  );
  page.gauge("streamdir_journal_queued_bytes", "Bytes of appends that wait for the disk.", queuedBytes);
  page.gauge(
    "streamdir_journal_fill_ratio",
    "How much of its room the journal uses; at 1 appends wait for a checkpoint.",
    journalFill,
  );
  page.gauge("streamdir_journal_sealed_files", "Full journal files that wait for their checkpoint.", sealedFiles);
  page.histogram(
    "streamdir_checkpoint_duration_seconds",
    "Time to bring one journal file to the streams' own files.",
    observations.checkpoints,
  );
  page.gauge("streamdir_recovery_duration_seconds", "Time that the start took for recovery.", recoveryMs / 1000);
  page.gauge("streamdir_recovery_records", "Records that the start found in the journal.", recoveredRecords);
}

function addStorage(page: Exposition, { registry }: MeasuredParts): void {
  const { cacheBytes, cacheLimitBytes, unwrittenBytes, trims, trimmedBytes } = registry.storageFigures();
  const { writable, damagedStreams } = registry.health();
  page.gauge("streamdir_tail_cache_bytes", "Memory that the newest bytes of all streams take.", cacheBytes);
  page.gauge("streamdir_tail_cache_limit_bytes", "The bound of that memory.", cacheLimitBytes);
  page.gauge("streamdir_tail_cache_unwritten_bytes", "Bytes not noted as in a segment yet.", unwrittenBytes);
  page.counter("streamdir_retention_trims_total", "How often retention shortened a stream.", trims);
  page.counter("streamdir_retention_trimmed_bytes_total", "Bytes that retention dropped.", trimmedBytes);
  page.gauge("streamdir_storage_writable", "1 where the storage takes writes, else 0.", writable ? 1 : 0);
  page.gauge("streamdir_damaged_streams", "Damaged streams found since the start and not deleted.", damagedStreams);
}

/** Only where streams are in a cluster. */
function addCluster(page: Exposition, { registry }: MeasuredParts): void {
  const { cluster } = registry.storageFigures();
  if (cluster === undefined) return;
  page.counter(
    "streamdir_cluster_publishes_total",
    "Messages published to the cluster, by how they ended.",
    Object.entries(cluster.outcomes).map(([outcome, value]) => ({ labels: { outcome }, value })),
  );
  page.counter(
    "streamdir_cluster_decided_again_total",
    "Changes that were decided again, as another front end was first.",
    cluster.decidedAgain,
  );
}

function addStreams(page: Exposition, { registry }: MeasuredParts): void {
  const { loaded, evicted, expired, sweeps, lastMs, streams } = registry.figures();
  page.gauge("streamdir_streams_loaded", "Streams in memory.", loaded);
  page.gauge("streamdir_producers_loaded", "Producers that the streams in memory remember.", registry.producerCount);
  page.counter("streamdir_streams_evicted_total", "Idle streams that left memory.", evicted);
  page.counter("streamdir_streams_expired_total", "Streams whose time was over.", expired);
  page.counter("streamdir_sweeps_total", "Searches of all streams for what has expired or is too much.", sweeps);
  page.gauge("streamdir_sweep_duration_seconds", "How long the last sweep took.", lastMs / 1000);
  page.gauge(
    "streamdir_streams_on_disk",
    "Streams as the last sweep counted them, and changes since; absent before the first is over.",
    streams === null ? [] : [{ labels: {}, value: streams }],
  );
}

function addEventLoop(page: Exposition, { eventLoop }: MeasuredParts): void {
  const { mean, p99, max } = eventLoop.take();
  page.gauge("streamdir_event_loop_lag_mean_seconds", "Mean lag of the event loop since the last scrape.", mean);
  page.gauge("streamdir_event_loop_lag_p99_seconds", "The lag that 99 % of turns did not exceed.", p99);
  page.gauge("streamdir_event_loop_lag_max_seconds", "The longest lag since the last scrape.", max);
}

function addProcess(page: Exposition): void {
  const figures = processFigures();
  page.counter("streamdir_event_loop_busy_seconds_total", "Time that the event loop was at work.", figures.busySeconds);
  page.counter("process_cpu_seconds_total", "CPU time of the process, user and system.", figures.cpuSeconds);
  page.gauge("process_resident_memory_bytes", "Resident memory of the process.", figures.residentBytes);
  page.gauge("process_start_time_seconds", "When the process began, since 1970.", figures.startSeconds);
  page.gauge("nodejs_heap_used_bytes", "Memory of JavaScript objects.", figures.heapUsedBytes);
  page.gauge("nodejs_heap_limit_bytes", "What that may grow to.", figures.heapLimitBytes);
  page.gauge("nodejs_external_memory_bytes", "Memory of buffers and others beside the heap.", figures.externalBytes);
}
