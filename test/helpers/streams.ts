import assert from "node:assert/strict";
import { type TestContext } from "node:test";
import { parseOffset, type ParsedOffset } from "../../src/protocol/offset.js";
import type { ProducerStamp, StoredStream, StreamConfig } from "../../src/storage/storage.js";
import type { AppendCommand } from "../../src/stream/rules/command.js";
import type { TtlMode } from "../../src/stream/rules/expiry.js";
import { LoadedProducers } from "../../src/stream/loaded/loaded-producers.js";
import type { AppendOutcome } from "../../src/stream/rules/outcome.js";
import { KEEP_ALL } from "../../src/stream/loaded/retention.js";
import { ReadRoom } from "../../src/stream/loaded/read-room.js";
import { Stream } from "../../src/stream/loaded/stream.js";
import { append, created, loaded, openEngine, openFor, reopen, settled, type Engine } from "./engine.js";
import { placeOf } from "./tokens.js";
import { trimBefore } from "./trim.js";

/** A stream, and the engine that it is in. */
export interface TestStream {
  readonly engine: Engine;
  readonly stream: Stream;
}

/** The stream that an engine has stored, as the registry loads it. */
export function streamIn(
  { storage, clock }: Pick<Engine, "storage" | "clock">,
  stored: StoredStream,
  ttlMode: TtlMode = "sliding",
): Stream {
  const producers = new LoadedProducers<Stream>();
  const decideAgain = (): never => assert.fail("nobody else writes");
  const readRoom = new ReadRoom();
  const context = { storage, readRoom, clock, ttlMode, retention: KEEP_ALL, producers, hasRoomForProducer: () => true, decideAgain };
  return new Stream(context, stored, null);
}

/** A stream that is durable, in an engine of its own. */
export async function streamOf(
  t: TestContext,
  config: Partial<StreamConfig> = {},
  initial: Buffer | string = "",
  ttlMode: TtlMode = "sliding",
): Promise<TestStream> {
  const engine = await openFor(t);
  const stored = await created(engine.storage, "s", initial, { contentType: "text/plain", createdAtMs: engine.clock.nowMs(), ...config });
  return { engine, stream: streamIn(engine, stored, ttlMode) };
}

/** A stream with these appends, each a segment of its own, of which memory has nothing; `trim` drops what is before a place. */
export async function streamOnDisk(
  t: TestContext,
  appends: readonly Buffer[],
): Promise<TestStream & { readonly trim: (before: number) => Promise<void> }> {
  const first = await openEngine();
  const written = await created(first.storage, "s", "", { contentType: "text/plain" });
  for (const payload of appends) await append(first.storage, written, payload);
  const engine = await reopen(first);
  t.after(() => engine.storage.close());
  const { storage, files } = engine;
  const stored = await loaded(storage, "s");
  const trim = async (before: number): Promise<void> => {
    trimBefore(storage, stored, before);
    await settled(storage, stored);
    await files.idle();
  };
  return { engine, trim, stream: streamIn(engine, stored) };
}

/** A stream of messages. */
export const JSON_CONFIG = { contentType: "application/json" };

/** A request to append `body`. */
export function commandOf(body: string | Buffer, more: Partial<AppendCommand> = {}): AppendCommand {
  return { contentType: "text/plain", body: Buffer.from(body), closes: false, producer: null, seq: null, ifMatch: null, ...more };
}

/** A request to append JSON. */
export function jsonOf(body: string): AppendCommand {
  return commandOf(body, { contentType: "application/json" });
}

/** What makes a request a producer's. */
export function producing(seq: number, epoch = 0): { producer: ProducerStamp } {
  return { producer: { id: "p", epoch, seq } };
}

/** The place of a token. */
export function at(token: string): ParsedOffset {
  const parsed = parseOffset(token);
  assert.ok(parsed !== null);
  return parsed;
}

/** What has settled of `outcomes` so far: the rest is "waiting". */
export async function soFar(engine: Engine, outcomes: readonly (AppendOutcome | Promise<AppendOutcome>)[]): Promise<string[]> {
  const gists = outcomes.map(() => "waiting");
  outcomes.forEach((outcome, index) => void Promise.resolve(outcome).then((done) => (gists[index] = gist(done))));
  await engine.files.idle();
  return gists;
}

/** An outcome in short. */
export function gist(outcome: AppendOutcome): string {
  if (outcome.kind === "refused") return outcome.code;
  return `${outcome.duplicate ? "duplicate" : "new"} ${placeOf(outcome.nextOffset)}${outcome.closed ? " closed" : ""}`;
}
