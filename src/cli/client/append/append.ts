// The verb `append`: standard input to a stream, each byte of it once.

import { isJsonContentType, sameMediaType } from "../../../protocol/content-type.js";
import { EXIT } from "../../command/verb.js";
import { Meter } from "../session/meter.js";
import { failure, isRefused, stopped, type Failure } from "../remote/failure.js";
import type { Answer } from "../remote/http-client.js";
import {
  clientTask,
  faultOfInput,
  flag,
  freshId,
  NAME,
  nextOffsetOf,
  streamCalled,
  type Errand,
  type Session,
} from "../session/session.js";
import { InputPieces, type Cutting, type NextPiece } from "./input-pieces.js";
import { Producer } from "./producer.js";
import { formatMark, parseMark, type ResumeMark } from "./resume-mark.js";

/** Below what the servers of a cluster take by default (docs/cluster.md), also as JSON. */
const DEFAULT_PIECE_BYTES = 512 * 1024;
const JSON_TYPE = "application/json";
const TYPES: Readonly<Record<Cutting, string>> = {
  bytes: "application/octet-stream",
  lines: "text/plain",
  json: JSON_TYPE,
};

const ERRAND: Errand = {
  name: "append",
  summary: "append standard input to a stream, as a producer: nothing is stored twice",
  words: [NAME],
  readsInput: true,
  flags: [
    flag("lines", "flag", "", "each append ends at the end of a line"),
    flag("create", "flag", "", "make the stream if it is not there"),
    flag("type", "text", "TYPE", "its content type; --json and --lines imply one"),
    flag("close", "flag", "", "close the stream at the end of the input"),
    flag("piece", "bytes", "SIZE", "most bytes of an append, but for longer lines; 512KiB if left out"),
    flag("resume", "text", "MARK", "go on with the same input after a run that ended with this mark"),
  ],
  run: append,
};

/** The row of the table of verbs. In a JSON stream the input is one JSON value a line. */
export const APPEND = clientTask(ERRAND);

/** How far the input is stored. */
interface Progress {
  bytes: number;
  lines: number;
  appends: number;
  /** Bytes of the next piece, if it was sent, by this run or the one before, and may be stored; else 0. */
  unanswered: number;
  nextOffset: string | null;
}

async function append(session: Session): Promise<Failure | null> {
  const { given, surroundings } = session;
  const name = session.name(0);
  if (typeof name !== "string") return name;
  const unreadable = faultOfInput(surroundings.stdin);
  if (unreadable !== null) return unreadable;
  const written = given.text("resume");
  const mark = written === null ? { id: freshId(), epoch: 0, seq: 0, at: 0, length: 0 } : parseMark(written);
  if (mark === null) return failure(EXIT.usage, "--resume is not a mark that append has printed");
  const contentType = await contentTypeOf(session, name);
  if (typeof contentType !== "string") return contentType;
  const type = given.text("type");
  if (type !== null && !sameMediaType(type, contentType))
    return failure(EXIT.refused, `${streamCalled(name)} takes ${contentType}, not ${type}`);
  const cutting = cuttingOf(session, contentType);
  if (cutting === null)
    return failure(EXIT.refused, `${streamCalled(name)} takes ${contentType}, not JSON: see --lines`);
  return send(session, { name, contentType, cutting, mark });
}

function cuttingOf({ given }: Session, contentType: string): Cutting | null {
  if (isJsonContentType(contentType)) return "json";
  if (given.has("lines")) return "lines";
  return given.has("json") ? null : "bytes";
}

/** The stream's content type, once it is there. */
async function contentTypeOf(session: Session, name: string): Promise<string | Failure> {
  const { given, server } = session;
  const implied = given.has("lines") ? "lines" : given.has("json") ? "json" : "bytes";
  const type = given.text("type");
  const target = server.target(name);
  const about = streamCalled(name);
  if (given.has("create")) {
    const headers = { "Content-Type": type ?? TYPES[implied] };
    const made = await session.expect([200, 201, 409], about, { method: "PUT", target, headers });
    if (made.kind === "failure") return made;
    // 409: it is there with a lifetime or a content type of its own, which the next answer says.
    if (made.status !== 409) return made.header("content-type") ?? headers["Content-Type"];
  }
  const head = await session.expect([200], about, { method: "HEAD", target });
  if (head.kind === "answer") return head.header("content-type") ?? TYPES.bytes;
  // Who may append need not be allowed to read.
  if (head.status === EXIT.noRight && type !== null) return type;
  if (head.status !== EXIT.noRight) return head;
  return { ...head, line: `${head.line}; with one that may append and not read, give --type` };
}

