import assert from "node:assert/strict";
import { Stream } from "../../src/stream/loaded/stream.js";
import { DeletedStreamError, StorageBusyError } from "../../src/storage/storage.js";
import type { Refused } from "../../src/stream/rules/outcome.js";
import { appendByName } from "./append.js";
import { frontEnds, type FrontEnd, type FrontEnds } from "./front-ends.js";
import { NO_FAULTS, type LogFaults } from "./memory-log.js";
import { Random } from "./random.js";
import { appendOf, createOf } from "./registries.js";

/** An append that was acknowledged, with what it was answered. */
interface Acknowledged {
  readonly text: string;
  readonly nextOffset: string;
  readonly id: string | null;
}

/** What one client, reader or writer, goes by. */
interface World extends FrontEnds {
  readonly random: Random;
  /** Everything that was acknowledged, by the incarnation's creation. */
  readonly acknowledged: Acknowledged[];
  /** Texts of appends of which nobody knows what became. */
  readonly unknown: Set<string>;
  /** Texts of appends that were refused: they are nowhere. */
  readonly refused: Set<string>;
  readonly views: View[];
  deletions: number;
  closures: number;
  /** The text that the stream was closed with, once that was acknowledged. */
  closedWith: string | null;
  /** Forks that were acknowledged, and what the source held before their point. */
  readonly forks: { readonly name: string; readonly sourceId: string; readonly own: string }[];
  /** By the id of an incarnation, the most that anybody has read of it. */
  readonly contents: Map<string, string>;
}

/** What one live reader has seen. */
interface View {
  readonly id: string;
  text: string;
  isOver: boolean;
}

const NAME = "jobs/1";
const MAX_TRIES = 200;

/** Plays a history of several front ends that write one stream, drawn from a seed; throws where a promise is broken. */
export async function playClusterHistory(seed: number): Promise<{ readonly conflicts: number; readonly acknowledged: number }> {
  const random = new Random(seed);
  const ends = frontEnds(random.integer(2, 3), random, faultsOf(random));
  const acknowledged: Acknowledged[] = [];
  const world: World = {
    ...ends,
    random,
    acknowledged,
    unknown: new Set(),
    refused: new Set(),
    views: [],
    deletions: 0,
    closures: 0,
    closedWith: null,
    forks: [],
    contents: new Map(),
  };
  try {
    await ends.clock.through(play(world));
    return { conflicts: ends.cluster.refused, acknowledged: acknowledged.length };
  } finally {
    await ends.stop();
  }
}

function faultsOf(random: Random): LogFaults {
  const some = (most: number): number => (random.chance(0.5) ? random.next() * most : 0);
  if (random.chance(0.2)) return NO_FAULTS;
  return {
    lostAnswer: some(0.2),
    lostPublish: some(0.1),
    lingering: some(0.1),
    noLeader: some(0.1),
    behind: some(0.5),
    spoiltHint: some(0.8),
  };
}

async function play(world: World): Promise<void> {
  const { random, all } = world;
  await createAll(world);
  const writers = Array.from({ length: random.integer(1, 4) }, (_, index) => produce(world, `p${index}`, random.integer(1, 8)));
  const plain = Array.from({ length: random.integer(0, 3) }, (_, index) => appendPlainly(world, `w${index}`, random.integer(1, 5)));
  const sequenced = random.chance(0.5) ? [appendInSequence(world, 5)] : [];
  const readers = Array.from({ length: random.integer(1, 3) }, () => follow(world, random.pick(all)));
  const deleter = random.chance(0.3) ? [deleteAndMakeAgain(world)] : [];
  const closer = random.chance(0.3) ? [close(world)] : [];
  const forkers = Array.from({ length: random.chance(0.4) ? random.integer(1, 2) : 0 }, (_, index) => fork(world, `jobs/1-f${index}`));
  const visitor = random.chance(0.3) ? [visitUntilOver(world)] : [];
  await Promise.all([...writers, ...plain, ...sequenced, ...deleter, ...closer, ...forkers, ...visitor]);
  const ended = await Promise.all(readers);
  const last = world.begin(NO_FAULTS);
  const final = await contentOf(world, last);
  if (final.id !== null) world.contents.set(final.id, final.text);
  await checkForks(world, last);
  for (const end of ended) await end(final);
  check(world, final);
}

