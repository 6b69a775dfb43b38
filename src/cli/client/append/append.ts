// The verb `append`: standard input to a stream, each byte of it once.

import { isJsonContentType, sameMediaType, sseEncodingOf } from "../../../protocol/content-type.js";
import { withFileLock } from "../../../ops/lock/file-lock.js";
import { EXIT } from "../../command/verb.js";
import { Meter } from "../session/meter.js";
import { failure, isRefused, stopped, type Failure } from "../remote/failure.js";
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
import { LIFETIME_FLAGS, lifetimeOf, type Lifetime } from "../streams/create.js";
import { InputPieces, type Cutting, type NextPiece, type Piece } from "./input-pieces.js";
import { Producer } from "./producer.js";
import { formatMark, parseMark, type ResumeMark } from "./resume-mark.js";
import { StateFile, type Stage } from "./state-file.js";

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
    ...LIFETIME_FLAGS.map((row) => ({ ...row, help: `with --create: ${row.help}` })),
    flag("close", "flag", "", "close the stream at the end of the input"),
    flag("piece", "bytes", "SIZE", "most bytes of an append, but for longer lines; 512KiB if left out"),
    flag("resume", "text", "MARK", "go on with the same input after a run that ended with this mark"),
    flag("state", "text", "FILE", "keep the mark in FILE; run again after a kill, it goes on"),
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

/** Two runs at a time with one state would take each other's numbers: the second is refused. */
async function append(session: Session): Promise<Failure | null> {
  const path = session.given.text("state");
  if (path === null) return appendInput(session);
  let isLocked = false;
  try {
    return await withFileLock(path, () => ((isLocked = true), appendInput(session)), 0);
  } catch (error) {
    if (isLocked || !(error instanceof Error)) throw error;
    return failure("syscall" in error ? EXIT.usage : EXIT.tryAgain, `--state: ${error.message}`);
  }
}

async function appendInput(session: Session): Promise<Failure | null> {
  const { given, surroundings } = session;
  const name = session.name(0);
  if (typeof name !== "string") return name;
  const unreadable = faultOfInput(surroundings.stdin);
  if (unreadable !== null) return unreadable;
  if (!given.has("create") && (given.has("ttl") || given.has("expires-at")))
    return failure(EXIT.usage, "--ttl and --expires-at are of a stream that is made: give --create, too");
  const lifetime = lifetimeOf(session);
  if (lifetime.kind === "failure") return lifetime;
  const begun = await beginningOf(session, name);
  if ("kind" in begun) return begun;
  const contentType = await contentTypeOf(session, name, { lifetime, isBegun: begun.mark.seq > 0 });
  if (typeof contentType !== "string") return contentType;
  const type = given.text("type");
  if (type !== null && !sameMediaType(type, contentType))
    return failure(EXIT.refused, `${streamCalled(name)} takes ${contentType}, not ${type}`);
  const cutting = cuttingOf(session, contentType);
  if (cutting === null)
    return failure(EXIT.refused, `${streamCalled(name)} takes ${contentType}, not JSON: see --lines`);
  if (cutting === "lines" && type === null && sseEncodingOf(contentType) === "base64")
    session.say(
      `${streamCalled(name)} takes ${contentType}: browsers get live lines as base64, which text/plain avoids`,
    );
  return send(session, { name, contentType, cutting, ...begun });
}

/** Where a run begins, and the file that keeps it; `null` for none. */
interface Beginning {
  readonly mark: ResumeMark;
  readonly state: StateFile | null;
}

async function beginningOf({ given, server, serverName }: Session, name: string): Promise<Beginning | Failure> {
  const [written, path] = [given.text("resume"), given.text("state")];
  if (written !== null && path !== null)
    return failure(EXIT.usage, "--resume and --state exclude each other: give one of them");
  if (path !== null) {
    const state = await StateFile.open(path, `${serverName}${server.target(name)}`);
    return "kind" in state ? state : { mark: state.mark, state };
  }
  const mark = written === null ? { id: freshId(), epoch: 0, seq: 0, at: 0, length: 0 } : parseMark(written);
  return mark === null ? failure(EXIT.usage, "--resume is not a mark that append has printed") : { mark, state: null };
}

