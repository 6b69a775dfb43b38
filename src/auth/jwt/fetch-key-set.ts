import { request } from "node:https";
import type { IncomingMessage } from "node:http";
import { isUtf8 } from "node:buffer";
import type { Clock } from "../../ops/clock.js";
import { MAX_KEY_SET_BYTES } from "./key-set.js";

/** How long a fetch of a set of keys may take in all, in milliseconds. */
export const FETCH_TIMEOUT_MS = 5000;

/** Where a set of keys is fetched from. */
export interface KeySetPlace {
  /** An https URL. */
  readonly url: string;
  /** The CA that signed the server's certificate, in PEM; `null` for those that Node trusts. */
  readonly ca: string | null;
}

/**
 * Fetches a set of keys as text: in one request, within 5 s, up to {@link MAX_KEY_SET_BYTES}, without redirects.
 * Rejects with words that follow "the keys can't be fetched:".
 */
export function fetchKeySet({ url, ca }: KeySetPlace, clock: Clock, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request(url, {
      agent: false,
      signal,
      // Said here, so that no variable of the environment turns it off.
      rejectUnauthorized: true,
      headers: { accept: "application/jwk-set+json, application/json" },
      ...(ca === null ? {} : { ca }),
    });
    const timer = clock.after(FETCH_TIMEOUT_MS, () =>
      asked.destroy(new Error(`no answer within ${FETCH_TIMEOUT_MS} ms`)),
    );
    let isAnswered = false;
    asked.on("response", (response) => {
      isAnswered = true;
      readAnswer(response).then(resolve, (error: unknown) => {
        reject(error);
        asked.destroy();
      });
    });
    asked.on("error", reject);
    asked.on("close", () => {
      timer.cancel();
      // Node ends what it can't use, as a change of the protocol, without an error.
      if (!isAnswered) reject(new Error("the connection ended without an answer"));
    });
    asked.end();
  });
}

async function readAnswer(response: IncomingMessage): Promise<string> {
  if (response.statusCode !== 200) throw new Error(`the answer is ${response.statusCode}, not 200`);
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of response) {
    const bytes = Buffer.from(part);
    length += bytes.length;
    if (length > MAX_KEY_SET_BYTES) throw new Error(`the answer has more than ${MAX_KEY_SET_BYTES} bytes`);
    parts.push(bytes);
  }
  const all = Buffer.concat(parts);
  if (!isUtf8(all)) throw new Error("the answer is not UTF-8");
  return all.toString();
}
