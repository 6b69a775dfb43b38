import { hash as hashOf } from "node:crypto";
import { basename, join, sep } from "node:path";
import type { Position } from "../../storage.js";

/** Longest escaped name that is kept whole as a directory's name, in bytes. */
const MAX_ESCAPED_BYTES = 200;
/** What is left of a longer one, before `~` and the SHA-256 of the name. */
const CUT_ESCAPED_BYTES = 128;
const SPARE_SUFFIX = ".spare";
const PINNED_SUFFIX = ".pinned";
const SOCKET_SUFFIX = ".sock";
const KEPT_SUFFIX = ".kept";
/** What may be in a data directory, beside what the lock leaves there, and what upgrades keep. */
const OWN_NAMES: ReadonlySet<string> = new Set([
  "streamdir.json",
  "streamdir.json.new",
  "lock",
  "names",
  "names.new",
  "journal",
  "streams",
  "trash",
  "damaged",
  "backup.json",
  "backup.json.new",
]);
/** Nearly every name: nothing in it is to be escaped. */
const PLAIN_NAME = /^[a-z0-9_-]+$/;

/** Where everything is in a data directory. */
export class Layout {
  readonly root: string;
  readonly lock: string;
  readonly marker: string;
  /** Says that the directory is a backup, and of which one. */
  readonly backup: string;
  /** The names of all streams, for the first list after a start. */
  readonly names: string;
  readonly journal: string;
  readonly streams: string;
  readonly trash: string;
  /** What was set aside because it is not what was written. */
  readonly damaged: string;
  /** The last stream asked for: to make one takes its directory twice. */
  #lastName: string | null = null;
  #lastDirectory = "";

  constructor(root: string) {
    this.root = root;
    this.lock = join(root, "lock");
    this.marker = join(root, "streamdir.json");
    this.backup = join(root, "backup.json");
    this.names = join(root, "names");
    this.journal = join(root, "journal");
    this.streams = join(root, "streams");
    this.trash = join(root, "trash");
    this.damaged = join(root, "damaged");
  }

  journalFile(sequence: number): string {
    return join(this.journal, `${digits16(sequence)}.journal`);
  }

  /** Where the records of a journal file are kept that the files of their streams could not take. */
  keptJournalFile(sequence: number): string {
    return join(this.journal, `${digits16(sequence)}${KEPT_SUFFIX}`);
  }