function cuttingOf({ given }: Session, contentType: string): Cutting | null {
  if (isJsonContentType(contentType)) return "json";
  if (given.has("lines")) return "lines";
  return given.has("json") ? null : "bytes";
}

interface Making {
  readonly lifetime: Lifetime;
  /** Whether the stream has data of this input: then it is not made anew, for that would be lost. */
  readonly isBegun: boolean;
}

/** The stream's content type, once it is there. */
async function contentTypeOf(session: Session, name: string, making: Making): Promise<string | Failure> {
  const { given, server } = session;
  const implied = given.has("lines") ? "lines" : given.has("json") ? "json" : "bytes";
  const type = given.text("type");
  const target = server.target(name);
  const about = streamCalled(name);
  if (given.has("create") && !making.isBegun) {
    const headers = { "Content-Type": type ?? TYPES[implied], ...making.lifetime.headers };
    const made = await session.expect([200, 201, 409], about, { method: "PUT", target, headers });
    if (made.kind === "failure") return made;
    // 409: it is there with a lifetime or a content type of its own, which the next answer says.
    if (made.status !== 409) return made.header("content-type") ?? headers["Content-Type"];
    if (given.has("ttl") || given.has("expires-at")) session.say(`${about} is there already, and keeps its lifetime`);
  }
  const head = await session.expect([200], about, { method: "HEAD", target });
  if (head.kind === "answer") return head.header("content-type") ?? TYPES.bytes;
  // Who may append need not be allowed to read.
  if (head.status === EXIT.noRight && type !== null) return type;
  if (head.status === EXIT.noRight && given.has("create") && making.isBegun) return TYPES[implied];
  if (head.status !== EXIT.noRight) return head;
  return { ...head, line: `${head.line}; with one that may append and not read, give --type` };
}

interface Sending extends Beginning {
  readonly name: string;
  readonly contentType: string;
  readonly cutting: Cutting;
}

async function send(session: Session, sending: Sending): Promise<Failure | null> {
  const { name, contentType, cutting, mark, state } = sending;
  const { given, signal, surroundings } = session;
  const maxBytes = given.number("piece") ?? DEFAULT_PIECE_BYTES;
  const onSkipped = (bytes: Uint8Array): void => state?.stored(bytes);
  const options = { cutting, maxBytes, skip: mark.at, onSkipped, firstBytes: mark.length };
  const pieces = new InputPieces(surroundings.stdin, options);
  signal.addEventListener("abort", () => pieces.stop(), { once: true });
  const producer = new Producer(session.server, name, contentType, mark);
  const progress: Progress = { bytes: mark.at, lines: 0, appends: 0, unanswered: mark.length, nextOffset: null };
  const meter = new Meter(surroundings.stderr);
  const parts = { pieces, producer, progress, meter, name, state };
  const failed = (await sendAll(session, parts)) ?? (await end(session, parts));
  pieces.stop();
  meter.clear();
  if (failed !== null) return { ...failed, line: withMark(failed, progress, parts) };
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
  readonly state: StateFile | null;
}

async function sendAll(session: Session, parts: SendingParts): Promise<Failure | null> {
  const { pieces, progress, meter, name, state } = parts;
  for (let isFirst = true; ; isFirst = false) {
    const piece = await nextPiece(pieces);
    if (session.signal.aborted) return stopped(session.signal);
    if (piece?.kind === "failure") return piece;
    if (piece?.kind === "short")
      return failure(EXIT.refused, "this is not the same input: it ends before what was sent of that");
    if (piece?.kind === "fault") return failure(EXIT.refused, `line ${piece.line} of the input: ${piece.words}`);
    if (isFirst && state?.isOfAnotherInput(piece?.source ?? null) === true) return anotherInput(state);
    if (piece === null) return null;
    if (piece.body.length > 0) {
      const failed = await sendPiece(session, parts, piece);
      if (failed === "halved") continue;
      if (failed !== null) return failed;
    }
    state?.stored(piece.source);
    progress.unanswered = 0;
    progress.bytes += piece.source.length;
    progress.lines += piece.lines;
    meter.show(name, progress.bytes);
  }
}

