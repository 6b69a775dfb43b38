import type { Mutant } from "./mutant.js";

/** Faults of recovery, of loading and letting go of streams, and of the trash. */
export const RECOVERY_MUTANTS: readonly Mutant[] = [
  {
    fault: "a sidecar that a kill left unsynced counts as permanent",
    file: "storage/file/backlog.ts",
    code: "stream.hasUnsyncedSidecar = own !== null;",
    becomes: "",
    seed: 102,
  },
  {
    fault: "the directory of a stream that a kill left unsynced is not synced",
    file: "storage/file/backlog.ts",
    code: "writer.noteShard(directory);\n    if (own === null) {",
    becomes: "if (own === null) {",
    seed: 29,
  },
  {
    fault: "the directories of deleted streams stay where a crash left them",
    file: "storage/file/recovery.ts",
    code: "if (isTheirs) await options.trash.discard(directory, identity.id);",
    becomes: "void isTheirs;",
    seed: 4,
  },
  {
    fault: "the directory of a deleted stream's successor is taken for its own",
    file: "storage/file/recovery.ts",
    code: "if (isTheirs) await",
    becomes: "if (isTheirs !== null) await",
    seed: 23,
  },
  {
    fault: "what comes before a large append is not written before it is joined",
    file: "storage/file/backlog.ts",
    code: "await writer.flushTo(stream, position);\n    if (stream.damage",
    becomes: "if (stream.damage",
    seed: 15,
  },
  {
    fault: "the first append after a crash goes where the sidecar ended",
    file: "storage/file/file-storage.ts",
    code: "if (stream === null) return null;\n    stream.unreserve();",
    becomes: "if (stream === null) return null;",
    seed: 2,
  },
  {
    fault: "a deletion that forks hold up is forgotten by a crash",
    file: "storage/file/backlog.ts",
    code: "if (record.kind === RecordKind.softDelete) return stream.softDelete(batch);",
    becomes: "if (record.kind === RecordKind.softDelete) return;",
    seed: 9,
  },
  {
    fault: "a new stream does not wait until the one before it has left the directory",
    file: "storage/file/file-storage.ts",
    code: "stream.work = this.#trash.vacated(name);",
    becomes: "",
    seed: 59,
  },
  {
    fault: "a directory is moved away before the deletion is durable",
    file: "storage/file/trash.ts",
    code: "await durable;\n    await Promise.allSettled([stream.work]);",
    becomes: "await Promise.allSettled([stream.work]);",
    seed: 6,
  },
  {
    fault: "the place that a deleted directory left is not synced",
    file: "storage/file/trash.ts",
    code: "noteShard(directory);\n    if (isUnborn)",
    becomes: "if (isUnborn)",
    seed: 33,
  },
  {
    fault: "open files of a deleted stream serve the next of its name",
    file: "storage/file/trash.ts",
    code: "await this.#options.pool.dropIn(stream.directory);",
    becomes: "",
    seed: 22,
  },
  {
    fault: "a directory is moved away while its stream is written",
    file: "storage/file/trash.ts",
    code: "await durable;\n    await Promise.allSettled([stream.work]);",
    becomes: "await durable;",
    seed: 22,
  },
];
