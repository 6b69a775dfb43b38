import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { describe, test } from "node:test";
import { DirectoryError } from "../../../../src/storage/file/directory/lock.js";
import { Layout } from "../../../../src/storage/file/format/layout.js";
import { decodeFrame, decodeHeads, decodeRecords, encodeFrame, SECTOR_BYTES } from "../../../../src/storage/file/format/record.js";
import { scanFiles, scanJournal, type Run, understood } from "../../../../src/storage/file/journal/journal-scanner.js";
import { tempDir } from "../../../helpers/temp-dir.js";
import { diskError, WatchedFiles } from "../../../helpers/watched-files.js";

const DIRECTORY_ID = Buffer.from("01234567");
const ZEROS = Buffer.alloc(SECTOR_BYTES);
const layout = new Layout("/data");
const [FIRST, SECOND, THIRD] = [1, 2, 3].map((sequence) => layout.journalFile(sequence)) as [string, string, string];

function frame(sequence: number, batch: number, more: { directoryId?: Buffer; fileBytes?: number } = {}): Buffer {
  return encodeFrame({ sequence, batch, directoryId: DIRECTORY_ID, handles: 0, fileBytes: 0, ...more }, 0, Buffer.alloc(0));
}

/** A directory with these files, by what their paths would be in `/data`. */
function holding(contents: Readonly<Record<string, readonly Buffer[]>>): {
  readonly root: string;
  readonly options: { files: WatchedFiles; layout: Layout; directoryId: Buffer };
} {
  const root = tempDir();
  for (const [path, parts] of Object.entries(contents)) {
    const target = path.replace(layout.root, root);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, Buffer.concat(parts));
  }
  return { root, options: { files: new WatchedFiles(), layout: new Layout(root), directoryId: DIRECTORY_ID } };
}

async function all(runs: AsyncIterable<Run>): Promise<Run[]> {
  const found: Run[] = [];
  for await (const run of runs) found.push(run);
  return found;
}

/** What a tolerant scan gives: of each run the file, the kind of damage before it, and the batches of its frames. */
async function tolerant(contents: Readonly<Record<string, readonly Buffer[]>>): Promise<unknown[]> {
  const { root, options } = holding(contents);
  const runs = await all(scanJournal(options, "tolerant"));
  return runs.map(({ file, damage, frames }) => [
    file.path.replace(root, layout.root),
    damage?.kind ?? null,
    frames.map(({ batch }) => batch),
  ]);
}

/** What a strict scan says; its batches where nothing is wrong. */
async function strict(contents: Readonly<Record<string, readonly Buffer[]>>): Promise<string | number[][]> {
  const { root, options } = holding(contents);
  try {
    return (await all(scanJournal(options, "strict"))).map(({ frames }) => frames.map(({ batch }) => batch));
  } catch (error) {
    assert.ok(error instanceof DirectoryError);
    return error.message.replace(root, layout.root);
  }
}

