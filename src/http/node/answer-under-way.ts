import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

/**
 * The answer that a connection is busy with, from the request's head until its last byte is out; `null` when there is
 * none.
 */
export function answerUnderWay(socket: Socket): ServerResponse | null {
  // Node's private field; there is no public one.
  const { _httpMessage: answer } = socket as Socket & { _httpMessage?: ServerResponse | null };
  return answer ?? null;
}
