import { copyFileSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodeFrame, FRAME_HEADER_BYTES } from "../../src/storage/file/format/record.js";
import type { Random } from "../helpers/random.js";
import { flipBit } from "./damages.js";

/** A directory with several journal files of several frames each. */
export interface JournalTarget {
  readonly dir: string;
  /** Its journal files, oldest first; there are at least three. */
  readonly files: readonly string[];
  /** The journal files of another directory. */
  readonly foreign: readonly string[];
  readonly random: Random;
}

/** What a start must say: the file, the byte where one is meant, and the problem. */
export interface Refusal {
  readonly file: string;
  readonly offset?: number;
  readonly problem: RegExp;
}

/** The journal files of a directory, oldest first. */
export function journalFilesOf(dir: string): string[] {
  return readdirSync(join(dir, "journal"))
    .filter((name) => name.endsWith(".journal"))
    .sort()
    .map((name) => join(dir, "journal", name));
}

/** Where the frames of a journal file are, first to last, and how long each is. */
export function framesOf(path: string): { readonly offset: number; readonly length: number }[] {
  const bytes = readFileSync(path);
  const frames: { offset: number; length: number }[] = [];
  for (let offset = 0, frame = decodeFrame(bytes, 0); frame !== null; offset = frame.nextOffset, frame = decodeFrame(bytes, offset)) {
    frames.push({ offset, length: FRAME_HEADER_BYTES + frame.records.length });
  }
  return frames;
}

const FOLLOWS = /sound records follow at byte \d+/;
const GAP = /batch \d+ follows batch \d+/;

/** Damages a frame that others follow, at bytes from `from` up to `to` of it. */
function inMiddleFrame(from: number, to: number | null, problem = FOLLOWS) {
  return ({ files, random }: JournalTarget): Refusal => {
    const file = random.pick(files);
    const frames = framesOf(file);
    const { offset, length } = random.pick(frames.slice(1, -1));
    flipBit(file, random, offset + from, offset + (to ?? length));
    return { file, offset, problem };
  };
}

function at(paths: readonly string[], index: number): string {
  const path = paths.at(index);
  if (path === undefined) throw new RangeError(`no journal file ${index}`);
  return path;
}

/** Everything that can happen to a journal that no server has open, and that a start must find. */
export const JOURNAL_DAMAGES: Readonly<Record<string, (target: JournalTarget) => Refusal>> = {
  "a flipped bit in a frame": inMiddleFrame(0, null),
  "a flipped bit in a frame's magic": inMiddleFrame(0, 4),
  "a flipped bit in a frame's length": inMiddleFrame(4, 8),
  "a flipped bit in a frame's checksum": inMiddleFrame(8, 12),
  "a flipped bit in a frame's count of records": inMiddleFrame(12, 16),
  "a flipped bit in a frame's sequence": inMiddleFrame(16, 24),
  "a flipped bit in a frame's batch": inMiddleFrame(24, 32),
  "a flipped bit in a frame's directory": inMiddleFrame(32, 40),
  "a flipped bit in the records of a frame": inMiddleFrame(40, null),
  "a flipped bit in the first frame of a file": ({ files, random }) => {
    const file = random.pick(files);
    const [{ length } = { length: 0 }] = framesOf(file);
    flipBit(file, random, 0, length);
    return { file, offset: 0, problem: FOLLOWS };
  },
  "a flipped bit in the last frame of a file that another follows": ({ files, random }) => {
    const { offset, length } = framesOf(at(files, 0)).at(-1) ?? { offset: 0, length: 0 };
    flipBit(at(files, 0), random, offset, offset + length);
    return { file: at(files, 1), offset: 0, problem: GAP };
  },
  "zeros in place of a frame": ({ files, random }) => {
    const file = random.pick(files);
    const { offset, length } = random.pick(framesOf(file).slice(1, -1));
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.fill(0, offset, offset + length));
    return { file, offset, problem: FOLLOWS };
  },
  "a file that is cut off, and another follows": ({ files, random }) => {
    truncateSync(at(files, 0), random.integer(0, framesOf(at(files, 0)).at(-1)?.offset ?? 0));
    return { file: at(files, 1), offset: 0, problem: /batch \d+ follows batch \d+|the journal goes on/ };
  },
  "a file gone from the middle": ({ files }) => {
    rmSync(at(files, 1));
    return { file: at(files, 2), offset: 0, problem: GAP };
  },
  "a file under a later name": ({ files }) => {
    renameSync(at(files, 1), at(files, 1).replace(/\d{16}/, "0000000000000099"));
    return { file: at(files, 2), offset: 0, problem: GAP };
  },
  "the last file under a later name": ({ files, dir }) => {
    const renamed = join(dir, "journal", "0000000000000099.journal");
    renameSync(at(files, -1), renamed);
    return { file: renamed, offset: 0, problem: /it is the journal file of sequence \d+/ };
  },
  "two files with their names exchanged": ({ files }) => {
    const [one, two] = [at(files, 0), at(files, 1)];
    renameSync(one, `${one}.away`);
    renameSync(two, one);
    renameSync(`${one}.away`, two);
    return { file: one, offset: 0, problem: /it is the journal file of sequence \d+/ };
  },
  "a file of another directory": ({ files, foreign, random }) => {
    const index = random.integer(0, 2);
    copyFileSync(at(foreign, index), at(files, index));
    return { file: at(files, index), offset: 0, problem: /it belongs to another directory/ };
  },
  "all files of another directory": ({ files, foreign }) => {
    for (const file of files) rmSync(file);
    for (const [index, file] of foreign.entries()) copyFileSync(file, at(files, index));
    return { file: at(files, 0), offset: 0, problem: /it belongs to another directory/ };
  },
  "a directory in place of a file": ({ files, random }) => {
    const file = random.pick(files);
    rmSync(file);
    mkdirSync(file);
    return { file, problem: /can't be read \(EISDIR\)/ };
  },
  "no file at all": ({ dir, files }) => {
    for (const file of files) rmSync(file);
    return { file: join(dir, "journal"), problem: /is missing/ };
  },
  "a damaged marker": ({ dir, random }) => {
    flipBit(join(dir, "streamdir.json"), random);
    return {
      file: join(dir, "streamdir.json"),
      problem: /is damaged|it belongs to another directory|has format|this version knows format/,
    };
  },
  "no marker": ({ dir }) => {
    rmSync(join(dir, "streamdir.json"));
    return { file: join(dir, "streamdir.json"), problem: /is missing, but the directory has/ };
  },
};
