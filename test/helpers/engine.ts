import assert from "node:assert/strict";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { Log, LogFields } from "../../src/ops/log.js";
import type { TestContext } from "node:test";
import { FileStorage } from "../../src/storage/file/file-storage.js";
import type { FileStorageOptions } from "../../src/storage/file/file-storage-options.js";
import { FileStream, type SegmentRoll } from "../../src/storage/file/memory/file-stream.js";
import { claimIdOf } from "../../src/storage/file/format/layout.js";
import { decodeSidecar, encodeSidecar, type Sidecar } from "../../src/storage/file/format/sidecar.js";
import type {
  AppendRecord,
  ForkOrigin,
  Position,
  Rejection,
  Settlement,
  Storage,
  StoredStream,
  StreamConfig,
} from "../../src/storage/storage.js";
import { ManualClock } from "./manual-clock.js";
import { tempDir } from "./temp-dir.js";
import { WatchedFiles } from "./watched-files.js";

/** Sizes at which segments roll, journal files rotate and payloads go past the journal within a few appends. */
export const SMALL = { segmentBytes: 4096, journalBytes: 64 * 1024, journalBypassBytes: 4096, tailCacheBytes: 64 * 1024 };

/** One line of a log. */
export interface LogLine {
  readonly level: keyof Log;
  readonly message: string;
  readonly fields: LogFields;
}

