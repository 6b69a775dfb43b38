// Makes one stream of an archive, or finds that it is there.

import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { isJsonContentType } from "../../../protocol/content-type.js";
import { messagesLength } from "../../../protocol/json/json-frame.js";
import { Producer } from "../append/producer.js";
import { EXIT } from "../../command/verb.js";
import { isRefused, refusal, type Failure } from "../remote/failure.js";
import type { Answer } from "../remote/http-client.js";
import { streamCalled, type Session } from "../session/session.js";
import { StreamData } from "./stream-data.js";
import { importerOf, type ArchivedFork, type StreamHead } from "./stream-head.js";

/** What became of a stream, or in a dry run would become of it. */
export interface ImportOutcome {
  readonly kind: "outcome";
  readonly what: "imported" | "continued" | "there" | "refused";
  /** Why it was refused; else `null`. */
  readonly why: string | null;
  /** The exit status that one like it has. */
  readonly status: number;
}

/** `null` when a piece is stored, or not to be. */
export type PieceOutcome = Failure | null;

/** Where a fork begins in its source: so many messages, or bytes, behind an offset. */
interface ForkPlace {
  readonly offset: string;
  readonly units: number;
}

const LINE_FEED = 0x0a;
/** A server looks for a message no more than 64 MiB behind an offset; its lines are a little longer than these. */
const REACH_BYTES = 32 * 1024 * 1024;

/**
 * The import of one stream. Its pieces are appends of a producer that is named by what they are, so that those which an
 * earlier import has stored are not stored again.
 */
export class StreamImport {
  readonly #session: Session;
  readonly #head: StreamHead;
  readonly #isDryRun: boolean;
  readonly #made: Set<string>;
  readonly #about: string;
  #outcome: ImportOutcome = outcome("imported");
  /** Pieces that are stored already. */
  #stored = 0;
  #producer: Producer | null = null;
  /** Whether this import has made the stream. */
  #isMade = false;
  /** The stream is there, and it is to be seen whether it is this one. */
  #mustProbe = false;
  /** Whether it is taken for this one where it is open and has no data of its own yet. */
  #mayBegin = false;
  /** Where it is forked, if it is; {@link #checkSource} moves the place of a long beginning to an offset near it. */
  #place: ForkPlace;

  /** `made` has the names that a dry run has found the import to make whole, or to find so. */
  constructor(session: Session, head: StreamHead, isDryRun: boolean, made: Set<string>) {
    this.#session = session;
    this.#head = head;
    this.#isDryRun = isDryRun;
    this.#made = made;
    this.#about = streamCalled(head.name);
    this.#place = { offset: "-1", units: head.fork?.at ?? 0 };
  }