interface Sending {
  readonly name: string;
  readonly contentType: string;
  readonly cutting: Cutting;
  readonly mark: ResumeMark;
}

async function send(session: Session, { name, contentType, cutting, mark }: Sending): Promise<Failure | null> {
  const { given, signal, surroundings } = session;
  const maxBytes = given.number("piece") ?? DEFAULT_PIECE_BYTES;
  const pieces = new InputPieces(surroundings.stdin, { cutting, maxBytes, skip: mark.at, firstBytes: mark.length });
  signal.addEventListener("abort", () => pieces.stop(), { once: true });
  const producer = new Producer(session.server, name, contentType, mark);
  const progress: Progress = { bytes: mark.at, lines: 0, appends: 0, unanswered: mark.length, nextOffset: null };
  const meter = new Meter(surroundings.stderr);
  const failed = await sendAll(session, { pieces, producer, progress, meter, name });
  pieces.stop();
  meter.clear();
  if (failed !== null) return { ...failed, line: withMark(failed, progress, producer) };
  const { bytes, lines, appends, nextOffset } = progress;
  const facts = { name, bytes, lines, appends, nextOffset, closed: given.has("close") };
  return session.conclude(`${bytes} bytes in ${appends} appends are stored`, facts);
}

interface SendingParts {
  readonly pieces: InputPieces;
  readonly producer: Producer;
  readonly progress: Progress;
  readonly meter: Meter;
  readonly name: string;
}

async function sendAll(session: Session, parts: SendingParts): Promise<Failure | null> {
  const { pieces, producer, progress, meter, name } = parts;
  const about = streamCalled(name);
  for (;;) {
    const piece = await nextPiece(pieces);
    if (session.signal.aborted) return stopped(session.signal);
    if (piece === null) break;
    if (piece.kind === "failure") return piece;
    if (piece.kind === "short")
      return failure(EXIT.refused, "this is not the same input: it ends before what was sent of that");
    if (piece.kind === "fault") return failure(EXIT.refused, `line ${piece.line} of the input: ${piece.words}`);
    if (piece.body.length > 0) {
      const { repeats } = session.server;
      const answer = await producer.append(piece.body, false, about);
      if (answer.kind === "failure") {
        // A refusal says of its own request alone that nothing is stored, and not of one before it.
        const isNotStored = isRefused(answer) && progress.unanswered === 0 && session.server.repeats === repeats;
        progress.unanswered = isNotStored ? 0 : piece.bytes;
        if (isNotStored && answer.code === "body-too-large" && pieces.halve()) continue;
        return answer;
      }
      count(progress, answer);
    }
    progress.unanswered = 0;
    progress.bytes += piece.bytes;
    progress.lines += piece.lines;
    meter.show(name, progress.bytes);
  }
  if (!session.given.has("close")) return null;
  const closed = await producer.append(Buffer.alloc(0), true, about);
  if (closed.kind === "failure") return closed;
  progress.nextOffset = nextOffsetOf(closed);
  return null;
}

async function nextPiece(pieces: InputPieces): Promise<NextPiece | Failure> {
  try {
    return await pieces.next();
  } catch (error) {
    if (!(error instanceof Error && "syscall" in error)) throw error;
    return failure(EXIT.fault, `the input can't be read: ${error.message}`);
  }
}

function count(progress: Progress, answer: Answer): void {
  progress.appends += 1;
  progress.nextOffset = nextOffsetOf(answer);
}

/** What failed, how much is stored, and how to go on. */
function withMark(failed: Failure, { bytes, unanswered }: Progress, { place }: Producer): string {
  if (failed.code === "producer-gap") return withLoss(failed, bytes);
  const mark = formatMark({ ...place, at: bytes, length: unanswered });
  const why = failed.line === "" ? "stopped" : failed.line;
  // No run goes on with a stream that is closed.
  if (failed.code === "stream-closed") return `${why}; ${bytes} bytes of the input are stored`;
  const first = isRefused(failed) ? "once that is put right, " : "";
  return `${why}; ${bytes} bytes of the input are stored: ${first}go on with the same input and --resume ${mark}`;
}

/** This producer leaves out no number: the server has forgotten one, and with it perhaps what it stored. */
function withLoss({ line }: Failure, bytes: number): string {
  return (
    `${line}; the server acknowledged ${bytes} bytes of the input, and no longer knows of all of them: was it ` +
    "restored from an older backup, or the stream made anew? See where the stream ends (streamdir tail), and append " +
    "what follows in the input without --resume"
  );
}
