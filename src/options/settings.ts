// What editors show of the options, made from their table: UPDATE_DOCS=1 npx tsx test/docs/settings.test.ts

/** All settings of a server, complete. Sizes in bytes, durations in milliseconds. */
export type Settings = {
  /**
   * Address to listen on.
   *
   * Default: `"127.0.0.1"`.
   */
  readonly host: string;
  /**
   * Port to listen on; 0 picks a free one.
   *
   * A number from 0 to 65535. Default: `4437`.
   */
  readonly port: number;
  /**
   * HOST:PORT, unix:PATH, fd:N, by commas; instead of host and port.
   *
   * Default: `""`.
   */
  readonly listen: string;
  /**
   * Where /metrics and the probes are for everybody who reaches it.
   *
   * Default: `""`.
   */
  readonly adminListen: string;
  /**
   * Permissions of the sockets that unix:PATH makes, in octal.
   *
   * Default: `"600"`.
   */
  readonly unixMode: string;
  /**
   * URL path in front of every stream's name; begins and ends with /.
   *
   * Default: `"/v1/stream/"`.
   */
  readonly prefix: string;
  /**
   * Browsers' origins; auto: * with auth, else loopback pages only.
   *
   * Default: `"auto"`.
   */
  readonly corsOrigin: string;
  /**
   * JSON file that says who may do what (docs/auth.md).
   *
   * Default: `""`.
   */
  readonly auth: string;
  /**
   * Without auth, serve also those who come from beyond loopback.
   *
   * Default: `false`.
   */
  readonly insecure: boolean;
  /**
   * Host names beside loopback's that requests may be for.
   *
   * Default: `""`.
   */
  readonly allowHost: string;
  /**
   * Addresses or networks of proxies whose X-Forwarded headers count.
   *
   * Default: `""`.
   */
  readonly trustProxy: string;
  /**
   * Certificate chain in PEM, for HTTPS with HTTP/2 and HTTP/1.1.
   *
   * Default: `""`.
   */
  readonly tlsCert: string;
  /**
   * Private key of the certificate, in PEM.
   *
   * Default: `""`.
   */
  readonly tlsKey: string;
  /**
   * CA in PEM of client certificates; their common name is the sub.
   *
   * Default: `""`.
   */
  readonly clientCa: string;
  /**
   * Refuse PUT, POST and DELETE with 405.
   *
   * Default: `false`.
   */
  readonly readOnly: boolean;
  /**
   * The page at __ds/ui/: for all, for nobody, or on this machine.
   *
   * Default: `"loopback"`.
   */
  readonly ui: boolean | "loopback";
  /**
   * Gzip for reads of text and JSON that ask for it.
   *
   * Default: `false`.
   */
  readonly compress: boolean;
  /**
   * Sliding: reads and appends restart a TTL; fixed: nothing does.
   *
   * Default: `"sliding"`.
   */
  readonly ttl: "sliding" | "fixed";
  /**
   * How long a long-poll waits for data.
   *
   * Milliseconds from 1 to 3600000. Default: `30000` (30s).
   */
  readonly longPollTimeoutMs: number;
  /**
   * About how long one SSE connection lasts.
   *
   * Milliseconds from 1 to 86400000. Default: `60000` (1m).
   */
  readonly sseLifetimeMs: number;
  /**
   * An SSE reader that was sent nothing for so long gets a comment.
   *
   * Milliseconds from 10 to 3600000. Default: `15000` (15s).
   */
  readonly sseHeartbeatMs: number;
  /**
   * How long caches may show a read; at 0 they ask each time.
   *
   * Milliseconds from 0 to 31536000000. Default: `60000` (1m).
   */
  readonly readMaxAgeMs: number;
  /**
   * How long a stop serves on, while /readyz tells balancers.
   *
   * Milliseconds from 0 to 3600000. Default: `0` (0ms).
   */
  readonly shutdownDelayMs: number;
  /**
   * How long a stop waits for requests in flight.
   *
   * Milliseconds from 0 to 3600000. Default: `10000` (10s).
   */
  readonly shutdownTimeoutMs: number;
  /**
   * Largest request body; above it 413.
   *
   * Bytes from 1 to 1073741824. Default: `16777216` (16MiB).
   */
  readonly maxAppendBytes: number;
  /**
   * Most bytes in one read; a longer append or message is sent whole.
   *
   * Bytes from 1 to 67108864. Default: `1048576` (1MiB).
   */
  readonly chunkBytes: number;
  /**
   * Streams kept in memory; idle ones beyond it are forgotten.
   *
   * A number from 1 to 100000000. Default: `100000`.
   */
  readonly maxLoadedStreams: number;
  /**
   * Producers kept in memory; idle streams beyond it are forgotten.
   *
   * A number from 4096 to 100000000. Default: `1000000`.
   */
  readonly maxLoadedProducers: number;
  /**
   * Memory for the newest bytes of all streams.
   *
   * Bytes from 65536 to 68719476736. Default: `67108864` (64MiB).
   */
  readonly tailCacheBytes: number;
  /**
   * REQUESTS[,BYTES] a second by token or address; above it 429.
   *
   * Default: `"off"`.
   */
  readonly rateLimit: string;
  /**
   * Connections at a time; off: as many as the open files allow.
   *
   * A number from 1 to 100000000, or `Infinity`. Default: `Infinity`.
   */
  readonly maxConnections: number;
  /**
   * Connections at a time from one address.
   *
   * A number from 1 to 100000000, or `Infinity`. Default: `Infinity`.
   */
  readonly maxConnectionsPerClient: number;
  /**
   * SSE readers and waiting long-polls at a time; above it 503.
   *
   * A number from 1 to 100000000, or `Infinity`. Default: `Infinity`.
   */
  readonly maxLiveReaders: number;
  /**
   * The same by token or client address.
   *
   * A number from 1 to 100000000, or `Infinity`. Default: `Infinity`.
   */
  readonly maxLiveReadersPerClient: number;
  /**
   * File: in DIR; nats://HOST,HOST,HOST/BUCKET: in a NATS cluster.
   *
   * Default: `"file"`.
   */
  readonly storage: string;
  /**
   * A creds file to sign in to the NATS cluster with.
   *
   * Default: `""`.
   */
  readonly natsCreds: string;
  /**
   * How long a change is tried while the NATS cluster does not answer.
   *
   * Milliseconds from 1000 to 300000. Default: `30000` (30s).
   */
  readonly storageTimeoutMs: number;
  /**
   * Always: a 2xx means on disk; no: the system decides when.
   *
   * Default: `"always"`.
   */
  readonly fsync: "always" | "no";
  /**
   * A stream's segment file ends at about this size.
   *
   * Bytes from 4096 to 4294967296. Default: `67108864` (64MiB).
   */
  readonly segmentBytes: number;
  /**
   * The most that one journal file takes; there may be four.
   *
   * Bytes from 65536 to 1073741824. Default: `67108864` (64MiB).
   */
  readonly journalBytes: number;
  /**
   * An append of this size goes to its segment, past the journal.
   *
   * Bytes from 4096 to 1048576. Default: `262144` (256KiB).
   */
  readonly journalBypassBytes: number;
  /**
   * Keep about this much of each stream, the newest; off keeps all.
   *
   * Bytes from 1024 to 9007199254740991, or `Infinity`. Default: `Infinity`.
   */
  readonly retentionBytes: number;
  /**
   * Keep bytes for about this long; off keeps them for ever.
   *
   * Milliseconds from 1000 to 3153600000000, or `Infinity`. Default: `Infinity`.
   */
  readonly retentionAgeMs: number;
  /**
   * Least severe message to log: debug, info, warn, error or silent.
   *
   * Default: `"info"`.
   */
  readonly logLevel: "debug" | "info" | "warn" | "error" | "silent";
  /**
   * Auto is text on a terminal, json elsewhere.
   *
   * Default: `"auto"`.
   */
  readonly logFormat: "auto" | "text" | "json";
  /**
   * A line of JSON on standard output for each request.
   *
   * Default: `false`.
   */
  readonly accessLog: boolean;
};
