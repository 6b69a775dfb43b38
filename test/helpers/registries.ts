import assert from "node:assert/strict";
import { type TestContext } from "node:test";
import type { AppendCommand, CreateCommand } from "../../src/stream/rules/command.js";
import { type TtlMode } from "../../src/stream/rules/expiry.js";
import type { AppendOutcome, CreateOutcome, DeleteOutcome } from "../../src/stream/rules/outcome.js";
import { Registry } from "../../src/stream/registry.js";
import { Stream } from "../../src/stream/loaded/stream.js";
import { keptLog, openEngine, type Engine, type LogLine } from "./engine.js";
import { tokenIn } from "./tokens.js";

/** A registry, its engine, and what it logs. */
export interface TestRegistry {
  readonly engine: Engine;
  readonly registry: Registry;
  readonly log: readonly LogLine[];
}

interface Limits {
  readonly maxLoadedStreams?: number;
  readonly maxLoadedProducers?: number;
  readonly ttlMode?: TtlMode;
}

/** A registry on an engine that the test itself ends. */
export function registryOn(
  engine: Engine,
  { maxLoadedStreams = 1000, maxLoadedProducers = 1000, ttlMode = "sliding" }: Limits = {},
): TestRegistry {
  const { log, lines } = keptLog();
  const registry = new Registry({ storage: engine.storage, clock: engine.clock, log, ttlMode, maxLoadedStreams, maxLoadedProducers });
  return { engine, registry, log: lines };
}

/** A registry on an engine; both are ended when the test is over. */
export async function registryOf(t: TestContext, limits?: Limits, engine?: Engine): Promise<TestRegistry> {
  const made = registryOn(engine ?? (await openEngine()), limits);
  t.after(() => {
    made.registry.stop();
    return made.engine.storage.close();
  });
  return made;
}

/** A request to create a stream with this text. */
export function createOf(more: Partial<CreateCommand> & { text?: string | Buffer } = {}): CreateCommand {
  const { text = "", ...rest } = more;
  return { contentType: "text/plain", ttlSeconds: null, expiresAtMs: null, closed: false, fork: null, body: Buffer.from(text), ...rest };
}

/** A request to append `text`. */
export function appendOf(text: string, more: Partial<AppendCommand> = {}): AppendCommand {
  return { contentType: "text/plain", body: Buffer.from(text), closes: false, producer: null, seq: null, ifMatch: null, ...more };
}

/** An outcome in short. */
export function gist(outcome: CreateOutcome | AppendOutcome | DeleteOutcome): string {
  if (outcome.kind === "refused") return outcome.code;
  if (outcome.kind === "created") return outcome.created ? "created" : "there";
  return outcome.kind;
}

/** The stream of this name. */
export async function find(registry: Registry, name: string): Promise<Stream> {
  const found = await registry.find(name);
  assert.ok(found instanceof Stream, `${name}: ${JSON.stringify(found)}`);
  return found;
}

/** Whether readers find a stream of this name. */
export async function isThere(registry: Registry, name: string): Promise<boolean> {
  return (await registry.find(name)) instanceof Stream;
}

/** What a stream holds. */
export async function textOf(registry: Registry, name: string): Promise<string> {
  const stream = await find(registry, name);
  return (await stream.read(0, 100_000)).bytes.toString();
}

/** What has settled so far; the rest is "waiting". */
export async function soFar(
  engine: Engine,
  outcomes: readonly (CreateOutcome | AppendOutcome | DeleteOutcome | Promise<CreateOutcome | AppendOutcome | DeleteOutcome>)[],
): Promise<string[]> {
  const gists = outcomes.map(() => "waiting");
  outcomes.forEach((outcome, index) => void Promise.resolve(outcome).then((done) => (gists[index] = gist(done))));
  await engine.files.idle();
  return gists;
}

/** The token of a position. */
export async function tokenAt(registry: Registry, name: string, position: number): Promise<string> {
  const stream = await registry.find(name);
  assert.ok(stream instanceof Stream);
  return tokenIn(stream.id, position);
}
