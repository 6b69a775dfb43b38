// The verb `import`: makes the streams of an archive, each byte once.

import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { oneLine } from "../../../ops/log.js";
import { EXIT } from "../../command/verb.js";
import { failure, type Failure } from "../remote/failure.js";
import { Meter } from "../session/meter.js";
import { clientTask, faultOfInput, flag, type Session } from "../session/session.js";
import { ArchiveReader } from "./archive-reader.js";
import type { StreamHead } from "./stream-head.js";
import { StreamImport, type ImportOutcome, type PieceOutcome } from "./stream-import.js";

/** The row of the table of verbs. */
export const IMPORT = clientTask({
  name: "import",
  summary: "make the streams of an archive on standard input",
  readsInput: true,
  flags: [flag("dry-run", "flag", "", "compare all checksums, say what would happen, and change nothing")],
  run: importStreams,
});

async function importStreams(session: Session): Promise<Failure | null> {
  const { stdin } = session.surroundings;
  const unreadable = faultOfInput(stdin);
  if (unreadable !== null) return unreadable;
  const meter = new Meter(session.surroundings.stderr);
  session.signal.addEventListener("abort", () => stdin.destroy?.(), { once: true });
  try {
    return await new Importer(session, meter).run();
  } finally {
    meter.clear();
    stdin.destroy?.();
  }
}

class Importer {
  readonly #session: Session;
  readonly #meter: Meter;
  readonly #reader: ArchiveReader;
  readonly #isDryRun: boolean;
  /** Names that a dry run would have made. */
  readonly #made = new Set<string>();
  #bytes = 0;
  #seen = 0;
  /** The statuses of those that were refused. */
  readonly #refused: number[] = [];

  constructor(session: Session, meter: Meter) {
    this.#session = session;
    this.#meter = meter;
    this.#reader = new ArchiveReader(session.surroundings.stdin);
    this.#isDryRun = session.given.has("dry-run");
  }

  async run(): Promise<Failure | null> {
    if (this.#isDryRun) this.#session.say("a dry run: nothing is changed");
    for (;;) {
      const found = await this.#reader.next();
      if (found === null) break;
      if (found.kind === "fault") return failure(EXIT.refused, found.words);
      const outcome = await this.#import(found.head);
      if (outcome.kind === "failure") return outcome;
      this.#seen += 1;
      if (outcome.what === "refused") this.#refused.push(outcome.status);
      await this.#report(found.head, outcome);
    }
    if (this.#refused.length === 0) return null;
    const isForbidden = this.#refused.every((status) => status === EXIT.noRight);
    const status = isForbidden ? EXIT.noRight : EXIT.refused;
    return failure(status, `not imported: ${this.#refused.length} of ${this.#seen} streams`);
  }

  async #import(head: StreamHead): Promise<ImportOutcome | Failure> {
    const stream = new StreamImport(this.#session, head, this.#isDryRun, this.#made);
    const begun = await stream.begin();
    if (begun !== null && begun.kind === "failure") return begun;
    const hash = createHash("sha256");
    let taken = 0;
    for (const [at, [bytes, crc]] of head.pieces.entries()) {
      const piece = await this.#reader.take(bytes);
      if (piece === null) return failure(EXIT.refused, "the archive is cut off");
      if (crc32(piece) !== crc) return this.#damaged(head, taken);
      hash.update(piece);
      taken += bytes;
      const put: PieceOutcome = await stream.put(at, piece);
      if (put !== null) return put;
      this.#bytes += bytes;
      this.#meter.show("import", this.#bytes);
    }
    return hash.digest("hex") === head.sha256 ? stream.end() : this.#damaged(head, taken);
  }

  /** Nothing that is damaged was stored, and nothing after it will be. */
  #damaged({ name, bytes }: StreamHead, taken: number): Failure {
    const stored = this.#isDryRun ? "" : `; ${taken} of its ${bytes} bytes are stored`;
    return failure(EXIT.refused, `the archive is damaged in the data of ${JSON.stringify(name)}${stored}`);
  }

  async #report({ name, bytes }: StreamHead, { what, why }: ImportOutcome): Promise<void> {
    this.#meter.clear();
    const { out, asJson } = this.#session;
    if (asJson) await out.writeJson({ name, bytes, what, why });
    else await out.write(`${what.padEnd(9)} ${out.shown(name)}${why === null ? "" : `: ${oneLine(why)}`}\n`);
  }
}