/** `halved`: the server takes less at a time, and the pieces that follow are smaller. */
async function sendPiece(session: Session, parts: SendingParts, piece: Piece): Promise<Failure | "halved" | null> {
  const { pieces, producer, progress, name, state } = parts;
  const { repeats } = session.server;
  const unkept = await kept(state?.sending(producer.place, progress.bytes, piece.source));
  if (unkept !== null) return unkept;
  const answer = await producer.append(piece.body, false, streamCalled(name));
  if (answer.kind === "answer") {
    progress.appends += 1;
    progress.nextOffset = nextOffsetOf(answer);
    return null;
  }
  // A refusal says of its own request alone that nothing is stored, and not of one before it.
  let isNotStored = isRefused(answer) && progress.unanswered === 0 && session.server.repeats === repeats;
  if (!isNotStored && answer.code === "body-too-large") {
    // Larger than it takes now, and perhaps not when it was sent first.
    const wasStored = await producer.wasStored(streamCalled(name));
    if (wasStored === true) {
      progress.appends += 1;
      return null;
    }
    isNotStored = wasStored === false;
  }
  progress.unanswered = isNotStored ? 0 : piece.source.length;
  if (isNotStored && answer.code === "body-too-large" && pieces.halve()) return "halved";
  // What is put right may be cut otherwise.
  if (isNotStored) return (await kept(state?.settle("sending", producer.place, progress.bytes))) ?? answer;
  return answer;
}

/** After the last piece: closes the stream where that is asked for. */
async function end(session: Session, { producer, progress, name, state }: SendingParts): Promise<Failure | null> {
  const closes = session.given.has("close") && state?.stage !== "closed";
  const settle = (stage: Stage): Promise<Failure | null> =>
    kept(state?.stage === "closed" ? undefined : state?.settle(stage, producer.place, progress.bytes));
  // Only a run that closes learns whether the one before has closed it.
  if (!closes) return state?.stage === "closing" ? null : settle("done");
  const { repeats } = session.server;
  const wasClosing = state?.stage === "closing";
  const unkept = await settle("closing");
  if (unkept !== null) return unkept;
  const closed = await producer.append(Buffer.alloc(0), true, streamCalled(name));
  if (closed.kind === "failure") {
    const isNotClosed = isRefused(closed) && !wasClosing && session.server.repeats === repeats;
    return isNotClosed ? ((await settle("sending")) ?? closed) : closed;
  }
  progress.nextOffset = nextOffsetOf(closed);
  return settle("closed");
}

/** Why the state can't be kept; `null` once it is, or where nothing is to be kept. */
async function kept(writing: Promise<void> | undefined): Promise<Failure | null> {
  try {
    await writing;
    return null;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return failure(EXIT.fault, `--state: ${error.message}`);
  }
}

function anotherInput({ name, mark }: StateFile): Failure {
  return failure(
    EXIT.refused,
    `this is not the same input: it differs from the one that ${name} has a mark of in its first ` +
      `${mark.at + mark.length} bytes, or goes on after its end; another input needs another --state`,
  );
}

async function nextPiece(pieces: InputPieces): Promise<NextPiece | Failure> {
  try {
    return await pieces.next();
  } catch (error) {
    if (!(error instanceof Error && "syscall" in error)) throw error;
    return failure(EXIT.fault, `the input can't be read: ${error.message}`);
  }
}

/** What failed, how much is stored, and how to go on. */
function withMark(failed: Failure, { bytes, unanswered }: Progress, { producer, state }: SendingParts): string {
  if (failed.code === "producer-gap") return withLoss(failed, bytes);
  const how =
    state === null
      ? `resume ${formatMark({ ...producer.place, at: bytes, length: unanswered })}`
      : `state ${state.name}`;
  const why = failed.line === "" ? "stopped" : failed.line;
  // No run goes on with a stream that is closed.
  if (failed.code === "stream-closed") return `${why}; ${bytes} bytes of the input are stored`;
  const first = isRefused(failed) ? "once that is put right, " : "";
  return `${why}; ${bytes} bytes of the input are stored: ${first}go on with the same input and --${how}`;
}

/** This producer leaves out no number: the server has forgotten one, and with it perhaps what it stored. */
function withLoss({ line }: Failure, bytes: number): string {
  return (
    `${line}; the server acknowledged ${bytes} bytes of the input, and no longer knows of all of them: was it ` +
    "restored from an older backup, or the stream made anew? See where the stream ends (streamdir tail), and append " +
    "what follows in the input without --resume, or with a new --state"
  );
}
