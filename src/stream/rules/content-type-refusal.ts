import { mediaTypeOf } from "../../protocol/content-type.js";
import { refuse, type Refused } from "./outcome.js";

/** The content type that curl sends with `--data` by default. */
const FORM = "application/x-www-form-urlencoded";
/** The longest part of the request's content type that is repeated; a stream's own is never longer. */
const MAX_SHOWN_CHARS = 256;

/** The refusal of a request whose content type is not that of the stream, or of the source of a fork. */
export function refuseContentType(whose: "stream" | "source", expected: string, sent: string): Refused {
  const received = sent.slice(0, MAX_SHOWN_CHARS);
  const hint = mediaTypeOf(sent) === FORM ? `, which is curl's default: give it -H 'Content-Type: ${expected}'` : "";
  return refuse("content-type-mismatch", {
    detail: `The ${whose}'s content type is ${expected}, the request's is ${received}${hint}.`,
    facts: { expected, received },
  });
}
