import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { test } from "node:test";
import { unsentBytesOf } from "../../../src/http/node/write-queue.js";

const SOCKETS: readonly (readonly [what: string, handle: object | null | undefined, unsentBytes: number])[] = [
  ["a connection counts what the stream and the system have not sent", { writeQueueSize: 5 }, 15],
  ["a TLS connection counts the queue of the connection below it", { writeQueueSize: 1, _parent: { writeQueueSize: 5 } }, 15],
  ["a connection that is gone counts what the stream has", null, 10],
  ["a Node without the private names counts what the stream has", undefined, 10],
  ["a handle without a queue counts what the stream has", {}, 10],
];

for (const [title, handle, unsentBytes] of SOCKETS) {
  test(title, () => {
    const socket = { writableLength: 10, ...(handle === undefined ? {} : { _handle: handle }) } as unknown as Socket;
    assert.equal(unsentBytesOf(socket), unsentBytes);
  });
}
