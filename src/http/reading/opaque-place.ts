// Places in the events of the list, as ids that tell nobody how many events there are.

import { createCipheriv, createDecipheriv, randomBytes, randomFillSync } from "node:crypto";
import { base64UrlLength, decodeBase64Url } from "../../protocol/base64url.js";

const CIPHER = "aes-128-ecb";
const BLOCK_BYTES = 16;
/** A number's own bytes, at the end of the block. */
const NUMBER_BYTES = 6;
/** In front: two ids of one place are not the same, and tell nobody that nothing happened between them. */
const RANDOM_BYTES = 6;
/** What is between has to be zero again when an id is read. */
const NUMBER_AT = BLOCK_BYTES - NUMBER_BYTES;
const ID_CHARS = base64UrlLength(BLOCK_BYTES);

/** Turns numbers into ids and back, under a key of its own: the ids of another mean nothing to it. */
export class OpaquePlaces {
  readonly #key = randomBytes(BLOCK_BYTES);

  /** An id of a number, from 0 to 2^48 - 1: another one each time. */
  idOf(number: number): string {
    const block = Buffer.alloc(BLOCK_BYTES);
    randomFillSync(block, 0, RANDOM_BYTES);
    block.writeUIntBE(number, NUMBER_AT, NUMBER_BYTES);
    // One block, which is hardly ever the same twice: that is all that this mode is good for.
    const cipher = createCipheriv(CIPHER, this.#key, null).setAutoPadding(false);
    return cipher.update(block).toString("base64url");
  }

  /** The number that an id stands for; `null` for one that was not made here. */
  numberOf(id: string): number | null {
    const block = id.length === ID_CHARS ? decodeBase64Url(id) : null;
    if (block === null) return null;
    const decipher = createDecipheriv(CIPHER, this.#key, null).setAutoPadding(false);
    const plain = decipher.update(block);
    const isOurs = plain.subarray(RANDOM_BYTES, NUMBER_AT).every((byte) => byte === 0);
    return isOurs ? plain.readUIntBE(NUMBER_AT, NUMBER_BYTES) : null;
  }
}