  /** The directory of the stream `name`. */
  streamDirectory(name: string): string {
    if (name === this.#lastName) return this.#lastDirectory;
    const hash = hashOf("sha256", name);
    this.#lastName = name;
    // Joined by one call that leaves no trace: every stream in memory keeps this path.
    this.#lastDirectory = [this.streams, hash.slice(0, 2), directoryName(name, hash)].join(sep);
    return this.#lastDirectory;
  }

  /** The name of the stream whose directory this is; `null` when it is nobody's, or the name is cut in it. */
  nameOf(streamDirectory: string): string | null {
    const name = unescapeName(basename(streamDirectory));
    return name !== null && this.streamDirectory(name) === streamDirectory ? name : null;
  }

  /** The directory that holds a stream's directory: one of 256. */
  shard(streamDirectory: string): string {
    return join(streamDirectory, "..");
  }
}

/** Where an upgrade to a format keeps the files that it changed, as they were. */
export function formerFilesPath(layout: Layout, format: number): string {
  return join(layout.root, `before-format-${format}`);
}

/** Whether a name in `streams/` is that of one of the 256 directories of streams. */
export function isShardName(fileName: string): boolean {
  return /^[0-9a-f]{2}$/.test(fileName);
}

/** Whether a name in the data directory is one that streamdir gives. */
export function isOwnName(fileName: string): boolean {
  return OWN_NAMES.has(fileName) || claimIdOf(fileName) !== null || isFormerFiles(fileName);
}

/** Whether a name in the data directory is that of a directory with former files. */
export function isFormerFiles(fileName: string): boolean {
  return /^before-format-\d+$/.test(fileName);
}

/** Who asks for the lock at `path` under the id: 16 hex digits. */
export function claimPath(lockPath: string, id: string): string {
  return `${lockPath}.${id}`;
}

/** The name of the socket on which the claim with this id can be reached, also after it has become the lock. */
export function claimSocket(lockPath: string, id: string): string {
  return `${basename(claimPath(lockPath, id))}${SOCKET_SUFFIX}`;
}

/** Whether a name in the data directory is that of a claim's socket. */
export function isLockSocket(fileName: string): boolean {
  return fileName.endsWith(SOCKET_SUFFIX) && claimIdOf(fileName) !== null;
}

/** The id in the name of a claim, of its socket, or of a draft of either; `null` when it is no such name. */
export function claimIdOf(fileName: string): string | null {
  return /^lock\.([0-9a-f]{16})(\.sock)?(\.new)?$/.exec(fileName)?.[1] ?? null;
}

/** The sidecar in a stream's directory. */
export function sidecarPath(streamDirectory: string): string {
  return join(streamDirectory, "meta.json");
}

/** Where a stream's sidecar is while a notice has its place. */
export function coveredSidecarPath(streamDirectory: string): string {
  return `${sidecarPath(streamDirectory)}.damaged`;
}

/** What a stream's directory keeps of accepted losses. */
export function lossesPath(streamDirectory: string): string {
  return join(streamDirectory, "losses.json");
}

/** Where a file is written that is to take the place of the one at `path`. */
export function replacementPath(path: string): string {
  return `${path}.new`;
}

/** The segment that begins at `start`. */
export function segmentPath(streamDirectory: string, start: Position): string {
  return join(streamDirectory, `${digits16(start)}.seg`);
}

/** The index of the segment that begins at `start`, where that is too long for the sidecar. */
export function indexPath(streamDirectory: string, start: Position): string {
  return join(streamDirectory, `${digits16(start)}.idx`);
}

/** The start of the segment in an index's file name, `null` when it is no such name. */
export function indexStartOf(fileName: string): Position | null {
  const match = /^(\d{16})\.idx$/.exec(fileName);
  return match === null ? null : Number(match[1]);
}

/** The start in a segment's file name, `null` when it is no such name. */
export function segmentStartOf(fileName: string): Position | null {
  const match = /^(\d{16})\.seg$/.exec(fileName);
  return match === null ? null : Number(match[1]);
}

/** Where a journal file waits to be used again: under a name that recovery does not read. */
export function sparePath(journalFile: string): string {
  return `${journalFile}${SPARE_SUFFIX}`;
}

/** Where a journal file stays for a backup that may still have to copy it, under a name that recovery does not read. */
export function pinnedPath(journalFile: string): string {
  return `${journalFile}${PINNED_SUFFIX}`;
}

/** Whether a name in the journal's directory is that of a file that recovery does not read: a spare or a pinned one. */
export function isPutAside(fileName: string): boolean {
  return fileName.endsWith(SPARE_SUFFIX) || fileName.endsWith(PINNED_SUFFIX);
}

/** The sequence in the name of a pinned file, `null` when it is no such name. */
export function pinnedSequenceOf(fileName: string): number | null {
  return fileName.endsWith(PINNED_SUFFIX) ? journalSequenceOf(fileName.slice(0, -PINNED_SUFFIX.length)) : null;
}

/** The sequence in a journal file's name, `null` when it is no such name. */
export function journalSequenceOf(fileName: string): number | null {
  const match = /^(\d{16})\.journal$/.exec(fileName);
  return match === null ? null : Number(match[1]);
}

/** The sequence in the name of a file with kept records, `null` when it is no such name. */
export function keptSequenceOf(fileName: string): number | null {
  const match = /^(\d{16})\.kept$/.exec(fileName);
  return match === null ? null : Number(match[1]);
}

/** Whether a name in the journal's directory is that of a file with kept records before it is in its place. */
export function isKeptDraft(fileName: string): boolean {
  return fileName.endsWith(`${KEPT_SUFFIX}.new`);
}

function digits16(value: number): string {
  return String(value).padStart(16, "0");
}

/**
 * A name that any file system takes, also one that ignores case: lower-case letters, digits, `-`, `_` and inner dots
 * stay, every other byte becomes `%XX`.
 */
export function escapeName(name: string): string {
  if (PLAIN_NAME.test(name)) return name;
  const bytes = Buffer.from(name, "utf8");
  const escaped = Buffer.allocUnsafe(3 * bytes.length);
  let end = 0;
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes.readUInt8(index);
    const inner = index > 0 && index < bytes.length - 1;
    if (isPlain(byte, inner)) end = escaped.writeUInt8(byte, end);
    else end += escaped.write(`%${byte.toString(16).toUpperCase().padStart(2, "0")}`, end, "latin1");
  }
  return escaped.toString("latin1", 0, end);
}

/**
 * The name of the stream whose directory has this name in its shard; `null` where that is cut, or no name. Only what is
 * in the directory says whether the stream is there.
 */
export function nameOfEntry(entry: string): string | null {
  return entry.includes("~") ? null : unescapeName(entry);
}

function unescapeName(escaped: string): string | null {
  try {
    return decodeURIComponent(escaped);
  } catch {
    // No name is escaped like this.
    return null;
  }
}

function isPlain(byte: number, inner: boolean): boolean {
  const isLower = byte >= 0x61 && byte <= 0x7a;
  const isDigit = byte >= 0x30 && byte <= 0x39;
  const isDash = byte === 0x2d || byte === 0x5f;
  const isDot = byte === 0x2e && inner;
  return isLower || isDigit || isDash || isDot;
}

function directoryName(name: string, hash: string): string {
  const escaped = escapeName(name);
  return escaped.length <= MAX_ESCAPED_BYTES ? escaped : `${escaped.slice(0, CUT_ESCAPED_BYTES)}~${hash}`;
}
