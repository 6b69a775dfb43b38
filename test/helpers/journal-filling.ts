import type { FileStream } from "../../src/storage/file/memory/file-stream.js";
import type { Journal } from "../../src/storage/file/journal/journal.js";
import { bytesOf, recordOf } from "./engine.js";
import type { FileRooms } from "./file-rooms.js";

/** Entries that are handed in to a journal for as long as it takes them. */
export interface JournalFilling {
  /** Hands in entries one at a time until one of them waits; resolves to how many settled since it was last asked. */
  untilHeld(): Promise<number>;
  /** How many of those handed in have not settled. */
  waiting(): Promise<number>;
}

/** Fills `journal` with appends to `stream`. */
export async function fillingOf(rooms: FileRooms, journal: Journal, stream: FileStream): Promise<JournalFilling> {
  const settledOf = async (): Promise<number> => {
    await rooms.files.idle();
    return rooms.told.filter((line) => line.endsWith("durable")).length;
  };
  let handedIn = await settledOf();
  let counted = handedIn;
  const waiting = async (): Promise<number> => handedIn - (await settledOf());
  return {
    waiting,
    async untilHeld() {
      while ((await waiting()) === 0) {
        journal.enqueue(rooms.entry(stream, `${handedIn}`, { change: recordOf(bytesOf(1000, handedIn)) }));
        handedIn += 1;
      }
      const before = counted;
      counted = await settledOf();
      return counted - before;
    },
  };
}
