// An EventStore for the MCP TypeScript SDK, whose clients get what they missed also after a restart of streamdir:
//
//   const sessionId = randomUUID();
//   const eventStore = new StreamdirEventStore(`http://127.0.0.1:4437/v1/stream/mcp/${sessionId}/`);
//   new StreamableHTTPServerTransport({ sessionIdGenerator: () => sessionId, eventStore });
//
// One for each session: the SDK's name for the stream of a GET is the same in all of them.
//
// The SDK (1.x) keeps a session itself in memory: it ends with the MCP server, and its client has to begin another. What
// was stored is still there. A GET with `Last-Event-ID` gets it from a transport for this one request, whose store is that
// of the request's `Mcp-Session-Id` (let it be a UUID: it becomes part of a URL):
//
//   new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, eventStore });

/** A token for a server with --auth; without, there is none. */
const AUTH = process.env.STREAMDIR_TOKEN ? { Authorization: `Bearer ${process.env.STREAMDIR_TOKEN}` } : {};
const HEADERS = { ...AUTH, "Content-Type": "application/json" };

/** An id is a place, and how many messages behind it: `<offset>.<messages>.<stream>`. */
const EVENT_ID = /^(\d{16}_\d{16})\.(\d+)\.(.+)$/;

export class StreamdirEventStore {
  #session;
  #ttlSeconds;

  /** `session` is what a stream's name is appended to; what nobody has used for `ttlSeconds` is removed. */
  constructor(session, { ttlSeconds = 3600 } = {}) {
    this.#session = session;
    this.#ttlSeconds = ttlSeconds;
  }

  /** Stores a JSON-RPC message; gives the event's id, from which a client goes on behind it. */
  async storeEvent(streamId, message) {
    const url = this.#urlOf(streamId);
    // An array would be taken for several messages.
    const body = JSON.stringify([message]);
    let answer = await fetch(url, { method: "POST", headers: HEADERS, body });
    if (answer.status === 404) {
      await accepted(await fetch(url, { method: "PUT", headers: { ...HEADERS, "Stream-TTL": String(this.#ttlSeconds) } }));
      answer = await fetch(url, { method: "POST", headers: HEADERS, body });
    }
    return `${offsetOf(await accepted(answer))}.0.${streamId}`;
  }

  /** The stream of an event; `undefined` for what is no id of ours. */
  async getStreamIdForEventId(eventId) {
    return EVENT_ID.exec(eventId)?.[3];
  }

  /** Sends all that was stored behind an event, in order, each with its id; gives the stream's. */
  async replayEventsAfter(lastEventId, { send }) {
    const [, from, skipped, streamId] = EVENT_ID.exec(lastEventId) ?? [];
    if (streamId === undefined) throw new Error("the event id is not of this store");
    let skip = Number(skipped);
    for (let offset = from; ; skip = 0) {
      const answer = await accepted(await fetch(`${this.#urlOf(streamId)}?offset=${offset}`, { headers: AUTH }));
      for (const [index, message] of (await answer.json()).entries()) {
        // The SDK stores an empty message to have an id for the beginning; a client could not read it.
        if (index >= skip && Object.keys(message).length > 0) await send(`${offset}.${index + 1}.${streamId}`, message);
      }
      if (answer.headers.has("Stream-Up-To-Date")) return streamId;
      offset = offsetOf(answer);
    }
  }

  #urlOf(streamId) {
    return this.#session + encodeURIComponent(streamId);
  }
}

function offsetOf(answer) {
  return answer.headers.get("Stream-Next-Offset");
}

async function accepted(answer) {
  if (answer.ok) return answer;
  throw new Error(`the event store refused: ${answer.status} ${await answer.text()}`);
}
