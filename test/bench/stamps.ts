/** More than a stamp is long. */
const REST_CHARACTERS = 32;

/** A message of so many bytes that says when it was sent. */
export function stamped(nowMs: number, bytes: number): string {
  return `~${nowMs.toFixed(3)}~`.padEnd(bytes, "x");
}

/** Finds the times that messages were sent at, in whatever they arrive in. */
export class Stamps {
  /** The end of what came last: a stamp may have been cut in two. */
  #rest = "";

  /** The stamps that are whole with `chunk`, in milliseconds. */
  take(chunk: Buffer): number[] {
    const text = this.#rest + chunk.toString("latin1");
    const found = [...text.matchAll(/~(\d+\.\d{3})~/g)];
    const last = found.at(-1);
    this.#rest = text.slice(last === undefined ? 0 : last.index + last[0].length).slice(-REST_CHARACTERS);
    return found.map(([, ms]) => Number(ms));
  }
}
