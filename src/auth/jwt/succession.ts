import type { JwtHeader } from "./compact.js";
import type { KeyAnswer, KeySource } from "./key-source.js";
import type { RemoteKeys } from "./remote-keys.js";
import type { Algorithm } from "./verification-key.js";

/** The keys of an issuer that moved to a URL: until the first answer from there, the old ones are still its own. */
export class Succession implements KeySource {
  readonly next: RemoteKeys;
  /** `null` once there was an answer. */
  #before: KeySource | null;

  constructor(next: RemoteKeys, before: KeySource) {
    this.next = next;
    this.#before = before;
  }

  keyFor(header: JwtHeader, algs: readonly Algorithm[]): KeyAnswer | Promise<KeyAnswer> {
    return this.next.keyFor(header, algs);
  }

  has(matches: (print: string) => boolean): boolean {
    if (this.next.hasAnswered) this.#before = null;
    return (this.#before ?? this.next).has(matches);
  }

  known(): Promise<void> | null {
    return this.next.known();
  }
}