describe("a scan of the journal", () => {
  test("gives each file in order, what was kept of older ones first, and also those without frames", async () => {
    const contents = {
      [THIRD]: [ZEROS],
      [FIRST]: [frame(1, 7), frame(1, 8)],
      [SECOND]: [frame(2, 9), ZEROS],
      [layout.keptJournalFile(0)]: [frame(0, 3), frame(0, 5)],
    };
    assert.deepEqual(await strict(contents), [[3, 5], [7, 8], [9], []]);
    assert.deepEqual(await tolerant(contents), [
      [layout.keptJournalFile(0), null, [3, 5]],
      [FIRST, null, [7, 8]],
      [SECOND, null, [9]],
      [THIRD, null, []],
    ]);
  });

  test("passes over what was kept of a file that is there itself", async () => {
    assert.deepEqual(await strict({ [FIRST]: [frame(1, 7)], [layout.keptJournalFile(1)]: [frame(1, 7)] }), [[7]]);
  });

  test("finds nothing in a directory without a journal, or without a file of it", async () => {
    assert.deepEqual(await strict({ [layout.marker]: [] }), []);
    assert.deepEqual(await strict({ [`${FIRST}.spare`]: [frame(1, 7)] }), []);
  });

  for (const [what, contents, says, runs] of [
    [
      "a frame that is missing in a file",
      { [FIRST]: [frame(1, 7), ZEROS, frame(1, 9)] },
      `${FIRST} is damaged at byte 512: sound records follow at byte 1024`,
      [
        [FIRST, null, [7]],
        [FIRST, "gap", [9]],
      ],
    ],
    [
      "a file that is missing",
      { [FIRST]: [frame(1, 7)], [THIRD]: [frame(3, 9)] },
      `${THIRD} is damaged at byte 0: batch 9 follows batch 7`,
      [
        [FIRST, null, [7]],
        [THIRD, "gap", [9]],
      ],
    ],
    [
      "a file that lost all before one that has frames",
      { [FIRST]: [ZEROS], [SECOND]: [frame(2, 9)] },
      `${FIRST} is damaged at byte 0: it has no sound record, but a later file has`,
      [
        [FIRST, null, []],
        [FIRST, "lost", []],
        [SECOND, null, [9]],
      ],
    ],
    [
      "no sound frame in any file",
      { [FIRST]: [ZEROS], [SECOND]: [] },
      `${FIRST} is damaged at byte 0: it has no sound record`,
      [
        [FIRST, null, []],
        [SECOND, null, []],
        [FIRST, "lost", []],
      ],
    ],
    [
      "another directory's file",
      { [FIRST]: [frame(1, 7, { directoryId: Buffer.from("another!") })] },
      `${FIRST} is damaged at byte 0: it belongs to another directory`,
      [[FIRST, "foreign", []]],
    ],
    [
      "what was kept without its end",
      { [layout.keptJournalFile(0)]: [frame(0, 3), ZEROS], [FIRST]: [frame(1, 7)] },
      `${layout.keptJournalFile(0)} is damaged at byte 512: its end is missing`,
      [
        [layout.keptJournalFile(0), null, [3]],
        [layout.keptJournalFile(0), "gap", []],
        [FIRST, null, [7]],
      ],
    ],
    [
      "the newest file cut off at its last frame",
      { [FIRST]: [frame(1, 7, { fileBytes: 4096 })], [SECOND]: [] },
      `${FIRST} is damaged at byte 512: it ends here, but had 4096 bytes`,
      [
        [FIRST, null, [7]],
        [SECOND, null, []],
        [FIRST, "cut", []],
      ],
    ],
  ] as const) {
    test(`throws ${what}, or tells of it and goes on`, async () => {
      assert.equal(await strict(contents), `journal file ${says}`);
      assert.deepEqual(await tolerant(contents), runs);
    });
  }

  test("tells of a file that has lost only zeros, which harms nothing", async () => {
    const contents = { [FIRST]: [frame(1, 7, { fileBytes: 4096 }), ZEROS] };
    assert.deepEqual(await strict(contents), [[7]]);
    assert.deepEqual(await tolerant(contents), [
      [FIRST, null, [7]],
      [FIRST, "cut", []],
    ]);
  });

  test("names the file that can't be read", async () => {
    const { options } = holding({ [FIRST]: [frame(1, 7)] });
    options.files.gate = ({ kind, path }) => (kind === "open" && path.endsWith(".journal") ? diskError("EIO") : undefined);
    await assert.rejects(all(scanJournal(options, "tolerant")), {
      message: `journal file ${options.layout.journalFile(1)} can't be read (EIO)`,
    });
  });

  test("of files that were set aside takes each by itself", async () => {
    const { options } = holding({ [FIRST]: [frame(1, 7, { fileBytes: 4096 })], [THIRD]: [frame(3, 4)] });
    const listed = [1, 3].map((sequence) => ({ path: options.layout.journalFile(sequence), sequence, standing: "alone" as const }));
    assert.deepEqual(
      (await all(scanFiles(options, listed))).map(({ damage, frames }) => [damage, frames.length]),
      [
        [null, 1],
        [null, 1],
      ],
    );
  });
});

test("a sound frame whose records can't be understood is told as damage, with file and byte", () => {
  for (const record of [Buffer.alloc(0), Buffer.alloc(40), Buffer.from([40, 0, 0, 0, 99, ...Buffer.alloc(35)])]) {
    const identity = { sequence: 1, batch: 1, directoryId: DIRECTORY_ID, handles: 0, fileBytes: 0 };
    const frame = decodeFrame(encodeFrame(identity, 1, record), 0);
    assert.ok(frame !== null);
    for (const decode of [decodeHeads, decodeRecords])
      assert.throws(() => [...understood<unknown>("a.journal", frame, decode(frame))], {
        name: "DirectoryError",
        message: /^journal file a\.journal is damaged at byte 0: its checksum fits, but a record in it can't be understood \(/,
      });
  }
});
