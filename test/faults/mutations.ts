import { crc32 } from "node:zlib";
import { readWhole, syncsWrites, type Files, type OpenFile, type OpenMode } from "../../src/storage/file/disk/files.js";
import { segmentPath } from "../../src/storage/file/format/layout.js";
import { crcOf } from "../../src/storage/file/segments/segment-reader.js";
import { decodeSidecar, encodeSidecar } from "../../src/storage/file/format/sidecar.js";

/** A file system that does something wrong, between the server and the disk. */
export type Mutation = (files: Files) => Files;

type Wrap = (file: OpenFile, path: string) => OpenFile;

/** No sync does anything. */
export const withoutSync: Mutation = (files) => ({
  ...wrapping(files, (file) => changed(file, { sync: () => Promise.resolve() })),
  open: async (path, mode) => changed(await openUnsynced(files, path, mode), { sync: () => Promise.resolve() }),
  syncDirectory: () => Promise.resolve(),
});

/** No sync of a directory does anything. */
export const withoutDirectorySync: Mutation = (files) => ({ ...wrapping(files, (file) => file), syncDirectory: () => Promise.resolve() });

/** The sidecar takes its place without having been synced. */
export const withoutSidecarSync: Mutation = (files) => ({
  ...wrapping(files, (file) => file),
  open: (path, mode) => (path.endsWith("/meta.json.new") ? openUnsynced(files, path, mode) : files.open(path, mode)),
});

/** The CRC of a journal frame is right whatever the frame holds, as if nobody looked at it. */
export const withoutFrameCrc: Mutation = (files) => readingJournal(files, makeSound);

/** Of a torn frame the records are taken that seem to be whole. */
export const withTornRecords: Mutation = (files) => readingJournal(files, keepFirstRecord);

/** The CRCs of segments are what the segments hold, as if nobody compared them. */
export const withoutSegmentCrc: Mutation = (files) =>
  wrapping(files, (file, path) => {
    if (!path.endsWith("/meta.json")) return file;
    const directory = path.slice(0, path.lastIndexOf("/"));
    return changed(file, {
      async read(target, offset, length, position) {
        const whole = Buffer.alloc(await file.size());
        await fill(file, whole);
        const forged = await withActualCrcs(files, directory, whole);
        return forged.copy(target, offset, position, position + length);
      },
    });
  });

/** A segment is synced only after the sidecar that speaks of it has been put in its place. */
export const withSidecarBeforeSegment: Mutation = (files) => {
  const owed = new Map<string, Set<string>>();
  const wrapped = wrapping(files, (file, path) => {
    if (!path.endsWith(".seg")) return file;
    return changed(file, {
      sync() {
        const directory = path.slice(0, path.lastIndexOf("/"));
        owed.set(directory, (owed.get(directory) ?? new Set()).add(path));
        return Promise.resolve();
      },
    });
  });
  return {
    ...wrapped,
    async rename(from, to) {
      await files.rename(from, to);
      if (!to.endsWith("/meta.json")) return;
      const directory = to.slice(0, to.lastIndexOf("/"));
      await files.syncDirectory(directory);
      for (const path of owed.get(directory) ?? []) await syncAt(files, path);
      owed.delete(directory);
    },
  };
};

/** The journal is freed first, and only then what it held is made permanent in the streams' own files. */
export const withJournalFreedFirst: Mutation = (files) => {
  const owedFiles = new Set<string>();
  const owedDirectories = new Set<string>();
  const wrapped = wrapping(files, (file, path) => {
    if (!path.includes("/streams/")) return file;
    return changed(file, { sync: () => Promise.resolve(void owedFiles.add(path)) });
  });
  const pay = async (): Promise<void> => {
    // What was renamed or removed meanwhile is not where it was.
    for (const path of owedFiles) await syncAt(files, path.replace(/\.new$/, "")).catch(() => undefined);
    for (const path of owedDirectories) await files.syncDirectory(path).catch(() => undefined);
    owedFiles.clear();
    owedDirectories.clear();
  };
  const isFreed = (path: string): boolean => path.endsWith(".journal");
  return {
    ...wrapped,
    async open(path, mode) {
      if (mode !== "replacement") return wrapped.open(path, mode);
      owedFiles.add(path);
      return openUnsynced(files, path, mode);
    },
    rename: (from, to) => files.rename(from, to).then(() => (isFreed(from) ? pay() : undefined)),
    unlink: (path) => files.unlink(path).then(() => (isFreed(path) ? pay() : undefined)),
    syncDirectory: (path) => (path.includes("/streams/") ? Promise.resolve(void owedDirectories.add(path)) : files.syncDirectory(path)),
  };
};

