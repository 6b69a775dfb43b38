import assert from "node:assert/strict";
import { parseEventStream } from "../protocol/event-stream-parser.js";
import type { RawConnection } from "./raw-connection.js";
import type { TestServer } from "./test-server.js";

/** A control event, and the data event before it if there is one. */
export interface EventPair {
  /** Bytes as latin1; `null` when the control event came alone. */
  readonly data: string | null;
  readonly control: Readonly<Record<string, unknown>>;
  readonly id: string;
}

/** Opens an SSE read of a stream and passes the head of its answer. */
export async function follow(server: TestServer, target: string, headers: Record<string, string> = {}): Promise<RawConnection> {
  const connection = await server.begin("GET", target, { headers });
  const { status } = await connection.head();
  assert.equal(status, 200);
  return connection;
}

/** The next control event with what came before it. */
export async function nextPair(connection: RawConnection): Promise<EventPair> {
  const text = (await connection.until("\nid: ")) + (await connection.until("\n\n"));
  const events = parseEventStream(text);
  const control = events.at(-1);
  assert.deepEqual(
    events.map(({ type }) => type),
    events.length > 1 ? ["data", "control"] : ["control"],
  );
  return {
    data: events.length > 1 ? (events[0]?.data ?? "") : null,
    control: JSON.parse(control?.data ?? ""),
    id: control?.lastEventId ?? "",
  };
}