/** All front ends make the stream at once: one of them does. */
async function createAll(world: World): Promise<void> {
  const outcomes = await Promise.all(world.all.map(({ registry }) => insist(world, "create", () => registry.create(NAME, createOf()))));
  const made = outcomes.filter((outcome) => outcome.kind === "created" && outcome.created).length;
  assert.ok(made <= 1, `${made} front ends made the stream`);
}

/** Asks again, elsewhere or not, until there is an answer that is one. */
async function insist<T extends { readonly kind: string } | Refused>(world: World, what: string, ask: () => Promise<T>): Promise<T> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const outcome = await ask().catch((fault: unknown) => {
      if (fault instanceof StorageBusyError) return null;
      throw fault;
    });
    if (outcome !== null && !isPassing(outcome)) return outcome;
    await world.clock.pause(world.random.next() * 50);
  }
  throw new Error(`no answer to ${what} after ${MAX_TRIES} tries`);
}

function isPassing(outcome: { readonly kind: string } | Refused): boolean {
  return "code" in outcome && (outcome.code === "overloaded" || outcome.code === "outcome-unknown");
}

/** A producer that repeats each append until it is answered, at any front end, and pipelines some. */
async function produce(world: World, id: string, count: number): Promise<void> {
  const { random, all } = world;
  for (let seq = 0; seq < count; seq += 1) {
    const text = `[${id}:${seq}]`;
    const producer = { id, epoch: 0, seq };
    const ask = (): ReturnType<typeof appendByName> => appendByName(random.pick(all).registry, NAME, appendOf(text, { producer }));
    const outcome = await insist(world, text, ask);
    if (outcome.kind === "appended") note(world, text, outcome.nextOffset, outcome.duplicate);
    else {
      // Only a deletion forgets a producer.
      const isForgotten = ["stream-not-found", "stream-gone", "producer-gap"].includes(outcome.code) && world.deletions > 0;
      assert.ok(isForgotten || (outcome.code === "stream-closed" && world.closures > 0), `${text}: ${outcome.code}`);
      if (outcome.code === "stream-closed") world.refused.add(text);
      return;
    }
    if (random.chance(0.3)) await world.clock.pause(random.next() * 20);
  }
}

/** The offset of a repeated append's answer is that of the tail then. */
function note(world: World, text: string, nextOffset: string, isDuplicate: boolean): void {
  world.acknowledged.push({ text, nextOffset: isDuplicate ? "" : nextOffset, id: null });
}

/** Appends several at once, without a producer: what has no answer may be there once. */
async function appendPlainly(world: World, id: string, count: number): Promise<void> {
  const { random, all } = world;
  const { registry } = random.pick(all);
  const texts = Array.from({ length: count }, (_, index) => `[${id}:${index}]`);
  await Promise.all(
    texts.map(async (text) => {
      const outcome = await appendByName(registry, NAME, appendOf(text)).catch(() => null);
      if (outcome === null || (outcome.kind === "refused" && outcome.code === "outcome-unknown")) world.unknown.add(text);
      else if (outcome.kind === "appended") note(world, text, outcome.nextOffset, false);
      else world.refused.add(text);
    }),
  );
}

/** Appends with a Stream-Seq that grows: of those that were taken, each is behind the one before. */
async function appendInSequence(world: World, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const text = `[q:${index}]`;
    const outcome = await appendByName(world.random.pick(world.all).registry, NAME, appendOf(text, { seq: `s${index}` })).catch(() => null);
    if (outcome === null || (outcome.kind === "refused" && outcome.code === "outcome-unknown")) world.unknown.add(text);
    else if (outcome.kind === "appended") note(world, text, outcome.nextOffset, false);
    else world.refused.add(text);
  }
}

