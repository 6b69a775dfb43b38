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

  /** Appends, and closes the stream where that is asked for; an empty body only closes. `about` names the stream. */
  async append(body: Buffer, closes: boolean, about: string): Promise<Answer | Failure> {
    const { id, epoch, seq } = this.#place;
    const answer = await this.#server.askStream({
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
    if (answer.kind === "failure") return answer;
    if (answer.status !== 200 && answer.status !== 204 && !this.#wasStored(answer)) return refusal(answer, about);
    this.#place = { id, epoch, seq: seq + 1 };
    return answer;
  }

  /** Whether a refusal says that the append was stored all the same, before somebody closed the stream. */
  #wasStored({ status, header }: Answer): boolean {
    if (status !== 409 || header("stream-closed") !== "true" || header("producer-seq") === null) return false;
    const { epoch, seq } = this.#place;
    return Number(header("producer-epoch")) === epoch && Number(header("producer-seq")) >= seq;
  }
}