/** A log that keeps its lines for the test. */
export function keptLog(): { readonly log: Log; readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const at =
    (level: keyof Log) =>
    (message: string, fields: LogFields = {}): void =>
      void lines.push({ level, message, fields });
  return { log: { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") }, lines };
}

/** A storage engine in a directory of its own. */
export interface Engine {
  readonly dir: string;
  readonly storage: FileStorage;
  readonly files: WatchedFiles;
  readonly clock: ManualClock;
  readonly log: readonly LogLine[];
  readonly faults: readonly Error[];
}

/** An engine that is not open yet. */
export interface UnopenedEngine extends Omit<Engine, "storage"> {
  open(): Promise<Engine>;
}

/** An engine in a directory, its own unless another is given, that is still to be opened. */
export function makeEngine(options: Partial<FileStorageOptions> & { files?: WatchedFiles; clock?: ManualClock } = {}): UnopenedEngine {
  const dir = options.dir ?? join(tempDir(), "data");
  const files = options.files ?? new WatchedFiles();
  const clock = options.clock ?? new ManualClock();
  const { log, lines } = keptLog();
  const faults: Error[] = [];
  const parts = { dir, files, clock, log: lines, faults };
  const onFault = (error: Error): void => void faults.push(error);
  const open = async (): Promise<Engine> => ({
    ...parts,
    storage: await FileStorage.open({ fsync: false, ...SMALL, log, onFault, ...options, dir, files, clock }),
  });
  return { ...parts, open };
}

/** An open engine. */
export function openEngine(options: Parameters<typeof makeEngine>[0] = {}): Promise<Engine> {
  return makeEngine(options).open();
}

/** An open engine that is closed when the test is over. */
export async function openFor(t: TestContext, options: Parameters<typeof makeEngine>[0] = {}): Promise<Engine> {
  const engine = await openEngine(options);
  t.after(() => engine.storage.close());
  return engine;
}

/** Ends an engine as kill -9 does; returns a copy of what it leaves on disk. */
export async function crash(engine: Engine): Promise<string> {
  await engine.files.freeze();
  return copyOf(engine.dir);
}

/** A copy of a data directory, without the lock of its living process. */
export function copyOf(dir: string): string {
  const copy = join(tempDir(), "data");
  const isLock = (path: string): boolean => basename(path) === "lock" || claimIdOf(basename(path)) !== null;
  cpSync(dir, copy, { recursive: true, filter: (path) => !isLock(path) });
  return copy;
}

/** Ends an engine as kill -9 does, and opens another one on what it leaves. */
export async function crashAndRecover(engine: Engine, options: Parameters<typeof makeEngine>[0] = {}): Promise<Engine> {
  return openEngine({ dir: await crash(engine), clock: new ManualClock(engine.clock.nowMs()), ...options });
}

/** Closes an engine and opens another one on its directory. */
export async function reopen(engine: Engine, options: Parameters<typeof makeEngine>[0] = {}): Promise<Engine> {
  await engine.storage.close();
  return openEngine({ dir: engine.dir, clock: new ManualClock(engine.clock.nowMs()), ...options });
}

/** An engine that finds one stream in its directory: what it had is in its own files, the journal is new. */
export async function openOnFiles(name: string, payload: Buffer | string, more: Partial<StreamConfig> = {}): Promise<Engine> {
  const first = await openEngine();
  await created(first.storage, name, payload, more);
  return reopen(first);
}

/** `length` bytes that are the same for the same seed and tell where they are from. */
export function bytesOf(length: number, seed = 0): Buffer {
  const bytes = Buffer.alloc(length);
  for (let index = 0; index < length; index += 1) bytes[index] = 33 + ((index * 7 + seed * 31 + (index >> 6)) % 90);
  return bytes;
}

/** New segments at this size, and where nothing else is said, whatever their age. */
export function rollAt(bytes: number, more: Partial<SegmentRoll> = {}): SegmentRoll {
  return { bytes, ageMs: Infinity, ...more };
}

/** A record with a payload, and whatever else it changes. */
export function recordOf(payload: Buffer | string, more: Partial<AppendRecord> = {}): AppendRecord {
  return { payload: Buffer.from(payload), messages: 1, closes: false, producer: null, seq: null, atMs: 0, ...more };
}

/** A configuration without a lifetime. */
export function configOf(more: Partial<StreamConfig> = {}): StreamConfig {
  return { contentType: "application/octet-stream", createdAtMs: 0, ttlSeconds: null, expiresAtMs: null, forkedFrom: null, ...more };
}

/** The outcome of a call that settles, or why it was not taken. */
export type Outcome = Settlement | Rejection;

/** Makes a stream, and waits until it is durable. */
export async function created(
  storage: Storage,
  name: string,
  payload: Buffer | string = "",
  more: Partial<StreamConfig> = {},
): Promise<StoredStream> {
  const { stream, outcome } = startCreate(storage, name, payload, more);
  assert.equal(await outcome, "durable");
  assert.ok(stream !== null);
  return stream;
}

/** Where a fork of `source` at `point` comes from. */
export function originAt(source: StoredStream, point: number): ForkOrigin {
  const earliest = { position: source.earliest, segmentStart: source.partStartBefore(source.earliest) };
  return { name: source.name, id: source.id, point, earliest, offset: null, subOffset: 0 };
}

/** Makes a fork of `source`, and waits until it is durable. */
export function forked(
  storage: Storage,
  source: StoredStream,
  name: string,
  point = source.state.tail,
  payload: Buffer | string = "",
): Promise<StoredStream> {
  return created(storage, name, payload, { contentType: source.config.contentType, forkedFrom: originAt(source, point) });
}

/** Replaces the sidecar at `path` by one that says something else, as soundly. */
export function changeSidecar(path: string, change: (sidecar: Sidecar) => Partial<Sidecar>): void {
  const read = decodeSidecar(readFileSync(path));
  assert.equal(read.kind, "sound");
  if (read.kind === "sound") writeFileSync(path, encodeSidecar({ ...read.sidecar, ...change(read.sidecar) }));
}

/** Begins to make a stream. */
export function startCreate(
  storage: Storage,
  name: string,
  payload: Buffer | string = "",
  more: Partial<StreamConfig> = {},
): { stream: StoredStream | null; outcome: Promise<Outcome> } {
  let stream: StoredStream | null = null;
  const outcome = new Promise<Outcome>((resolve) => {
    const result = storage.create(name, configOf(more), recordOf(payload), resolve);
    if (typeof result === "string") resolve(result);
    else stream = result;
  });
  return { stream, outcome };
}

/** Appends behind all that was handed in before. */
export function append(
  storage: Storage,
  stream: StoredStream,
  payload: Buffer | string | AppendRecord,
  expectedTail = reservedTailOf(stream),
): Promise<Outcome> {
  const record = typeof payload === "string" || Buffer.isBuffer(payload) ? recordOf(payload) : payload;
  return new Promise((resolve) => {
    const rejection = storage.append(stream, record, expectedTail, resolve);
    if (rejection !== null) resolve(rejection);
  });
}

/** Deletes a stream. */
export function remove(storage: Storage, stream: StoredStream): Promise<Outcome> {
  return new Promise((resolve) => {
    const rejection = storage.delete(stream, resolve);
    if (rejection !== null) resolve(rejection);
  });
}

/** Waits for all that was handed in for a stream. */
export function settled(storage: Storage, stream: StoredStream): Promise<Outcome> {
  return new Promise((resolve) => storage.barrier(stream, resolve));
}

function reservedTailOf(stream: StoredStream): Position {
  return stream instanceof FileStream ? stream.reservedTail : stream.state.tail;
}

/** The stream of this name, which must be there. */
export async function loaded(storage: Storage, name: string): Promise<StoredStream> {
  const stream = await storage.load(name);
  assert.ok(stream !== null, `there is no stream ${name}`);
  return stream;
}

/** All durable bytes of a stream from `from` on, read in pieces of at most `maxBytes`. */
export async function readAll(storage: Storage, stream: StoredStream, from = stream.earliest, maxBytes = 100_000): Promise<Buffer> {
  const pieces: Buffer[] = [];
  const lent = new WeakSet<ArrayBufferLike>();
  const lend = (bytes: number): Buffer => {
    const memory = Buffer.allocUnsafeSlow(bytes);
    lent.add(memory.buffer);
    return memory;
  };
  for (let at = from; at < stream.state.tail;) {
    const piece = await storage.read(stream, at, maxBytes, lend);
    assert.ok(piece.length > 0, `a read at ${at} of ${stream.state.tail} gave nothing`);
    assert.ok(piece.length <= maxBytes, `a read of at most ${maxBytes} bytes gave ${piece.length}`);
    pieces.push(Buffer.from(piece));
    // What the engine was lent it has not kept: the next read is right all the same.
    if (lent.has(piece.buffer)) piece.fill(0x5a);
    at += piece.length;
  }
  return Buffer.concat(pieces);
}

/** Checks that the stream of this name has these bytes and no others; returns it. */
export async function assertBytes({ storage }: Engine, name: string, expected: Buffer): Promise<StoredStream> {
  const stream = await loaded(storage, name);
  assert.equal(stream.state.tail, expected.length);
  for (const maxBytes of [1009, 100_000])
    assert.ok((await readAll(storage, stream, 0, maxBytes)).equals(expected), `${name} reads as written`);
  return stream;
}