async function deleteAndMakeAgain(world: World): Promise<void> {
  const { random, all, clock } = world;
  await clock.pause(random.next() * 60);
  world.deletions += 1;
  const outcome = await insist(world, "delete", () => random.pick(all).registry.delete(NAME));
  const isGone = outcome.kind === "refused" && ["stream-not-found", "stream-gone"].includes(outcome.code);
  assert.ok(outcome.kind === "deleted" || isGone, `delete: ${JSON.stringify(outcome)}`);
  await insist(world, "create again", () => random.pick(all).registry.create(NAME, createOf()));
}

/** Closes the stream with its last append, as a producer that repeats itself: what comes later is refused. */
async function close(world: World): Promise<void> {
  const { random, all, clock } = world;
  await clock.pause(random.next() * 80);
  world.closures += 1;
  const text = "[end]";
  const command = appendOf(text, { producer: { id: "end", epoch: 0, seq: 0 }, closes: true });
  const outcome = await insist(world, text, () => appendByName(random.pick(all).registry, NAME, command));
  if (outcome.kind !== "appended") return assert.ok(world.deletions > 0, `close: ${outcome.code}`);
  note(world, text, outcome.nextOffset, outcome.duplicate);
  world.closedWith = text;
}

/** Makes a fork of the stream where it ends now, and appends to that. */
async function fork(world: World, name: string): Promise<void> {
  const { random, all, clock } = world;
  await clock.pause(random.next() * 60);
  const own = `[${name}]`;
  const request = createOf({ contentType: null, text: own, fork: { source: NAME, offset: null, place: null, subOffset: 0 } });
  const { registry } = random.pick(all);
  const outcome = await insist(world, `fork ${name}`, () => registry.create(name, request));
  if (outcome.kind !== "created") return assert.ok(world.deletions > 0, `fork: ${outcome.code}`);
  const stream = await insist(world, `find ${name}`, async () => (await registry.find(name)) as Stream & { kind: string });
  assert.ok(stream instanceof Stream, `the fork ${name} was made and is not there`);
  const sourceId = stream.config.forkedFrom?.id ?? "";
  world.forks.push({ name, sourceId, own });
}

/** A fork has what its source had, whatever became of that, and then its own. */
async function checkForks(world: World, { registry }: FrontEnd): Promise<void> {
  for (const { name, sourceId, own } of world.forks) {
    const stream = await registry.find(name);
    assert.ok(stream instanceof Stream, `the fork ${name} is gone: ${JSON.stringify(stream)}`);
    const text = await wholeText(stream);
    const inherited = text.slice(0, text.length - own.length);
    assert.equal(text.slice(inherited.length), own, `the fork's own text: ${text}`);
    const source = world.contents.get(sourceId);
    if (source !== undefined) assert.ok(source.startsWith(inherited), `${inherited} is not how ${source} begins`);
    else assert.ok(world.deletions > 0, "the source of a fork is gone");
    const parts: readonly string[] = inherited.match(/\[[^\]]*\]/g) ?? [];
    assert.equal(parts.join(""), inherited, "a fork begins within an append");
  }
}

/** A stream with a TTL that is read every now and then, through any front end, does not expire; then it does. */
async function visitUntilOver(world: World): Promise<void> {
  const { random, all, clock } = world;
  const name = "visited";
  const ttlSeconds = 20;
  await insist(world, "create visited", () => random.pick(all).registry.create(name, createOf({ text: "kept", ttlSeconds })));
  for (let visit = 0; visit < 5; visit += 1) {
    await clock.pause((ttlSeconds - 8) * 1000 * random.next());
    const { registry } = random.pick(all);
    const found = await insist(world, "visit", async () => {
      const stream = await registry.find(name);
      if (stream instanceof Stream) await stream.touch();
      return stream as Stream & { kind: string };
    });
    assert.ok(found instanceof Stream, `it expired early: ${JSON.stringify(found)}`);
  }
  await clock.pause((ttlSeconds + 1) * 1000);
  for (const { registry } of all) {
    const found = await insist(world, "look", async () => (await registry.find(name)) as Stream & { kind: string });
    assert.ok(!(found instanceof Stream), "it did not expire");
  }
}

