import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { cutOff, readJournalFile, type ExpectedJournal, type JournalDamage } from "../../../../src/storage/file/journal/journal-reader.js";
import { FRAME_HEADER_BYTES, SECTOR_BYTES, sealFrame } from "../../../../src/storage/file/format/record.js";

const DIRECTORY_ID = Buffer.from("01234567");
const EXPECTED = { sequence: 4, directoryId: DIRECTORY_ID, lastBatch: null };

/** An empty frame in a sector of its own. */
function frame(batch: number, sequence = 4, directoryId = DIRECTORY_ID, fileBytes = 0): Buffer {
  const sector = Buffer.alloc(SECTOR_BYTES);
  sealFrame(sector, FRAME_HEADER_BYTES, 0, { sequence, batch, directoryId, handles: 0, fileBytes });
  return sector;
}

/** Where the file is damaged, and how. */
function placesIn(bytes: Buffer, expected: ExpectedJournal): Pick<JournalDamage, "offset" | "problem">[] {
  return readJournalFile(bytes, expected).damages.map(({ offset, problem }) => ({ offset, problem }));
}

const TORN = frame(8).fill(0xff, 12, 13);
const ZEROS = Buffer.alloc(SECTOR_BYTES);

describe("a journal file", () => {
  test("is read up to where its frames end", () => {
    const { frames, end, damages } = readJournalFile(Buffer.concat([frame(5), frame(6), ZEROS]), EXPECTED);
    assert.deepEqual(
      frames.map(({ batch }) => batch),
      [5, 6],
    );
    assert.equal(end, 2 * SECTOR_BYTES);
    assert.deepEqual(damages, []);
  });

  for (const [what, sectors] of [
    ["is empty", []],
    ["holds zeros", [ZEROS, ZEROS]],
    ["holds the frames of an earlier use only", [frame(1, 3), frame(2, 3)]],
    ["is torn in its first frame", [TORN, ZEROS]],
  ] as const) {
    test(`that ${what} has none`, () =>
      assert.deepEqual(readJournalFile(Buffer.concat(sectors), EXPECTED), { frames: [], end: 0, damages: [] }));
  }

  for (const [what, rest] of [
    ["a torn frame", [TORN, ZEROS]],
    ["the frames of an earlier use", [frame(8, 3), frame(9, 3)]],
    ["what a client made to look like a frame", [frame(8, 4, Buffer.from("guessed!"))]],
    ["a torn frame and what a client made to look like a frame", [TORN, frame(9, 4, Buffer.from("guessed!"))]],
  ] as const) {
    test(`ends quietly at ${what}`, () => {
      const { frames, end, damages } = readJournalFile(Buffer.concat([frame(7), ...rest]), EXPECTED);
      assert.deepEqual([frames.length, end, damages], [1, SECTOR_BYTES, []]);
    });
  }

  for (const [what, sectors, offset, problem] of [
    ["a sound frame behind a broken one", [frame(7), TORN, frame(9)], SECTOR_BYTES, "sound records follow at byte 1024"],
    ["a sound frame behind zeros", [frame(7), ZEROS, ZEROS, frame(9)], SECTOR_BYTES, "sound records follow at byte 1536"],
    ["a missing batch", [frame(7), frame(9)], SECTOR_BYTES, "batch 9 follows batch 7"],
    ["a batch that comes again", [frame(7), frame(7)], SECTOR_BYTES, "batch 7 follows batch 7"],
    ["a beginning of another directory", [frame(7, 4, Buffer.from("another!"))], 0, "it belongs to another directory"],
    ["a beginning of another directory and another file", [frame(7, 5, Buffer.from("another!"))], 0, "it belongs to another directory"],
    ["the frames of a later file", [frame(7, 5)], 0, "it is the journal file of sequence 5"],
  ] as const) {
    test(`with ${what} is damaged, and the byte is told`, () => {
      assert.deepEqual(placesIn(Buffer.concat(sectors), EXPECTED), [{ offset, problem }]);
    });
  }

  test("with newer frames of an earlier file is that file under another name", () => {
    const read = (batch: number): unknown => placesIn(frame(batch, 3), { ...EXPECTED, lastBatch: 6 });
    assert.deepEqual(read(7), [{ offset: 0, problem: "it is the journal file of sequence 3" }]);
    assert.deepEqual(read(6), [], "a copy of what is there");
  });

  test("goes on where the file before it ended", () => {
    assert.deepEqual(placesIn(frame(7), { ...EXPECTED, lastBatch: 6 }), []);
    assert.deepEqual(placesIn(frame(7), { ...EXPECTED, lastBatch: 5 }), [{ offset: 0, problem: "batch 7 follows batch 5" }]);
  });

  test("is read on after damage, each place with the sound frame after it", () => {
    const { frames, end, damages } = readJournalFile(Buffer.concat([frame(7), TORN, frame(9), frame(11), ZEROS]), EXPECTED);
    assert.deepEqual([frames.map(({ batch }) => batch), end], [[7, 9, 11], 4 * SECTOR_BYTES]);
    assert.deepEqual(
      damages.map(({ offset, next }) => [offset, next?.batch]),
      [
        [SECTOR_BYTES, 9],
        [3 * SECTOR_BYTES, 11],
      ],
    );
  });

  test("that holds what was kept may miss batches, but not its end, nor go back", () => {
    const kept = { ...EXPECTED, isKept: true };
    assert.deepEqual(placesIn(Buffer.concat([frame(5), frame(8), frame(8)]), kept), []);
    assert.deepEqual(placesIn(Buffer.concat([frame(8), frame(7)]), kept), [{ offset: SECTOR_BYTES, problem: "batch 7 follows batch 8" }]);
    for (const bytes of [Buffer.alloc(0), Buffer.concat([frame(5), ZEROS])]) {
      assert.deepEqual(placesIn(bytes, kept), [{ offset: Math.min(bytes.length, SECTOR_BYTES), problem: "its end is missing" }]);
    }
  });
});

