import type { Mutant } from "./mutant.js";

/** Faults of recovery, of loading and letting go of streams, and of the trash. */
export const RECOVERY_MUTANTS: readonly Mutant[] = [
  {
    fault: "records are applied again that the sidecar holds",
    file: "storage/file/recovery/unopened-streams.ts",
    code: "if (batch <= stream.disk.persistedBatch) continue;",
    becomes: "",
    seed: 1,
  },
  {
    fault: "a sidecar that a kill left unsynced counts as permanent",
    file: "storage/file/recovery/unopened-streams.ts",
    code: "stream.disk.hasUnsyncedSidecar = own !== null;",
    becomes: "",
    seed: 124,
  },
  {
    fault: "the directory of a stream that a kill left unsynced is not synced",
    file: "storage/file/recovery/unopened-streams.ts",
    code: "stream.disk.hasNotice = isTold;\n    shards.note(directory);",
    becomes: "stream.disk.hasNotice = isTold;",
    seed: 126,
  },
  {
    fault: "the directories of deleted streams stay where a crash left them",
    file: "storage/file/recovery/recovery.ts",
    code: "if (isTheirs) await options.trash.discard(directory, identity.id);",
    becomes: "void isTheirs;",
    seed: 11,
  },
  {
    fault: "the directory of a deleted stream's successor is taken for its own",
    file: "storage/file/recovery/recovery.ts",
    code: "if (isTheirs) await",
    becomes: "if (isTheirs !== null) await",
    seed: 20,
  },
  {
    fault: "what comes before a large append is not written before it is joined",
    file: "storage/file/recovery/unopened-streams.ts",
    code: "await writer.flushTo(stream, position);\n    if (stream.damage",
    becomes: "if (stream.damage",
    seed: 20,
  },
  {
    fault: "the first append after a crash goes where the sidecar ended",
    file: "storage/file/segments/stream-loader.ts",
    code: "journaled.unreserve();",
    becomes: "",
    seed: 3,
  },
  {
    fault: "a deletion that forks hold up is forgotten by a crash",
    file: "storage/file/recovery/unopened-streams.ts",
    code: "else await applyRecord(stream, record, batch, this.#consequences);",
    becomes: "else if (record.kind !== RecordKind.softDelete) await applyRecord(stream, record, batch, this.#consequences);",
    seed: 59,
  },
  {
    fault: "a fork's link in its source is forgotten by a crash",
    file: "storage/file/recovery/unopened-streams.ts",
    code: "else await applyRecord(stream, record, batch, this.#consequences);",
    becomes: "else if (record.kind !== RecordKind.link) await applyRecord(stream, record, batch, this.#consequences);",
    seed: 33,
  },
  {
    fault: "a new stream does not wait until the one before it has left the directory",
    file: "storage/file/file-storage.ts",
    code: "stream.disk.work = this.#parts.trash.vacated(name);",
    becomes: "",
    seed: 65,
  },
  {
    fault: "a directory is moved away before the deletion is durable",
    file: "storage/file/file-storage.ts",
    code: "return this.#forkTies.delete(ownStream(stored), this.#damageLog.forgetting(stored.name, settle));",
    becomes:
      "this.#trash.take(ownStream(stored));\n    return this.#forkTies.delete(ownStream(stored), this.#damageLog.forgetting(stored.name, settle));",
    seed: 18,
  },
  {
    fault: "the place that a deleted directory left is not synced",
    file: "storage/file/segments/trash.ts",
    code: "this.#shards.note(directory);\n    if (isUnborn)",
    becomes: "if (isUnborn)",
    seed: 52,
  },
  {
    fault: "open files of a deleted stream serve the next of its name",
    file: "storage/file/segments/trash.ts",
    code: "await this.#pool.dropIn(stream.directory);",
    becomes: "",
    seed: 3,
  },
  {
    fault: "a directory is moved away while its stream is written",
    file: "storage/file/segments/trash.ts",
    code: "await before;\n    await Promise.allSettled([stream.disk.work]);",
    becomes: "await before;",
    seed: 411,
  },
];