async function wholeText(stream: Stream): Promise<string> {
  let text = "";
  while (text.length < stream.tail) text += (await stream.read(text.length, 1000)).bytes.toString();
  return text;
}

/** Follows the stream at one front end; the function that it resolves to checks what was seen against the end. */
async function follow(world: World, { registry }: FrontEnd): Promise<(final: Final) => Promise<void>> {
  const found = await insist(world, "find", async () => (await registry.find(NAME)) as Stream & { kind: string });
  if (!(found instanceof Stream)) return () => Promise.resolve();
  const stream: Stream = found;
  const view: View = { id: stream.id, text: "", isOver: false };
  world.views.push(view);
  let reading = Promise.resolve();
  const readOn = async (): Promise<void> => {
    while (view.text.length < stream.tail) {
      try {
        const { bytes } = await stream.read(view.text.length, 1000);
        view.text += bytes.toString();
      } catch (fault) {
        if (fault instanceof DeletedStreamError) return;
        if (!(fault instanceof StorageBusyError)) throw fault;
        await world.clock.pause(5);
      }
    }
  };
  const wake = (): void => void (reading = reading.then(readOn));
  const end = stream.follow(wake, () => (view.isOver = true));
  wake();
  return async (final) => {
    // News may be lost: each stream is looked at every 30 seconds.
    await world.clock.pause(90_000);
    wake();
    await reading;
    end();
    if (view.id !== final.id) return;
    assert.equal(view.isOver, false, "a reader was told of the end of a stream that lives");
    assert.equal(view.text, final.text, "a reader has not what is there");
  };
}

/** What a front end that begins at the end finds. */
interface Final {
  readonly id: string | null;
  readonly text: string;
  readonly stream: Stream | null;
}

async function contentOf(world: World, { registry }: FrontEnd): Promise<Final> {
  // What lingers has come by then.
  await world.clock.pause(10_000);
  const stream = await registry.find(NAME);
  if (!(stream instanceof Stream)) return { id: null, text: "", stream: null };
  return { id: stream.id, text: await wholeText(stream), stream };
}

function check(world: World, { text, stream }: Final): void {
  const parts: readonly string[] = text.match(/\[[^\]]*\]/g) ?? [];
  assert.equal(parts.join(""), text, "bytes that nobody wrote");
  assert.equal(new Set(parts).size, parts.length, `an append is there twice: ${text}`);
  for (const refused of world.refused) assert.ok(!parts.includes(refused), `${refused} was refused and is there`);
  for (const view of world.views) {
    const seen: readonly string[] = view.text.match(/\[[^\]]*\]/g) ?? [];
    assert.equal(new Set(seen).size, seen.length, `a reader saw an append twice: ${view.text}`);
  }
  if (world.deletions > 0 || stream === null) return;
  if (world.closedWith !== null) {
    assert.ok(stream.closed, "a closure was acknowledged and the stream is open");
    assert.equal(parts.at(-1), world.closedWith, `something is behind the closure: ${text}`);
  }
  const known = new Set([...world.acknowledged.map((one) => one.text), ...world.unknown]);
  for (const part of parts) assert.ok(known.has(part), `${part} is there, and nobody was told`);
  for (const { text: part, nextOffset } of world.acknowledged) {
    const at = text.indexOf(part);
    assert.ok(at >= 0, `${part} was acknowledged and is not there: ${text}`);
    if (nextOffset !== "") assert.equal(stream.offsetAt(at + part.length), nextOffset, `the place of ${part}`);
  }
  for (const id of ["p0", "p1", "p2", "p3", "q"]) {
    const own = parts.filter((part) => part.startsWith(`[${id}:`)).map((part) => Number(part.slice(id.length + 2, -1)));
    assert.deepEqual(
      own,
      [...own].sort((left, right) => left - right),
      `the order of ${id}: ${text}`,
    );
  }
}
