// An idempotent producer: what it sends twice is stored once (docs/api.md, Append).

import type { Answer } from "../remote/http-client.js";
import { refusal, type Failure } from "../remote/failure.js";
import type { RemoteServer } from "../remote/remote-server.js";

/** Who sends, and the number of its next append. */
export interface ProducerPlace {
  readonly id: string;
  readonly epoch: number;
  readonly seq: number;
}

/** No producer has made so many appends: one with this number is refused. */
const UNREACHED_SEQ = Number.MAX_SAFE_INTEGER;
/** A message of JSON as well, and small. */
const ANY_BODY = Buffer.from("0");

/** One producer of one stream, with one append under way at a time. */
export class Producer {
  readonly #server: RemoteServer;
  readonly #name: string;
  readonly #contentType: string;
  #place: ProducerPlace;

  constructor(server: RemoteServer, name: string, contentType: string, place: ProducerPlace) {
    this.#server = server;
    this.#name = name;
    this.#contentType = contentType;
    this.#place = place;
  }

  /** The number of the next append, or of the one that has no answer. */
  get place(): ProducerPlace {
    return this.#place;
  }

  /** Sends what is refused, as no producer is so far on: the answer says which number is expected. */
  probe(): Promise<Answer | Failure> {
    return this.#ask(UNREACHED_SEQ, ANY_BODY, false);
  }

  /** Whether the next append is stored, by an attempt without an answer: then it counts. */
  async wasStored(about: string): Promise<boolean | Failure> {
    const { id, epoch, seq } = this.#place;
    const answer = await this.probe();
    if (answer.kind === "failure") return answer;
    const expected = answer.header("producer-expected-seq");
    const isStored = expected === null ? this.#wasStored(answer) : Number(expected) > seq;
    if (isStored) this.#place = { id, epoch, seq: seq + 1 };
    return expected === null && !isStored ? refusal(answer, about) : isStored;
  }

  /** Appends, and closes the stream where that is asked for; an empty body only closes. `about` names the stream. */
  async append(body: Buffer, closes: boolean, about: string): Promise<Answer | Failure> {
    const { id, epoch, seq } = this.#place;
    const answer = await this.#ask(seq, body, closes);
    if (answer.kind === "failure") return answer;
    if (answer.status !== 200 && answer.status !== 204 && !this.#wasStored(answer)) return refusal(answer, about);
    this.#place = { id, epoch, seq: seq + 1 };
    return answer;
  }

  #ask(seq: number, body: Buffer, closes: boolean): Promise<Answer | Failure> {
    const { id, epoch } = this.#place;
    return this.#server.askStream({
      method: "POST",
      target: this.#server.target(this.#name),
      headers: {
        ...(body.length === 0 ? {} : { "Content-Type": this.#contentType }),
        ...(closes ? { "Stream-Closed": "true" } : {}),
        "Producer-Id": id,
        "Producer-Epoch": String(epoch),
        "Producer-Seq": String(seq),
      },
      body,
    });
  }

  /** Whether a refusal says that the append was stored all the same, before somebody closed the stream. */
  #wasStored({ status, header }: Answer): boolean {
    if (status !== 409 || header("stream-closed") !== "true" || header("producer-seq") === null) return false;
    const { epoch, seq } = this.#place;
    return Number(header("producer-epoch")) === epoch && Number(header("producer-seq")) >= seq;
  }
}
