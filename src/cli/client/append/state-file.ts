// `append --state FILE`: keeps in a file how far an input is stored, so that a run that was killed can be run again.

import { createHash } from "node:crypto";
import { replaceFile, WatchedFile } from "../../../ops/watched-file.js";
import { quoted } from "../../command/value.js";
import { EXIT } from "../../command/verb.js";
import { failure, type Failure } from "../remote/failure.js";
import { freshId } from "../session/session.js";
import type { ProducerPlace } from "./producer.js";
import { formatMark, parseMark, type ResumeMark } from "./resume-mark.js";

const MAX_STATE_BYTES = 16 * 1024;
const STAGES = ["sending", "done", "closing", "closed"] as const;

/**
 * How far the run has come. `done`: all of the input is stored. `closing`: that, and the stream may be closed.
 * `closed`: it is.
 */
export type Stage = (typeof STAGES)[number];

/** What the file says. */
export interface AppendState {
  /** The address of the stream. */
  readonly stream: string;
  readonly mark: ResumeMark;
  readonly stage: Stage;
  /** SHA-256 of the input as far as it was sent, in hex: its first `at + length` bytes. */
  readonly sha256: string;
}

/** The text of the file: one JSON object in a line. */
export function encodeState({ mark, ...state }: AppendState): string {
  return `${JSON.stringify({ ...state, mark: formatMark(mark) })}\n`;
}

/** The state that a text is; `null` where it is none. */
export function decodeState(text: string): AppendState | null {
  const fields = fieldsOf(text);
  const [stream, sha256] = [fields?.get("stream"), fields?.get("sha256")];
  const mark = parseMark(String(fields?.get("mark")));
  const stage = STAGES.find((one) => one === fields?.get("stage"));
  if (typeof stream !== "string" || mark === null || stage === undefined) return null;
  return typeof sha256 === "string" && /^[0-9a-f]{64}$/.test(sha256) ? { stream, mark, stage, sha256 } : null;
}

function fieldsOf(text: string): Map<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? new Map<string, unknown>(Object.entries(value)) : null;
  } catch {
    return null; // another file, which the caller says
  }
}

/**
 * The file of one run. It names each piece before it is sent: whatever moment the run ends at, the next one sends that
 * piece again as it was, with its number, and the server tells whether it is stored.
 */
export class StateFile {
  readonly #path: string;
  /** Of the input as far as it is stored. */
  readonly #stored = createHash("sha256");
  #state: AppendState;

  private constructor(path: string, state: AppendState) {
    this.#path = path;
    this.#state = state;
  }

  /** The file at `path` of the stream at an address; it is made where it is not there. */
  static async open(path: string, stream: string): Promise<StateFile | Failure> {
    try {
      const text = await WatchedFile.read(path, MAX_STATE_BYTES).catch(nullIfMissing);
      if (text !== null) return picked(path, stream, text, (state) => new StateFile(path, state));
      const mark = { id: freshId(), epoch: 0, seq: 0, at: 0, length: 0 };
      const sha256 = createHash("sha256").digest("hex");
      const file = new StateFile(path, { stream, mark, stage: "sending", sha256 });
      await replaceFile(path, encodeState(file.#state));
      return file;
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      return failure(EXIT.usage, `--state: ${error.message}`);
    }
  }

  /** What a message calls it. */
  get name(): string {
    return quoted(this.#path);
  }

  /** Where this run begins, and then what was written last. */
  get mark(): ResumeMark {
    return this.#state.mark;
  }

  get stage(): Stage {
    return this.#state.stage;
  }

  /** Takes bytes of the input that are stored. */
  stored(source: Uint8Array): void {
    this.#stored.update(source);
  }

  /**
   * Whether the input is another than that of the run before. `source` is what follows what was stored; `null` at its
   * end. A stream that may be closed takes no more.
   */
  isOfAnotherInput(source: Buffer | null): boolean {
    const { mark, stage, sha256 } = this.#state;
    if (stage === "closing" && source !== null) return true;
    const sent = mark.length === 0 || source === null ? Buffer.alloc(0) : source;
    return this.#stored.copy().update(sent).digest("hex") !== sha256;
  }

  /** Before `source` is sent with this number, behind the `at` bytes that are stored; durable when it resolves. */
  sending(place: ProducerPlace, at: number, source: Buffer): Promise<void> {
    return this.#write("sending", { ...place, at, length: source.length }, this.#stored.copy().update(source));
  }

  /** That nothing more is under way, and the `at` bytes are stored; durable when it resolves. */
  settle(stage: Stage, place: ProducerPlace, at: number): Promise<void> {
    return this.#write(stage, { ...place, at, length: 0 }, this.#stored.copy());
  }

  async #write(stage: Stage, mark: ResumeMark, hash: ReturnType<typeof createHash>): Promise<void> {
    const { id, epoch, seq, at, length } = mark;
    this.#state = { ...this.#state, stage, mark: { id, epoch, seq, at, length }, sha256: hash.digest("hex") };
    await replaceFile(this.#path, encodeState(this.#state));
  }
}

function picked(
  path: string,
  stream: string,
  text: string,
  fileOf: (state: AppendState) => StateFile,
): StateFile | Failure {
  const state = decodeState(text);
  if (state === null) return failure(EXIT.usage, `--state ${quoted(path)} is not a file that append --state has made`);
  if (state.stream === stream) return fileOf(state);
  return failure(EXIT.usage, `--state ${quoted(path)} is of ${state.stream}, and not of ${stream}`);
}

function nullIfMissing(error: unknown): null {
  if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
  throw error;
}
