import { DEFAULT_CONTENT_TYPE, sameMediaType, type StreamFormat } from "../protocol/content-type.js";
import { frameJson } from "../protocol/json-frame.js";
import type { AppendRecord, Position, ProducerMark, ProducerStamp, StreamConfig } from "../storage/storage.js";
import type { AppendCommand, CreateCommand } from "./command.js";
import { matchesFork } from "./fork.js";
import { refuse, type ProducerEcho, type Refused } from "./outcome.js";
import { judgeProducer, type ProducerMemory } from "./producers.js";

/** The state that a decision looks at. */
export interface DecisionState extends ProducerMemory {
  readonly tail: Position;
  readonly closed: boolean;
  readonly closedBy: ProducerStamp | null;
  readonly lastSeq: string | null;
}

/** Hand `record` to storage; or answer without a change (`settled`), or refuse. */
export type AppendDecision =
  | { readonly kind: "accept"; readonly record: AppendRecord }
  | { readonly kind: "settled"; readonly producer: ProducerEcho | null }
  | Refused;

/** A body as it is stored. */
export interface FramedBody {
  readonly kind: "framed";
  readonly bytes: Buffer;
  /** 1 in a stream of bytes, and where there is nothing. */
  readonly messages: number;
}

const NOTHING: FramedBody = { kind: "framed", bytes: Buffer.alloc(0), messages: 1 };

/**
 * Answers an append or a close from the stream's state (specification 4.2, 4.3). The order of the checks is part of
 * the protocol: closed, content type, body, producer, `Stream-Seq`.
 */
export function decideAppend(state: DecisionState, format: StreamFormat, command: AppendCommand, nowMs: number): AppendDecision {
  const hasData = command.body.length > 0;
  if (!hasData && !command.closes) return refuse("empty-body");
  if (state.closed) return decideOnClosed(state, command, hasData);
  const framed = hasData ? acceptBody(format, command) : NOTHING;
  if (framed.kind === "refused") return framed;
  if (command.producer !== null) {
    const verdict = judgeProducer(state, command.producer, nowMs);
    if (verdict.kind === "duplicate") return { kind: "settled", producer: verdict.mark };
    if (verdict.kind === "refused") return verdict;
  }
  if (command.seq !== null && state.lastSeq !== null && command.seq <= state.lastSeq) {
    return refuse("stream-seq-regression", { detail: `Stream-Seq must be greater than ${JSON.stringify(state.lastSeq)}.` });
  }
  const { closes, producer, seq } = command;
  return { kind: "accept", record: { payload: framed.bytes, messages: framed.messages, closes, producer, seq, atMs: nowMs } };
}

/** Closing again is fine, whoever asks; so is the retry of the very append that closed the stream. */
function decideOnClosed(state: DecisionState, command: AppendCommand, hasData: boolean): AppendDecision {
  const stamp = command.producer;
  const closedBy = state.closedBy;
  const isTheCloser =
    stamp !== null && closedBy !== null && stamp.id === closedBy.id && stamp.epoch === closedBy.epoch && stamp.seq === closedBy.seq;
  if (hasData && !isTheCloser) return refuse("stream-closed", { closed: true });
  return { kind: "settled", producer: stamp === null ? null : echoOf(state.markOf(stamp.id), stamp) };
}

function echoOf(mark: ProducerMark | undefined, stamp: ProducerStamp): ProducerEcho {
  return mark ?? stamp;
}

/** The bytes to store for a body, or why it can't be taken. */
function acceptBody(format: StreamFormat, command: AppendCommand): FramedBody | Refused {
  if (command.contentType === null) return refuse("content-type-missing");
  if (!sameMediaType(command.contentType, format.contentType)) {
    return refuse("content-type-mismatch", { detail: `The stream's content type is ${format.contentType}.` });
  }
  return frameBody(format, command.body, "append");
}

/** The bytes as they are stored: JSON streams keep a message on each line, others keep the body as it is. */
export function frameBody({ isJson }: StreamFormat, body: Buffer, purpose: "create" | "append"): FramedBody | Refused {
  if (body.length === 0 || !isJson) return { kind: "framed", bytes: body, messages: 1 };
  const framed = frameJson(body);
  switch (framed.kind) {
    case "framed":
      return framed;
    case "empty-array":
      return purpose === "create" ? NOTHING : refuse("empty-json-array");
    case "invalid":
      return refuse("invalid-json", { detail: framed.detail });
  }
}

/** Whether a PUT asks for the stream that is already there (specification 4.1). */
export function matchesExisting(config: StreamConfig, closed: boolean, command: CreateCommand): boolean {
  const { fork } = command;
  return closed === command.closed && (fork === null ? matchesConfig(config, command) : matchesFork(config, command, fork));
}

function matchesConfig(config: StreamConfig, { contentType, ttlSeconds, expiresAtMs }: CreateCommand): boolean {
  return (
    sameMediaType(config.contentType, contentType ?? DEFAULT_CONTENT_TYPE) &&
    config.ttlSeconds === ttlSeconds &&
    config.expiresAtMs === expiresAtMs
  );
}
