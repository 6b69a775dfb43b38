import { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { segmentPath, sidecarPath } from "../../src/storage/file/format/layout.js";
import type { Random } from "../helpers/random.js";

/** Where the files of a stream are that is to be damaged, and those of a sound one of the same shape. */
export interface Target {
  readonly directory: string;
  readonly twin: string;
  /** Where its segments begin. */
  readonly starts: readonly number[];
  readonly tail: number;
  readonly random: Random;
}

/** What a server must make of a damage. */
export type Finding =
  /** These segments, by index, are refused, and everything else of the stream serves; `offset` where the place is known. */
  | { readonly kind: "segments"; readonly indexes: readonly number[]; readonly problem: RegExp; readonly offset?: number }
  /** Everything is refused. */
  | { readonly kind: "sidecar"; readonly problem: RegExp }
  /** It is no damage: all is served. */
  | { readonly kind: "none" };

/** Something that happens to a stream's files; says what is to be found. */
export type Damage = (target: Target) => Finding;

/** Turns one bit of a file around, at a byte from `from` up to `to`. */
export function flipBit(path: string, random: Random, from = 0, to = statSync(path).size): void {
  const bytes = readFileSync(path);
  const at = random.integer(from, to - 1);
  bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << random.integer(0, 7)), at);
  writeFileSync(path, bytes);
}

const MISMATCH = /its first \d+ bytes are not what was written/;

function flipIn(index: (segments: number) => number, place: (length: number) => readonly [from: number, to: number]): Damage {
  return (target) => {
    const found = index(target.starts.length);
    const path = segmentOf(target, found);
    flipBit(path, target.random, ...place(statSync(path).size));
    return { kind: "segments", indexes: [found], problem: MISMATCH };
  };
}

function onMiddle(harm: (path: string, target: Target) => void, problem: RegExp, offset?: number): Damage {
  return (target) => {
    harm(segmentOf(target, 1), target);
    return { kind: "segments", indexes: [1], problem, ...(offset === undefined ? {} : { offset }) };
  };
}

function onSidecar(harm: (path: string, target: Target) => void, problem: RegExp): Damage {
  return (target) => {
    harm(sidecarPath(target.directory), target);
    return { kind: "sidecar", problem };
  };
}

function truncatedTo(index: number, lengthOf: (length: number) => number): Damage {
  return (target) => {
    const path = segmentOf(target, index);
    const offset = lengthOf(statSync(path).size);
    truncateSync(path, offset);
    return { kind: "segments", indexes: [index], problem: /it ends at byte \d+, before byte \d+/, offset };
  };
}

function segmentOf({ directory, starts }: Target, index: number): string {
  return segmentPath(directory, starts[index] ?? 0);
}

const anywhere = (length: number): readonly [number, number] => [0, length];

/** Everything that can happen to the files of a stream that no server has open, by a name that may be a stream's. */
export const DAMAGES: Readonly<Record<string, Damage>> = {
  "flip-first-segment": flipIn(() => 0, anywhere),
  "flip-middle-segment": flipIn(() => 1, anywhere),
  "flip-last-segment": flipIn((count) => count - 1, anywhere),
  "flip-first-byte": flipIn(
    () => 1,
    () => [0, 1],
  ),
  "flip-middle-byte": flipIn(
    () => 1,
    (length) => [length / 2, length / 2 + 1],
  ),
  "flip-last-byte": flipIn(
    () => 1,
    (length) => [length - 1, length],
  ),
  "flip-last-byte-of-all": flipIn(
    (count) => count - 1,
    (length) => [length - 1, length],
  ),
  "cut-by-one": truncatedTo(1, (length) => length - 1),
  "cut-to-nothing": truncatedTo(1, () => 0),
  "cut-last-by-one": truncatedTo(2, (length) => length - 1),
  "cut-last-to-nothing": truncatedTo(2, () => 0),
  zeros: onMiddle((path, { random }) => {
    const bytes = readFileSync(path);
    const from = random.integer(0, bytes.length - 512);
    writeFileSync(path, bytes.fill(0, from, from + 512));
  }, MISMATCH),
  "segment-gone": onMiddle((path) => rmSync(path), /it is missing/, 0),
  "segment-is-directory": onMiddle((path) => {
    rmSync(path);
    mkdirSync(path);
  }, /it can't be read \(EISDIR\)/),
  "segment-links-to-nothing": onMiddle((path) => {
    rmSync(path);
    symlinkSync(`${path}.gone`, path);
  }, /it is missing/),
  "segment-links-to-itself": onMiddle((path) => {
    rmSync(path);
    symlinkSync(path, path);
  }, /it can't be read \(ELOOP\)/),
  "segment-of-another-stream": onMiddle((path, { twin, starts }) => copyFileSync(segmentPath(twin, starts[1] ?? 0), path), MISMATCH),
  "segments-swapped": (target) => {
    const [first, second] = [segmentOf(target, 0), segmentOf(target, 1)];
    renameSync(first, `${first}.away`);
    renameSync(second, first);
    renameSync(`${first}.away`, second);
    return { kind: "segments", indexes: [0, 1], problem: MISMATCH };
  },
  "segment-extended": (target) => {
    const path = segmentOf(target, 2);
    writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.alloc(1000, "garbage")]));
    return { kind: "none" };
  },
  "segment-moved-and-linked": (target) => {
    const path = segmentOf(target, 1);
    // Outside of all that is streamdir's.
    const elsewhere = join(target.directory, "..", "..", "..", "elsewhere.seg");
    renameSync(path, elsewhere);
    symlinkSync(elsewhere, path);
    return { kind: "none" };
  },
  "sidecar-flipped": onSidecar((path, { random }) => flipBit(path, random), /./),
  "sidecar-cut": onSidecar(
    (path, { random }) => truncateSync(path, random.integer(1, statSync(path).size - 1)),
    /it is not a whole sidecar/,
  ),
  "sidecar-empty": onSidecar((path) => truncateSync(path, 0), /it is not a whole sidecar/),
  "sidecar-gone": onSidecar((path) => rmSync(path), /it is missing/),
  "sidecar-of-another-stream": onSidecar((path, { twin }) => copyFileSync(sidecarPath(twin), path), /it is that of "twin"/),
  "sidecar-of-the-future": onSidecar((path) => {
    writeFileSync(path, readFileSync(path, "utf8").replace('"format": 1', '"format": 2'));
  }, /format 2 is not known to this version/),
  "sidecar-is-directory": onSidecar((path) => {
    rmSync(path);
    mkdirSync(path);
  }, /it can't be read \(EISDIR\)/),
  "sidecar-links-to-itself": onSidecar((path) => {
    rmSync(path);
    symlinkSync(path, path);
  }, /it can't be read \(ELOOP\)/),
  "directory-is-file": ({ directory }) => {
    rmSync(directory, { recursive: true });
    writeFileSync(directory, "not a directory");
    return { kind: "sidecar", problem: /it can't be read \(ENOTDIR\)/ };
  },
};