/** A file whose writes are not synced, whatever the mode says. */
async function openUnsynced(files: Files, path: string, mode: OpenMode): Promise<OpenFile> {
  const file = await files.open(path, syncsWrites(mode) ? "write" : mode);
  if (mode === "replacement") await file.truncate(0);
  return file;
}

async function syncAt(files: Files, path: string): Promise<void> {
  const file = await files.open(path, "read");
  await file.sync();
  await file.close();
}

/** Journal files are read with `change` made to what they hold. */
function readingJournal(files: Files, change: (bytes: Buffer) => void): Files {
  return wrapping(files, (file, path) => {
    if (!path.endsWith(".journal")) return file;
    return changed(file, {
      async read(target, offset, length, position) {
        const part = target.subarray(offset, offset + length);
        if (position > 0) return file.read(target, offset, length, position);
        const count = await fill(file, part);
        change(part.subarray(0, count));
        return count;
      },
    });
  });
}

/** Fills `target` from the file's start; resolves to how much there was. */
async function fill(file: OpenFile, target: Buffer): Promise<number> {
  let filled = 0;
  while (filled < target.length) {
    const count = await file.read(target, filled, target.length - filled, filled);
    if (count === 0) break;
    filled += count;
  }
  return filled;
}

async function withActualCrcs(files: Files, directory: string, bytes: Buffer): Promise<Buffer> {
  const read = decodeSidecar(bytes);
  if (read.kind === "damaged") return bytes;
  const segments = await Promise.all(
    read.sidecar.segments.map(async (segment) => ({
      ...segment,
      crc: await actualCrc(files, segmentPath(directory, segment.start), segment.length),
    })),
  );
  return encodeSidecar({ ...read.sidecar, segments });
}

async function actualCrc(files: Files, path: string, length: number): Promise<number> {
  if ((await readWhole(files, path)) === null) return 0;
  const file = await files.open(path, "read");
  try {
    return await crcOf(file, length);
  } finally {
    await file.close();
  }
}

function wrapping(files: Files, wrap: Wrap): Files {
  return {
    open: async (path, mode) => wrap(await files.open(path, mode), path),
    createNew: async (path) => wrap(await files.createNew(path), path),
    list: (directory) => files.list(directory),
    makeDirectory: (path) => files.makeDirectory(path),
    rename: (from, to) => files.rename(from, to),
    unlink: (path) => files.unlink(path),
    removeTree: (path) => files.removeTree(path),
    syncDirectory: (path) => files.syncDirectory(path),
    linkTarget: (path) => files.linkTarget(path),
    listen: (path, accept) => files.listen(path, accept),
    reach: (path) => files.reach(path),
  };
}

function changed(file: OpenFile, changes: Partial<OpenFile>): OpenFile {
  return {
    read: (target, offset, length, position) => file.read(target, offset, length, position),
    write: (bytes, position) => file.write(bytes, position),
    writeThen: (bytes, position, done) => file.writeThen(bytes, position, done),
    sync: () => file.sync(),
    truncate: (length) => file.truncate(length),
    size: () => file.size(),
    close: () => file.close(),
    ...changes,
  };
}

const SECTOR_BYTES = 512;
const FRAME_HEADER_BYTES = 48;

/** Where frames seem to be from the start of a journal file on, whatever their CRC says. */
function* framesIn(bytes: Buffer): Generator<{ readonly offset: number; readonly length: number }> {
  let offset = 0;
  while (offset + FRAME_HEADER_BYTES <= bytes.length && bytes.toString("latin1", offset, offset + 4) === "SDJ1") {
    const length = bytes.readUInt32LE(offset + 4);
    if (length < FRAME_HEADER_BYTES || offset + length > bytes.length) return;
    yield { offset, length };
    offset += Math.ceil(length / SECTOR_BYTES) * SECTOR_BYTES;
  }
}

/** Gives every frame the CRC of what it holds. */
function makeSound(bytes: Buffer): void {
  for (const { offset, length } of framesIn(bytes)) bytes.writeUInt32LE(crcAt(bytes, offset, length), offset + 8);
}

/** Makes of each frame that is not sound one of its first record. */
function keepFirstRecord(bytes: Buffer): void {
  for (const { offset, length } of framesIn(bytes)) {
    if (length === FRAME_HEADER_BYTES || bytes.readUInt32LE(offset + 8) === crcAt(bytes, offset, length)) continue;
    const kept = FRAME_HEADER_BYTES + bytes.readUInt32LE(offset + FRAME_HEADER_BYTES);
    if (kept > length) return;
    bytes.writeUInt32LE(kept, offset + 4);
    bytes.writeUInt32LE(1, offset + 12);
    bytes.writeUInt32LE(crcAt(bytes, offset, kept), offset + 8);
  }
}

function crcAt(bytes: Buffer, offset: number, length: number): number {
  return crc32(bytes.subarray(offset + 12, offset + length));
}
