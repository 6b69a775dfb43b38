import { nextOf, pause, type Answer, type Fronts } from "./fronts.js";
import type { Ledger } from "./ledger.js";

/** A stream that was made, written to, and then closed or deleted, and what its clients were told of it. */
interface Lifecycle {
  readonly name: string;
  readonly end: "closed" | "deleted";
  readonly body: string;
}

const TEXT = { "Content-Type": "text/plain" };
const PRODUCER = { ...TEXT, "Producer-Id": "closer", "Producer-Epoch": "0" };

/** Makes streams and closes or deletes them, each step through the other front end; each is as it was answered. */
export class Lifecycles {
  readonly #fronts: Fronts;
  readonly #ledger: Ledger;
  readonly #done: Lifecycle[] = [];
  readonly #prefix: string;

  constructor(fronts: Fronts, ledger: Ledger, prefix: string) {
    this.#fronts = fronts;
    this.#ledger = ledger;
    this.#prefix = prefix;
  }

  get count(): number {
    return this.#done.length;
  }

  async run(): Promise<void> {
    for (let turn = 0; !this.#ledger.isOver; turn += 1) {
      const name = `${this.#prefix}${turn}`;
      await this.#one(turn, name);
      await pause(20);
    }
  }

  async #one(turn: number, name: string): Promise<void> {
    const body = `first ${turn}\nlast ${turn}\n`;
    const [first = "", last = ""] = body.split(/(?<=\n)/);
    const retriedBefore = this.#ledger.retried;
    await this.#step(turn, "PUT", name, TEXT, "", [201], [200]);
    // A creation whose client gave it up may come late, behind a deletion, as any two requests at a time may.
    const end = turn % 3 === 2 && this.#ledger.retried === retriedBefore ? "deleted" : "closed";
    await this.#step(turn + 1, "POST", name, { ...PRODUCER, "Producer-Seq": "0" }, first, [200], [204]);
    if (end === "closed") {
      const answer = await this.#step(turn, "POST", name, closing(1), last, [200], [204]);
      if (nextOf(answer) !== body.length) this.#violated(name, answer, "it ends elsewhere");
    } else {
      await this.#step(turn, "DELETE", name, {}, "", [204], [404]);
      await this.#step(turn + 1, "GET", name, {}, "", [404], []);
    }
    this.#done.push({ name, end, body });
  }

  /** `repeated` are answers of a step whose first try had none. */
  async #step(
    at: number,
    method: string,
    name: string,
    headers: Record<string, string>,
    body: string,
    expected: readonly number[],
    repeated: readonly number[],
  ): Promise<Answer> {
    let tries = 0;
    const answer = await this.#fronts.insist(at, method, name, { headers, body }, (why) => {
      tries += 1;
      this.#ledger.noteRetry(why);
    });
    const isRight = expected.includes(answer.status) || (tries > 0 && repeated.includes(answer.status));
    if (!isRight) this.#violated(name, answer, `${method} after ${tries} retries`);
    return answer;
  }

  #violated(name: string, { status, body }: Answer, what: string): void {
    this.#ledger.violated(`${name}: ${what}: ${status} ${body.toString()}`);
  }

  /** Looks at all of them, through both front ends. */
  async check(): Promise<void> {
    for (const [index, { name, end, body }] of this.#done.entries()) {
      const answer = await this.#fronts.insist(index, "GET", name);
      if (end === "deleted") {
        if (answer.status !== 404) this.#violated(name, answer, "it was deleted");
        continue;
      }
      if (answer.body.toString() !== body || answer.headers["stream-closed"] !== "true")
        this.#violated(name, answer, "it is not as it was closed");
      if (index % 10 > 1) continue;
      // Who closed it is told so again; nobody else can append.
      const again = await this.#fronts.insist(index, "POST", name, { headers: closing(1), body: "other" });
      if (again.status !== 204) this.#violated(name, again, "the closing append was repeated");
      const more = await this.#fronts.insist(index + 1, "POST", name, { headers: TEXT, body: "more" });
      if (more.status !== 409) this.#violated(name, more, "an append to what is closed");
    }
  }
}

function closing(seq: number): Record<string, string> {
  return { ...PRODUCER, "Producer-Seq": String(seq), "Stream-Closed": "true" };
}
