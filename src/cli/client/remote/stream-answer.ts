// Tells the answers of a server of streams from those of another server.

import { EXIT } from "../../command/verb.js";
import { failure, refusal, type Failure } from "./failure.js";
import type { Answer, Asked } from "./http-client.js";

/** A server, as messages name it, and what stands in front of its streams' names. */
export interface StreamsPlace {
  readonly name: string;
  readonly prefix: string;
}

/**
 * Why an answer to a request about a stream is from another server, or from outside of the prefix; `null` where nothing
 * shows that it is. An answer without it is never taken for success: what was sent would be lost.
 */
export function faultOfPlace({ method }: Asked, answer: Answer, { name, prefix }: StreamsPlace): Failure | null {
  const { status, header } = answer;
  const isStranger = (why: string): Failure =>
    failure(EXIT.unreachable, `${name} is no server of streams: ${why}; see --server`);
  if (status < 200 || (status >= 300 && status < 400)) return isStranger(`it answers ${method} with ${status}`);
  if (status < 300 && method === "DELETE")
    return status === 204 ? null : isStranger(`it answers DELETE with ${status}`);
  if (status < 300 && !saysWhere(method, answer)) return isStranger("it says no offset");
  if (status < 300)
    return OFFSETS.every((name) => isToken(header(name)))
      ? null
      : isStranger("its offset has characters that none has");
  if (status !== 404) return null;
  // Of a missing stream a server of streams sends no page.
  if (header("content-type")?.startsWith("text/html") === true) return isStranger("its answer is a web page");
  const refused = refusal(answer, `${name} below ${prefix}`);
  if (refused.code !== "unknown-path") return null;
  return { ...refused, status: EXIT.unreachable, line: `${refused.line}; see --prefix and --server` };
}

/** The headers whose value is an offset. */
const OFFSETS = ["stream-next-offset", "stream-earliest-offset"];

/** Other servers than streamdir have offsets of other forms, but all are of characters that a URL and a header take. */
function isToken(offset: string | null): boolean {
  return offset === null || /^[\x21-\x7e]*$/.test(offset);
}

/** Some servers answer what a producer sends twice without an offset, but with the producer's epoch. */
function saysWhere(method: Asked["method"], { header }: Answer): boolean {
  const offset = header("stream-next-offset") ?? "";
  return offset !== "" || (method === "POST" && header("producer-epoch") !== null);
}
