import type { Clock } from "../../src/ops/clock.js";
import {
  LogUnavailableError,
  type LogHealth,
  type LogMessage,
  type Published,
  type ReplicatedLog,
  type SubjectKind,
} from "../../src/storage/nats/log/replicated-log.js";
import { LINGERING_MS } from "../../src/storage/nats/log/sequence-ages.js";

/** How often what goes wrong, each from 0 to 1. */
export interface LogFaults {
  /** A publish is stored, and its answer lost. */
  readonly lostAnswer: number;
  /** A publish is lost on its way. */
  readonly lostPublish: number;
  /** A publish lingers, and arrives long after its sender gave it up. */
  readonly lingering: number;
  /** There is no leader for a moment. */
  readonly noLeader: number;
  /** A server that is asked for bytes is some messages behind. */
  readonly behind: number;
  /** A hint is lost, comes twice, or late. */
  readonly spoiltHint: number;
}

/** Nothing goes wrong. */
export const NO_FAULTS: LogFaults = { lostAnswer: 0, lostPublish: 0, lingering: 0, noLeader: 0, behind: 0, spoiltHint: 0 };

/** What a message takes beside its body, about. */
const OVERHEAD_BYTES = 400;

interface Watcher {
  readonly subject: string;
  readonly onMessage: (message: LogMessage) => void;
}

/** What the servers of a cluster have: all front ends of a test share one. */
export class MemoryCluster {
  readonly subjects = new Map<string, LogMessage[]>();
  readonly watchers = new Set<Watcher>();
  /** Subjects with a publish that has not arrived yet. */
  readonly lingering = new Set<string>();
  readonly listeners = new Set<(text: string) => void>();
  /** Publishes whose expectation was not met: tests look whether there were any. */
  refused = 0;
  /** What all messages may have together; a message has its body and as much as {@link OVERHEAD_BYTES}. */
  maxBytes = Infinity;
  /** When messages were stored, by their sequences. */
  readonly storedAtMs = new Map<number, number>();
  #sequence = 0;

  /** Stores a message where the expectation is met. */
  store(subject: string, head: string, body: Buffer, expected: number | null): LogMessage | null {
    const messages = this.subjects.get(subject) ?? [];
    const previous = messages.at(-1)?.sequence ?? 0;
    if (expected !== null && expected !== previous) {
      this.refused += 1;
      return null;
    }
    this.#sequence += 1;
    const message = { sequence: this.#sequence, previous, head, body: Buffer.from(body) };
    this.subjects.set(subject, [...messages, message]);
    return message;
  }

  /** What all messages have together. */
  get bytes(): number {
    let bytes = 0;
    for (const messages of this.subjects.values()) for (const { body } of messages) bytes += body.length + OVERHEAD_BYTES;
    return bytes;
  }

  /** Whether a message of so many bytes is too much. */
  lacks(bytes: number): boolean {
    return this.maxBytes < Infinity && this.bytes + bytes + OVERHEAD_BYTES > this.maxBytes;
  }

  purge(subject: string, before: number): void {
    const left = (this.subjects.get(subject) ?? []).filter(({ sequence }) => sequence >= before);
    if (left.length > 0) this.subjects.set(subject, left);
    else this.subjects.delete(subject);
  }
}

/** A front end's way to a {@link MemoryCluster}: calls take a while, and some go wrong. */
export class MemoryLog implements ReplicatedLog {
  readonly maxBodyBytes = 64 * 1024;
  readonly #cluster: MemoryCluster;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #faults: LogFaults;
  readonly #ends: (() => void)[] = [];
  #isClosed = false;
  #isCut = false;
  #onGap: () => void = () => undefined;

  constructor(cluster: MemoryCluster, clock: Clock, random: () => number, faults = NO_FAULTS) {
    this.#cluster = cluster;
    this.#clock = clock;
    this.#random = random;
    this.#faults = faults;
  }

  #happens(share: number): boolean {
    return share > 0 && this.#random() < share;
  }

  #pause(maxMs = 3): Promise<void> {
    const delayMs = this.#random() * maxMs;
    return new Promise((resolve) => void this.#clock.after(delayMs, resolve));
  }

