import { mediaTypeOf } from "../../protocol/content-type.js";
import { refuse, type Refused } from "./outcome.js";

/** What curl sends with `--data` when it is not told otherwise. */
const FORM = "application/x-www-form-urlencoded";
/** So much is repeated of what a request says; a stream's own is never longer. */
const MAX_SHOWN_CHARS = 256;

/** The refusal of a request of another content type than the stream's, or than that of the source of a fork. */
export function refuseContentType(whose: "stream" | "source", expected: string, sent: string): Refused {
  const received = sent.slice(0, MAX_SHOWN_CHARS);
  const hint = mediaTypeOf(sent) === FORM ? `, which is curl's default: give it -H 'Content-Type: ${expected}'` : "";
  return refuse("content-type-mismatch", {
    detail: `The ${whose}'s content type is ${expected}, the request's is ${received}${hint}.`,
    facts: { expected, received },
  });
}
