// The verb `export`: streams as a tar archive on standard output.

import { createHash } from "node:crypto";
import { visibleJson } from "../../../ops/log.js";
import { EXIT } from "../../command/verb.js";
import { failure, type Failure } from "../remote/failure.js";
import { Meter } from "../session/meter.js";
import { clientTask, streamCalled, type Session } from "../session/session.js";
import { describe } from "../streams/info.js";
import { listStreams, wantedBy, type ListedStream } from "../streams/listing.js";
import { StreamData } from "./stream-data.js";
import { formatHead } from "./stream-head.js";
import { survey, type Surveyed } from "./survey.js";
import { ARCHIVE_END, tarHeader, tarPadding } from "./tar.js";

/** The row of the table of verbs. */
export const EXPORT = clientTask({
  name: "export",
  summary: "write streams to standard output as a tar archive",
  words: [{ placeholder: "PATTERN", isRequired: true }],
  run: exportStreams,
});

async function exportStreams(session: Session): Promise<Failure | null> {
  if (session.out.isTerminal)
    return failure(EXIT.usage, "an archive is not for a terminal: write streamdir export … > FILE");
  const word = session.given.word(0);
  const found = await streamsOf(session, word);
  if ("kind" in found) return found;
  const meter = new Meter(session.surroundings.stderr);
  const ended = await new Exporter(session, meter, found, isPattern(word)).run();
  meter.clear();
  // Nobody reads the rest: that is no failure.
  return ended === "gone" ? null : ended;
}

/** The streams that a word asks for; a server without a list has the one of that name. */
async function streamsOf(session: Session, word: string): Promise<readonly ListedStream[] | Failure> {
  const streams: ListedStream[] = [];
  if (!isPattern(word)) {
    const stream = await describe(session, word);
    return "kind" in stream ? stream : [stream];
  }
  const failed = await listStreams(session, wantedBy(word), (page) => {
    streams.push(...page);
    return Promise.resolve("more");
  });
  if (failed !== null) return failed;
  return streams.length > 0
    ? sourcesFirst(streams)
    : failure(EXIT.missing, `no stream is like ${JSON.stringify(word)}`);
}

function isPattern(word: string): boolean {
  return /[*]|\/$/.test(word);
}

/** The streams in their order, but each behind the source that it was forked from. */
export function sourcesFirst(streams: readonly ListedStream[]): ListedStream[] {
  const byName = new Map(streams.map((stream) => [stream.name, stream]));
  const ordered = new Set<ListedStream>();
  for (const stream of streams) {
    const chain: ListedStream[] = [];
    // A chain of forks is no circle: a source is older than its forks. A name may be another stream's by now, though.
    for (
      let next: ListedStream | undefined = stream;
      next !== undefined && !ordered.has(next) && !chain.includes(next);
    )
      (chain.push(next), (next = next.forkedFrom === null ? undefined : byName.get(next.forkedFrom)));
    for (const each of chain.reverse()) ordered.add(each);
  }
  return [...ordered];
}

class Exporter {
  readonly #session: Session;
  readonly #meter: Meter;
  readonly #streams: readonly ListedStream[];
  readonly #isPattern: boolean;
  /** Bytes of what is exported, by the names of streams; forks ask for those of their sources. */
  readonly #whole = new Map<string, number>();
  #handled = 0;
  readonly #total: number | null;

  constructor(session: Session, meter: Meter, streams: readonly ListedStream[], isPattern: boolean) {
    this.#session = session;
    this.#isPattern = isPattern;
    this.#meter = meter;
    this.#streams = streams;
    const bytes = streams.map((stream) => stream.bytes);
    // Each byte is handled twice: read, and written.
    this.#total = bytes.includes(null) ? null : bytes.reduce<number>((sum, each) => sum + 2 * (each ?? 0), 0);
  }

  async run(): Promise<Failure | null | "gone"> {
    for (const [at, stream] of this.#streams.entries()) {
      const ended = await this.#export(stream, String(at + 1).padStart(8, "0"));
      if (ended !== null) return ended;
    }
    return (await this.#session.out.write(ARCHIVE_END)) === "gone" ? "gone" : null;
  }

  async #export(stream: ListedStream, number: string): Promise<Failure | null | "gone"> {
    const { name, forkedFrom } = stream;
    const sourceWhole = forkedFrom === null ? undefined : this.#whole.get(forkedFrom);
    const source = forkedFrom === null || sourceWhole === undefined ? null : { name: forkedFrom, whole: sourceWhole };
    const surveyed = await survey(this.#session, stream, source, (bytes) => this.#count(bytes));
    // One of many that was deleted, or has expired, since it was listed.
    if (surveyed.kind === "failure" && surveyed.status === EXIT.missing && this.#isPattern) {
      this.#session.say(`${surveyed.line}: it is not in the archive`);
      return null;
    }
    if (surveyed.kind === "failure") return surveyed;
    this.#whole.set(name, surveyed.whole);
    const { head } = surveyed;
    const text = Buffer.from(formatHead(head));
    const nowMs = this.#session.clock.nowMs();
    const opening = Buffer.concat([
      tarHeader({ name: `${number}.json`, size: text.length }, nowMs),
      text,
      tarPadding(text.length),
      tarHeader({ name: `${number}.data`, size: head.bytes }, nowMs),
    ]);
    if ((await this.#session.out.write(opening)) === "gone") return "gone";
    const written = await this.#writeData(surveyed);
    if (written !== null) return written;
    if ((await this.#session.out.write(tarPadding(head.bytes))) === "gone") return "gone";
    if (this.#session.asJson)
      this.#session.surroundings.stderr.write(
        `${visibleJson({ name, bytes: head.bytes, fork: head.fork, sha256: head.sha256 })}\n`,
      );
    return null;
  }

  async #writeData(surveyed: Surveyed): Promise<Failure | null | "gone"> {
    const { data } = surveyed;
    if (data === null) return this.#readAgain(surveyed);
    this.#count(data.length);
    return (await this.#session.out.write(data)) === "gone" ? "gone" : null;
  }

  /** The second reading: of the same bytes, as a byte never changes. */
  async #readAgain({ head, from, skip }: Surveyed): Promise<Failure | null | "gone"> {
    const { name, contentType, bytes, sha256 } = head;
    const data = new StreamData(this.#session, name, contentType, from);
    const hash = createHash("sha256");
    let [toSkip, left] = [skip, bytes];
    while (left > 0) {
      const part = await data.next();
      if (part?.kind === "failure") return cutBy(part);
      if (part === null) break;
      const own = part.bytes.subarray(toSkip, toSkip + left);
      toSkip = Math.max(0, toSkip - part.bytes.length);
      left -= own.length;
      hash.update(own);
      if ((await this.#session.out.write(own)) === "gone") return "gone";
      this.#count(part.bytes.length);
    }
    if (left === 0 && hash.digest("hex") === sha256) return null;
    return failure(EXIT.fault, `${streamCalled(name)} lost its beginning meanwhile: the archive is not whole`);
  }

  #count(bytes: number): void {
    this.#handled += bytes;
    this.#meter.show("export", this.#handled, this.#total);
  }
}

/** A failure in the middle of the archive; a signal needs no words. */
function cutBy(failed: Failure): Failure {
  return failed.line === "" ? failed : { ...failed, line: `${failed.line}: the archive is not whole` };
}