  async publish(subject: string, head: string, body: Buffer, expected: number | null): Promise<Published> {
    await this.#pause();
    if (this.#happens(this.#faults.noLeader)) return { kind: "untaken" };
    if (this.#happens(this.#faults.lostPublish)) return this.#unanswered();
    if (this.#happens(this.#faults.lingering)) {
      this.#cluster.lingering.add(subject);
      void this.#pause(5000).then(() => {
        this.#cluster.lingering.delete(subject);
        this.#store(subject, head, body, expected);
      });
      return this.#unanswered();
    }
    if (this.#cluster.lingering.has(subject) && this.#happens(0.5)) return { kind: "pending" };
    if (this.#cluster.lacks(body.length)) return { kind: "full" };
    const stored = this.#store(subject, head, body, expected);
    await this.#pause();
    if (this.#happens(this.#faults.lostAnswer)) return this.#unanswered();
    return stored === null ? { kind: "moved" } : { kind: "stored", sequence: stored.sequence };
  }

  async #unanswered(): Promise<Published> {
    await this.#pause(2000);
    return { kind: "unknown" };
  }

  #store(subject: string, head: string, body: Buffer, expected: number | null): LogMessage | null {
    const stored = this.#cluster.store(subject, head, body, expected);
    if (stored === null) return null;
    this.#cluster.storedAtMs.set(stored.sequence, this.#clock.nowMs());
    for (const watcher of this.#cluster.watchers) if (watcher.subject === subject) this.#hint(watcher, stored);
    return stored;
  }

  #hint({ onMessage }: Watcher, message: LogMessage): void {
    const isSpoilt = this.#happens(this.#faults.spoiltHint);
    const times = isSpoilt ? Math.floor(this.#random() * 3) : 1;
    for (let time = 0; time < times; time += 1) void this.#pause(isSpoilt ? 500 : 3).then(() => onMessage(message));
  }

  async #ask<T>(answer: () => T): Promise<T> {
    await this.#pause();
    if (this.#happens(this.#faults.noLeader)) throw new LogUnavailableError("there is no leader", "");
    const found = answer();
    await this.#pause();
    return found;
  }

  last(subject: string): Promise<LogMessage | null> {
    return this.#ask(() => this.#cluster.subjects.get(subject)?.at(-1) ?? null);
  }

  next(subject: string, from: number): Promise<LogMessage | null> {
    return this.#ask(() => this.#messages(subject).find(({ sequence }) => sequence >= from) ?? null);
  }

  find(subject: string, from: number): Promise<LogMessage | null> {
    return this.#ask(() => this.#asServed(subject).find(({ sequence }) => sequence >= from) ?? null);
  }

  range(subject: string, from: number, maxBytes: number): Promise<readonly LogMessage[]> {
    return this.#ask(() => {
      const found: LogMessage[] = [];
      let bytes = 0;
      for (const message of this.#asServed(subject)) {
        if (message.sequence < from) continue;
        if (found.length > 0 && bytes + message.body.length > maxBytes) break;
        bytes += message.body.length;
        found.push(message);
      }
      return found;
    });
  }

  #messages(subject: string): readonly LogMessage[] {
    if (!subject.endsWith("*")) return this.#cluster.subjects.get(subject) ?? [];
    const matching = [...this.#cluster.subjects].filter(([name]) => name.startsWith(subject.slice(0, -1)));
    return matching.flatMap(([, messages]) => messages).sort((left, right) => left.sequence - right.sequence);
  }

  /** A subject as some server has it, which may be behind. */
  #asServed(subject: string): readonly LogMessage[] {
    const messages = this.#messages(subject);
    return this.#happens(this.#faults.behind) ? messages.slice(0, Math.floor(this.#random() * messages.length)) : messages;
  }

  count(filter: string): Promise<number> {
    const prefix = filter.slice(0, -1);
    return this.#ask(() => [...this.#cluster.subjects.keys()].filter((subject) => subject.startsWith(prefix)).length);
  }

  /** There is none for a moment, or for longer than anybody waits. */
  async untilLed(): Promise<boolean> {
    await this.#pause();
    return this.#random() < 0.5;
  }

  hasSettled(_subject: string, sequence: number): boolean {
    return this.#clock.nowMs() - (this.#cluster.storedAtMs.get(sequence) ?? Infinity) >= LINGERING_MS;
  }

  async purge(subject: string, before: number | null): Promise<void> {
    await this.#ask(() => this.#cluster.purge(subject, before ?? Infinity));
  }

  async *heads(of: SubjectKind): AsyncGenerator<Omit<LogMessage, "body">> {
    for (const [subject, messages] of [...this.#cluster.subjects]) {
      await this.#pause(0.1);
      const last = messages.at(-1);
      if (subject.includes(of === "streams" ? ".s." : ".f.") && last !== undefined) yield last;
    }
  }

  watch(subject: string, isNews: (sequence: number) => boolean, onMessage: (message: LogMessage) => void): () => void {
    const watcher = { subject, onMessage: (message: LogMessage) => void (isNews(message.sequence) && onMessage(message)) };
    this.#cluster.watchers.add(watcher);
    const end = (): void => void this.#cluster.watchers.delete(watcher);
    this.#ends.push(end);
    return end;
  }

  announce(text: string): void {
    for (const listener of this.#cluster.listeners) void this.#pause().then(() => listener(text));
  }

  listen(onAnnounced: (text: string) => void, onGap: () => void): void {
    this.#onGap = onGap;
    const listener = (text: string): void => void (this.#isClosed || this.#isCut || onAnnounced(text));
    this.#cluster.listeners.add(listener);
    this.#ends.push(() => this.#cluster.listeners.delete(listener));
  }

  /** Hears nothing that is announced until it is healed. */
  cut(): void {
    this.#isCut = true;
  }

  heal(): void {
    this.#isCut = false;
    this.#onGap();
  }

  health(): LogHealth {
    return { writable: true, reason: null };
  }

  close(): Promise<void> {
    this.#isClosed = true;
    for (const end of this.#ends) end();
    return Promise.resolve();
  }
}