  /** Makes the stream, or finds out why not. Fails only where the whole import can't go on. */
  async begin(): Promise<Failure | null> {
    const { fork, expiresAt } = this.#head;
    if (expiresAt !== null && Date.parse(expiresAt) <= this.#session.clock.nowMs())
      return this.#refuse(`its time was over at ${expiresAt}`);
    if (this.#isDryRun) return this.#foresee();
    const answer = fork === null ? await this.#put() : await this.#putFork(fork);
    if (answer === null || answer.kind === "failure") return answer;
    if (answer.status === 404 && fork !== null)
      return this.#refuse(`its source ${JSON.stringify(fork.from)} is not there`);
    const refused = answer.status < 300 ? null : refusal(answer, this.#about);
    if (refused?.code === "config-mismatch" || answer.status === 200) {
      const hasPieces = this.#head.pieces.length > 0;
      // 200 vouches for the type and the source. After a 409 the probe, if there is one, does so for the type alone.
      this.#mayBegin = answer.status === 200 || (fork === null && hasPieces);
      this.#mustProbe = true;
      this.#outcome = outcome("there");
      return hasPieces ? null : this.#compare();
    }
    if (refused !== null) return this.#refused(refused);
    this.#isMade = true;
    this.#produceFrom(0);
    return null;
  }

  #put(): Promise<Answer | Failure> {
    const { server } = this.#session;
    return server.askStream({ method: "PUT", target: server.target(this.#head.name), headers: this.#creation() });
  }

  /** `null` where its source is not the one that it had. */
  async #putFork(fork: ArchivedFork): Promise<Answer | Failure | null> {
    const { server } = this.#session;
    const there = await server.askStream({ method: "HEAD", target: server.target(this.#head.name) });
    if (there.kind === "failure") return there;
    if (there.status !== 200) {
      const failed = await this.#checkSource(fork);
      return failed === "right" ? this.#put() : failed;
    }
    const answer = await this.#put();
    const isOther = answer.kind !== "failure" && answer.status === 409 && there.header("stream-closed") !== "true";
    if (!isOther || !isJsonContentType(this.#head.contentType)) return answer;
    // An earlier import asked for a long beginning from another offset.
    const failed = await this.#checkSource(fork);
    return failed === "right" && this.#place.offset !== "-1" ? this.#put() : answer;
  }

  /** Stores the piece at a place in the head's list, unless it is there. */
  async put(at: number, piece: Buffer): Promise<PieceOutcome> {
    if (this.#mustProbe) {
      const failed = await this.#probe();
      if (failed !== null) return failed;
    }
    if (this.#producer === null || at < this.#stored) return null;
    const answer = await this.#producer.append(this.#bodyOf(piece), false, this.#about);
    if (answer.kind === "answer") return null;
    this.#producer = null;
    return this.#refused(answer, this.#leftBefore(at));
  }

  /** What is there without the piece at a place. Others may write to it by now: it is not for an import to delete. */
  #leftBefore(at: number): string {
    const bytes = this.#head.pieces.slice(0, at).reduce((sum, [length]) => sum + length, 0);
    if (at > 0) return `its first ${bytes} bytes are stored`;
    return this.#isMade
      ? "the stream that was made for it is left, without data"
      : "the stream was there before, and is as it was";
  }

  /** Closes the stream where it was closed, and says what became of it. */
  async end(): Promise<ImportOutcome | Failure> {
    if (this.#producer === null || !this.#head.closed) return this.#outcome;
    const answer = await this.#producer.append(Buffer.alloc(0), true, this.#about);
    if (answer.kind === "answer") return this.#outcome;
    return this.#refused(answer) ?? this.#outcome;
  }

  async #foresee(): Promise<Failure | null> {
    const { server } = this.#session;
    const { name, fork } = this.#head;
    const head = await server.askStream({ method: "HEAD", target: server.target(name) });
    if (head.kind === "failure") return head;
    if (head.status === 200) {
      this.#mayBegin = fork === null && this.#head.pieces.length > 0;
      const failed = await this.#compare();
      // Nothing of it is left out, as it would be where it is refused.
      if (this.#outcome.what !== "refused") this.#made.add(name);
      return failed;
    }
    if (head.status !== 404) return this.#refused(refusal(head, this.#about));
    const failed = fork === null || this.#made.has(fork.from) ? "right" : await this.#checkSource(fork);
    if (failed !== "right") return failed;
    this.#made.add(name);
    return null;
  }

  /** Whether the source begins with what the fork has from it: another stream may have its name, or less be left. */
  async #checkSource({ from, at, sha256 }: ArchivedFork): Promise<Failure | "right" | null> {
    const { contentType } = this.#head;
    const source = new StreamData(this.#session, from, contentType);
    const inherited = new Inherited(contentType, at);
    let reach = 0;
    while (inherited.left > 0) {
      const part = await source.next();
      if (part === null) break;
      if (part.kind === "failure") {
        if (part.status === EXIT.missing) return this.#refuse(`its source ${JSON.stringify(from)} is not there`);
        return this.#refused(part);
      }
      reach += part.bytes.length;
      if (reach > REACH_BYTES && isJsonContentType(contentType)) {
        this.#place = { offset: part.from, units: inherited.left };
        reach = part.bytes.length;
      }
      inherited.take(part.bytes);
    }
    return inherited.is(sha256)
      ? "right"
      : this.#refuse(`its source ${JSON.stringify(from)} has another beginning here`);
  }

  #creation(): Readonly<Record<string, string>> {
    const { server } = this.#session;
    const { contentType, ttlSeconds, expiresAt, fork } = this.#head;
    return {
      "Content-Type": contentType,
      ...(ttlSeconds === null ? {} : { "Stream-TTL": String(ttlSeconds) }),
      ...(expiresAt === null ? {} : { "Stream-Expires-At": expiresAt }),
      ...(fork === null
        ? {}
        : {
            "Stream-Forked-From": server.pathOf(fork.from),
            "Stream-Fork-Offset": this.#place.offset,
            "Stream-Fork-Sub-Offset": String(this.#place.units),
          }),
    };
  }

  /** Asks a stream that is there how much of this archive it has taken. */
  async #probe(): Promise<Failure | null> {
    this.#mustProbe = false;
    const answer = await this.#producerAt(0).probe();
    if (answer.kind === "failure") return answer;
    const refused = refusal(answer, this.#about);
    const expected = expectedSeq(answer);
    if (refused.code !== "producer-gap")
      return refused.code === "stream-closed" ? this.#compare() : this.#refused(refused, this.#leftBefore(0));
    if (expected === 0) return this.#compare();
    const isWhole = expected >= this.#head.pieces.length && !this.#head.closed;
    this.#outcome = outcome(isWhole ? "there" : "continued");
    this.#produceFrom(expected);
    return null;
  }

  /** Reads the stream that is there, and looks whether it is what the archive has, or is yet to become that. */
  async #compare(): Promise<Failure | null> {
    this.#mustProbe = false;
    const { name, contentType, fork, sha256, bytes, closed, pieces } = this.#head;
    const data = new StreamData(this.#session, name, contentType);
    const hash = createHash("sha256");
    const beginning = new Beginning(pieces);
    const inherited = new Inherited(contentType, fork?.at ?? 0);
    let [seen, isClosed] = [0, false];
    for (let part = await data.next(); part !== null; part = await data.next()) {
      if (part.kind === "failure") return this.#refused(part);
      const own = inherited.take(part.bytes);
      hash.update(own);
      beginning.take(own);
      seen += own.length;
      isClosed = part.isClosed;
    }
    const isSame = fork === null || inherited.is(fork.sha256);
    const isBare = seen === 0 && isSame && !isClosed;
    if (this.#mayBegin && isBare && (bytes > 0 || closed)) {
      this.#outcome = outcome("imported");
      this.#produceFrom(0);
      return null;
    }
    this.#outcome = outcome("there");
    if (isSame && seen === bytes && hash.digest("hex") === sha256 && isClosed === closed) return null;
    // Whether an import has stored these pieces, only an append would tell: a dry run makes none.
    const isCutOff = this.#isDryRun && isSame && beginning.hasWholePieces && !isClosed;
    if (!isCutOff) return this.#refuse("a stream of this name is there, with other data or a part of it");
    this.#outcome = outcome("continued");
    return null;
  }

  #produceFrom(seq: number): void {
    if (this.#isDryRun) return;
    this.#stored = seq;
    this.#producer = this.#producerAt(seq);
  }

  #producerAt(seq: number): Producer {
    const { name, contentType } = this.#head;
    return new Producer(this.#session.server, name, contentType, { id: importerOf(this.#head), epoch: 0, seq });
  }

  #bodyOf(piece: Buffer): Buffer {
    if (!isJsonContentType(this.#head.contentType)) return piece;
    // One message needs no array around it, which may make it longer than the server takes, unless it is one itself.
    const isOne = piece.indexOf(LINE_FEED) === piece.length - 1;
    if (isOne && /^[^\s[]/.test(piece.toString("latin1", 0, 1))) return piece.subarray(0, -1);
    // Each line is a message; the array around them is what the server takes away.
    const body = Buffer.concat([Buffer.from("["), piece]);
    for (let at = body.indexOf(LINE_FEED); at >= 0 && at < body.length - 1; at = body.indexOf(LINE_FEED, at + 1))
      body[at] = 0x2c;
    body[body.length - 1] = 0x5d;
    return body;
  }

  /** A failure that is of this stream alone does not end the import. */
  #refused(refused: Failure, left: string | null = null): Failure | null {
    const hint = refused.code === "body-too-large" ? "; see --max-append-bytes of the server" : "";
    const rest = left === null || refused.status === EXIT.missing ? "" : `; ${left}`;
    const why = `${refused.line}${hint}${rest}`;
    return isRefused(refused) ? this.#refuse(why, refused.status) : refused;
  }

  #refuse(why: string, status: number = EXIT.refused): null {
    this.#outcome = outcome("refused", why, status === EXIT.noRight ? status : EXIT.refused);
    return null;
  }
}

/** What a stream begins with, that it has from another. */
class Inherited {
  readonly #isJson: boolean;
  readonly #hash = createHash("sha256");
  /** Messages that have not come yet, or bytes. */
  left: number;

  constructor(contentType: string, units: number) {
    this.#isJson = isJsonContentType(contentType);
    this.left = units;
  }

  /** Takes the next bytes; returns those behind. */
  take(bytes: Buffer): Buffer {
    const { length, count } = this.#isJson ? messagesLength(bytes, this.left) : bytesLength(bytes, this.left);
    this.left -= count;
    this.#hash.update(bytes.subarray(0, length));
    return bytes.subarray(length);
  }

  /** Whether all came, and had this checksum. Called once. */
  is(sha256: string): boolean {
    return this.left === 0 && this.#hash.digest("hex") === sha256;
  }
}

/** Follows a stream, and knows whether all that it has so far are pieces of an archive. */
class Beginning {
  readonly #pieces: StreamHead["pieces"];
  #at = 0;
  #taken = 0;
  #crc = 0;
  #isSame = true;

  constructor(pieces: StreamHead["pieces"]) {
    this.#pieces = pieces;
  }

  take(bytes: Buffer): void {
    for (let from = 0; from < bytes.length && this.#isSame;) {
      const [length, crc] = this.#pieces[this.#at] ?? [0, 0];
      const part = bytes.subarray(from, from + length - this.#taken);
      this.#crc = crc32(part, this.#crc);
      this.#taken += part.length;
      from += part.length;
      if (this.#taken < length) return;
      this.#isSame = length > 0 && this.#crc === crc;
      [this.#at, this.#taken, this.#crc] = [this.#at + 1, 0, 0];
    }
  }

  /** Whether there is one piece or more, and no part of another. */
  get hasWholePieces(): boolean {
    return this.#isSame && this.#at > 0 && this.#taken === 0;
  }
}

function outcome(what: ImportOutcome["what"], why: string | null = null, status: number = EXIT.done): ImportOutcome {
  return { kind: "outcome", what, why, status };
}

function expectedSeq(answer: Answer): number {
  const expected = Number(answer.header("producer-expected-seq") ?? "0");
  return Number.isSafeInteger(expected) ? expected : 0;
}

function bytesLength(bytes: Buffer, count: number): { readonly length: number; readonly count: number } {
  const length = Math.min(bytes.length, count);
  return { length, count: length };
}
