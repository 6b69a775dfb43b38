import { nextTurn } from "../../ops/turns.js";
import { isJsonContentType, sameMediaType, type StreamFormat } from "../../protocol/content-type.js";
import { frameJson, JsonFramer } from "../../protocol/json/json-frame.js";
import { formatTimestamp } from "../../protocol/timestamp.js";
import type { AppendRecord, Position, ProducerStamp, StreamConfig } from "../../storage/storage.js";
import type { AppendCommand, AppendHead, Body, CreateCommand } from "./command.js";
import { refuseContentType } from "./content-type-refusal.js";
import { refuse, type ProducerEcho, type Refused } from "./outcome.js";
import { judgeProducer, type ProducerMemory } from "./producers.js";

/** The state that a decision depends on. */
export interface DecisionState extends ProducerMemory {
  readonly tail: Position;
  readonly closed: boolean;
  readonly closedAtMs: number | null;
  readonly closedBy: ProducerStamp | null;
  readonly lastSeq: string | null;
}

/** Submit `record` to storage (`accept`), answer without a change (`unchanged`), or refuse. */
export type AppendDecision =
  | { readonly kind: "accept"; readonly record: AppendRecord }
  | { readonly kind: "unchanged"; readonly producer: ProducerEcho | null }
  | Refused;

/** A body as it is stored. */
export interface FramedBody {
  readonly kind: "framed";
  readonly bytes: Buffer;
  /** 1 in a stream of bytes, and where there are no bytes. */
  readonly messages: number;
}

const NOTHING: FramedBody = { kind: "framed", bytes: Buffer.alloc(0), messages: 1 };

/** How many bytes of a complete body are framed in one turn of the event loop. */
const FRAMED_AT_ONCE_BYTES = 256 * 1024;

const TAIL_MOVED = refuse("tail-moved");

/**
 * Answers an append or a close from the stream's state (docs/api.md, Append). The order of the checks is part of
 * the protocol: closed, content type, body, producer, `Stream-Seq`, `If-Match`. `expectedTail` is the position that
 * `If-Match` names; -1 for one that this stream never had, `null` without the header.
 */
export function decideAppend(
  state: DecisionState,
  format: StreamFormat,
  command: AppendCommand,
  nowMs: number,
  expectedTail: Position | null = null,
): AppendDecision {
  const hasData = holdsData(command.body);
  if (!hasData && !command.closes) return refuse("empty-body");
  if (state.closed) return decideOnClosed(state, command, hasData);
  const framed = hasData ? (refuseType(format, command) ?? frameBody(format, command.body, "append")) : NOTHING;
  if (framed.kind === "refused") return framed;
  if (command.producer !== null) {
    const verdict = judgeProducer(state, command.producer, nowMs);
    if (verdict.kind === "duplicate") return { kind: "unchanged", producer: verdict.mark };
    if (verdict.kind === "refused") return verdict;
  }
  if (command.seq !== null && state.lastSeq !== null && command.seq <= state.lastSeq) {
    return refuse("stream-seq-regression", {
      detail: `Stream-Seq must be greater than ${JSON.stringify(state.lastSeq)}.`,
    });
  }
  if (expectedTail !== null && expectedTail !== state.tail) return TAIL_MOVED;
  const { closes, producer, seq } = command;
  return {
    kind: "accept",
    record: { payload: framed.bytes, messages: framed.messages, closes, producer, seq, atMs: nowMs },
  };
}

/**
 * Why an append is refused whatever its data is, and whatever is appended before it; `null` when that is not certain
 * yet: the append that fills a gap of sequence numbers may be under way, and JSON is checked before the producer.
 */
export function refuseByHead(
  state: DecisionState,
  format: StreamFormat,
  head: AppendHead,
  nowMs: number,
  expectedTail: Position | null = null,
): Refused | null {
  if (state.closed) {
    const decision = decideOnClosed(state, head, true);
    return decision.kind === "refused" ? decision : null;
  }
  const refusal = refuseType(format, head);
  if (refusal !== null || format.isJson) return refusal;
  // A tail never comes back to where it was.
  if (expectedTail !== null && expectedTail < state.tail && head.seq === null) return TAIL_MOVED;
  if (head.producer === null) return null;
  const verdict = judgeProducer(state, head.producer, nowMs);
  return verdict.kind === "refused" && verdict.code === "stale-epoch" ? verdict : null;
}

/** Whether a body has any bytes. */
export function holdsData(body: Body): boolean {
  return !Buffer.isBuffer(body) || body.length > 0;
}

/** Anyone may close a stream again, and the append that closed it may be retried. */
function decideOnClosed(state: DecisionState, command: AppendHead, hasData: boolean): AppendDecision {
  const stamp = command.producer;
  const closedBy = state.closedBy;
  const isTheCloser =
    stamp !== null &&
    closedBy !== null &&
    stamp.id === closedBy.id &&
    stamp.epoch === closedBy.epoch &&
    stamp.seq === closedBy.seq;
  const mark = stamp === null ? undefined : state.markOf(stamp.id);
  if (hasData && !isTheCloser) return refuseClosed(state.closedAtMs, mark);
  return { kind: "unchanged", producer: stamp === null ? null : (mark ?? stamp) };
}

/** With the producer's mark: a retry learns whether its append was stored before somebody closed the stream. */
function refuseClosed(closedAtMs: number | null, mark: ProducerEcho | undefined): Refused {
  const echo = mark === undefined ? {} : { producerEpoch: mark.epoch, producerSeq: mark.seq };
  if (closedAtMs === null) return refuse("stream-closed", { closed: true, ...echo });
  const closedAt = formatTimestamp(closedAtMs);
  const detail = `It was closed at ${closedAt}.`;
  return refuse("stream-closed", { closed: true, detail, facts: { closedAt }, ...echo });
}

function refuseType(format: StreamFormat, { contentType }: AppendHead): Refused | null {
  if (contentType === null) return refuse("content-type-missing");
  if (sameMediaType(contentType, format.contentType)) return null;
  return refuseContentType("stream", format.contentType, contentType);
}

/** Frames a body as it is stored: JSON streams keep a message on each line, others keep the body unchanged. */
export function frameBody(
  { isJson, contentType }: StreamFormat,
  body: Body,
  purpose: "create" | "append",
): FramedBody | Refused {
  if (Buffer.isBuffer(body) && (body.length === 0 || !isJson)) return { kind: "framed", bytes: body, messages: 1 };
  if (!isJson) throw new TypeError(`a body was framed as JSON for a stream of ${contentType}`);
  const framed = Buffer.isBuffer(body) ? frameJson(body) : body;
  switch (framed.kind) {
    case "framed":
      return framed;
    case "empty-array":
      return purpose === "create" ? NOTHING : refuse("empty-json-array");
    case "invalid":
      return refuse("invalid-json", { detail: framed.detail, facts: { line: framed.line, column: framed.column } });
  }
}

/**
 * Frames the body of a fork, which inherits a content type that was not known while the body arrived. A large JSON body
 * is framed in several turns of the event loop, so that no other request waits for it.
 */
export async function framedInTurns({ contentType }: StreamConfig, command: CreateCommand): Promise<CreateCommand> {
  const { body } = command;
  if (!Buffer.isBuffer(body) || body.length <= FRAMED_AT_ONCE_BYTES || !isJsonContentType(contentType)) return command;
  const framer = new JsonFramer();
  for (let at = 0; at < body.length; at += FRAMED_AT_ONCE_BYTES) {
    framer.add(body.subarray(at, at + FRAMED_AT_ONCE_BYTES));
    await nextTurn();
  }
  return { ...command, body: await framer.end() };
}
