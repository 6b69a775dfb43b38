import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import type { TestScope } from "../helpers/process.js";
import { parseEventStream, type ParsedEvent } from "../protocol/event-stream-parser.js";

/** An SSE answer as it comes. */
export class EventFollower {
  readonly headers: http.IncomingHttpHeaders;
  readonly #response: http.IncomingMessage;
  #text = "";
  #look: () => void = () => undefined;

  private constructor(response: http.IncomingMessage) {
    this.headers = response.headers;
    this.#response = response;
    response.setEncoding("latin1").on("data", (text: string) => {
      this.#text += text;
      this.#look();
    });
    // A proxy that cuts the connection; whoever waits is told.
    response.on("error", () => this.#look());
    response.on("close", () => this.#look());
  }

  /** Begins to read; gone when the test is over. */
  static async start(scope: TestScope, url: string): Promise<EventFollower> {
    const request = http.get(url, { agent: false });
    scope.after(async () => void request.destroy());
    const [response] = (await once(request, "response")) as [http.IncomingMessage]; // the event's argument
    assert.equal(response.statusCode, 200);
    return new EventFollower(response);
  }

  /** Whether the answer has ended. */
  get isOver(): boolean {
    return this.#response.destroyed;
  }

  /** How many comments came. */
  get comments(): number {
    return this.#text.split("\n").filter((line) => line.startsWith(":")).length;
  }

  /** The data of all events that came. */
  get data(): string {
    return this.#events
      .filter(({ type }) => type === "data")
      .map(({ data }) => data)
      .join("|");
  }

  get #events(): ParsedEvent[] {
    return parseEventStream(this.#text);
  }

  /** Resolves when `isThere` holds; rejects when the answer ends before. */
  async until(isThere: (follower: this) => boolean): Promise<void> {
    while (!isThere(this)) {
      assert.ok(!this.isOver, `the answer ended; it had said: ${this.#text}`);
      await new Promise<void>((resolve) => (this.#look = resolve));
    }
  }

  /** What the last control event says, once the answer has ended. */
  async end(): Promise<unknown> {
    await this.until(({ isOver }) => isOver);
    return JSON.parse(this.#events.at(-1)?.data ?? "null");
  }
}
