// Finds the answer that a connection is busy with.
//
// Private name: `_httpMessage` of a socket. Node keeps the present answer of a connection there and nowhere public; a
// map of our own would have to follow each step of Node's queue of pipelined answers. Where a version of Node lacks it,
// connections seem idle: a stopping server may then cut off an answer.

import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** The answer that a connection is busy with, from the request's head to the last byte; `null` without one. */
export function answerUnderWay(socket: Socket): ServerResponse | null {
  const { _httpMessage: answer } = socket as Socket & { _httpMessage?: ServerResponse | null }; // as its type says
  return answer ?? null;
}