describe("a journal file that its frames say is longer", () => {
  const vouching = Buffer.concat([frame(7, 4, DIRECTORY_ID, 8 * SECTOR_BYTES), frame(8, 4, DIRECTORY_ID, 8 * SECTOR_BYTES)]);
  const cut = (bytes: Buffer): unknown => {
    const { frames, end } = readJournalFile(bytes, EXPECTED);
    return cutOff(bytes, frames, end, 4);
  };

  test("was cut off, and may have lost frames with what is gone", () => {
    for (const left of [0, 1, SECTOR_BYTES - 1]) {
      assert.deepEqual(cut(Buffer.concat([vouching, Buffer.alloc(left)])), {
        kind: "cut",
        offset: 2 * SECTOR_BYTES + left,
        problem: "it ends here, but had 4096 bytes",
        next: null,
        mayHideFrames: true,
      });
    }
  });

  test("has lost nothing where a sector without a frame is left", () => {
    assert.deepEqual(cut(Buffer.concat([vouching, ZEROS])), {
      kind: "cut",
      offset: 3 * SECTOR_BYTES,
      problem: "it ends here, but had 4096 bytes; its records end before, at byte 1024",
      next: null,
      mayHideFrames: false,
    });
  });

  test("may have lost frames where the last is cut through, and behind one that is torn, or was damaged since", () => {
    const mayHide = (...parts: Buffer[]): unknown => (cut(Buffer.concat([vouching, ...parts])) as { mayHideFrames: boolean }).mayHideFrames;
    const long = frame(9);
    long.writeUInt32LE(3 * SECTOR_BYTES, 4);
    assert.equal(mayHide(long, ZEROS), true);
    assert.equal(mayHide(TORN), true);
    assert.equal(mayHide(TORN, ZEROS.subarray(1)), true);
    assert.equal(mayHide(TORN, ZEROS), false);
  });

  test("is whole at its length, and where nobody vouches for one", () => {
    assert.equal(cut(Buffer.concat([vouching, Buffer.alloc(6 * SECTOR_BYTES)])), null);
    assert.equal(cut(frame(7)), null);
  });
});
