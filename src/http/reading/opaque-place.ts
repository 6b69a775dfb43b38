// Places in the events of the list, as ids that tell nobody how many events there are.

import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { base64UrlLength, decodeBase64Url } from "../../protocol/base64url.js";

const CIPHER = "aes-128-ecb";
const BLOCK_BYTES = 16;
/** A number's own bytes, at the end of the block; what is before has to be zero again when an id is read. */
const NUMBER_BYTES = 6;
const ID_CHARS = base64UrlLength(BLOCK_BYTES);

/** Turns numbers into ids and back, under a key of its own: the ids of another mean nothing to it. */
export class OpaquePlaces {
  readonly #key = randomBytes(BLOCK_BYTES);
  /** The id that was made last: all readers are told the same. */
  #last: { readonly number: number; readonly id: string } | null = null;

  /** The id of a number, from 0 to 2^48 - 1. */
  idOf(number: number): string {
    if (this.#last?.number === number) return this.#last.id;
    const block = Buffer.alloc(BLOCK_BYTES);
    block.writeUIntBE(number, BLOCK_BYTES - NUMBER_BYTES, NUMBER_BYTES);
    // One block, which is never the same twice: that is all that this mode is good for.
    const cipher = createCipheriv(CIPHER, this.#key, null).setAutoPadding(false);
    const id = cipher.update(block).toString("base64url");
    this.#last = { number, id };
    return id;
  }

  /** The number that an id stands for; `null` for one that was not made here. */
  numberOf(id: string): number | null {
    const block = id.length === ID_CHARS ? decodeBase64Url(id) : null;
    if (block === null) return null;
    const decipher = createDecipheriv(CIPHER, this.#key, null).setAutoPadding(false);
    const plain = decipher.update(block);
    const isOurs = plain.subarray(0, BLOCK_BYTES - NUMBER_BYTES).every((byte) => byte === 0);
    return isOurs ? plain.readUIntBE(BLOCK_BYTES - NUMBER_BYTES, NUMBER_BYTES) : null;
  }
}
