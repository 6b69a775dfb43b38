import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { parseEventStream } from "../protocol/event-stream-parser.js";
import { parseMessages } from "./honest-producer.js";
import type { RealServer } from "./real-server.js";

/** Follows a JSON stream by long-polls, across restarts, until it is closed; resolves to what it saw. */
export async function watchByLongPoll(server: RealServer, stream: string): Promise<string[]> {
  const seen: string[] = [];
  for (let offset = "-1"; ;) {
    const { status, body, headers } = await server.insist("GET", `${stream}?live=long-poll&offset=${offset}`);
    if (status === 200) seen.push(...parseMessages(body));
    else assert.equal(status, 204, body);
    offset = String(headers["stream-next-offset"]);
    if (headers["stream-closed"] === "true") return seen;
  }
}

/** The same by Server-Sent Events. What came without the control event behind it is asked for again, and must be the same. */
export async function watchByEvents(server: RealServer, stream: string): Promise<string[]> {
  const seen: string[] = [];
  let offset = "-1";
  /** Messages that came behind `offset`. */
  let ahead: string[] = [];
  for (;;) {
    const life = server.lives;
    const before = ahead;
    ahead = [];
    try {
      for await (const { type, data } of eventsOf(`${server.url}${stream}?live=sse&offset=${offset}`)) {
        if (type === "data") {
          ahead.push(...parseMessages(data));
          continue;
        }
        for (const [index, message] of before.splice(0, ahead.length).entries())
          assert.equal(ahead[index], message, "nothing is taken back");
        seen.push(...ahead.splice(0));
        const control = JSON.parse(data) as { streamNextOffset: string; streamClosed?: boolean }; // what every control event has
        offset = control.streamNextOffset;
        if (control.streamClosed === true) return seen;
      }
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      ahead = ahead.length > before.length ? ahead : before;
      await server.nextLife(life);
    }
  }
}

/** The events of one connection; throws when it breaks. */
async function* eventsOf(url: string): AsyncGenerator<{ type: string; data: string }> {
  const request = http.get(url, { agent: false });
  const [response] = (await once(request, "response")) as [http.IncomingMessage]; // the event's argument
  assert.equal(response.statusCode, 200);
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) {
    text += String(chunk);
    const end = text.lastIndexOf("\n\n") + 2;
    if (end < 2) continue;
    yield* parseEventStream(text.slice(0, end));
    text = text.slice(end);
  }
}
