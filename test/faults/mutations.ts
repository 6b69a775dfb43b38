import { crc32 } from "node:zlib";
import type { Files, OpenFile } from "../../src/storage/file/files.js";

/** A file system that does something wrong, between the server and the disk. */
export type Mutation = (files: Files) => Files;

type Wrap = (file: OpenFile, path: string) => OpenFile;

/** No sync does anything. */
export const withoutSync: Mutation = (files) => ({
  ...wrapping(files, (file) => changed(file, { sync: () => Promise.resolve() })),
  open: (path, mode) => files.open(path, mode === "log" ? "write" : mode).then((file) => changed(file, { sync: () => Promise.resolve() })),
  syncDirectory: () => Promise.resolve(),
});

/** The CRC of a journal frame is right whatever the frame holds, as if nobody looked at it. */
export const withoutFrameCrc: Mutation = (files) =>
  wrapping(files, (file, path) => {
    if (!path.endsWith(".journal")) return file;
    return changed(file, {
      async read(target, offset, length, position) {
        const count = await file.read(target, offset, length, position);
        if (position === 0) makeSound(target.subarray(offset, offset + count));
        return count;
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

async function syncAt(files: Files, path: string): Promise<void> {
  const file = await files.open(path, "write");
  await file.sync();
  await file.close();
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

/** Gives every frame from the start of a journal file on the CRC of what it holds. */
function makeSound(bytes: Buffer): void {
  let offset = 0;
  while (offset + 40 <= bytes.length && bytes.toString("latin1", offset, offset + 4) === "SDJ1") {
    const length = bytes.readUInt32LE(offset + 4);
    if (length < 40 || offset + length > bytes.length) return;
    bytes.writeUInt32LE(crc32(bytes.subarray(offset + 12, offset + length)), offset + 8);
    offset += Math.ceil(length / SECTOR_BYTES) * SECTOR_BYTES;
  }
}
