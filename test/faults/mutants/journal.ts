import type { Mutant } from "./mutant.js";

/** Faults of the journal, and of the order in which changes get there. */
export const JOURNAL_MUTANTS: readonly Mutant[] = [
  {
    fault: "a duplicate is answered before its original is durable",
    file: "stream/stream.ts",
    code: "const answer = this.#answerWhenDurable((tail, closed) => this.#appended(tail, closed, true, hasData, producer));",
    becomes: "const answer = this.#appended(this.#reserved.tail, this.#reserved.closed, true, hasData, producer);",
    seed: 6,
  },
  {
    fault: "a refusal is answered before what it cites is durable",
    file: "stream/stream.ts",
    code: "return chain(this.#answerWhenDurable((tail) => (decision.closed === true ? { ...decision, nextOffset: this.offsetAt(tail) } : decision)), answer);",
    becomes: "return answer(decision.closed === true ? { ...decision, nextOffset: this.offsetAt(this.#reserved.tail) } : decision);",
    seed: 21,
  },
  {
    fault: "a creation that finds the stream there is answered before that is durable",
    file: "stream/registry.ts",
    code: "return stream.whenDurable((): CreateOutcome => {\n      if (!matches",
    becomes: "return ((run: () => CreateOutcome) => run())((): CreateOutcome => {\n      if (!matches",
    seed: 4,
  },
  {
    fault: "an append finds no stream before its deletion is durable",
    file: "stream/registry.ts",
    code: "return stream.whenGone((): Refused => (stream.phase === \"kept\" ? GONE : NOT_FOUND));",
    becomes: "return NOT_FOUND;",
    seed: 20,
  },
  {
    fault: "a read finds no stream before its deletion is durable",
    file: "stream/registry.ts",
    code: 'if (stream.phase === "kept") return GONE;\n    return',
    becomes: 'if (stream.phase === "kept") return GONE;\n    if (stream.phase === "deleting") return NOT_FOUND;\n    return',
    seed: 2,
  },
  {
    fault: "nothing is done about the last frame after a crash",
    file: "storage/file/recovery.ts",
    code: "await makeLastFrameLast(options, scanned);",
    becomes: "",
    seed: 59,
  },
  {
    fault: "the last frame, which a kill may have left unsynced, is not written again",
    file: "storage/file/recovery.ts",
    code: "await file.write(await readFully(file, offset, length), offset);",
    becomes: "",
    seed: 26,
  },
  {
    fault: "what is behind the last frame is left there",
    file: "storage/file/recovery.ts",
    code: "if (end < (await file.size())) await file.write(NO_FRAME, end);",
    becomes: "",
    seed: 135,
  },
  {
    fault: "a frame whose sync found no room stays where it is",
    file: "storage/file/journal.ts",
    code: "if (sent.isThere) await file.file.write(NO_FRAME, offset);",
    becomes: "",
    seed: 97,
  },
  {
    fault: "what failed with a frame stays reserved",
    file: "storage/file/journal.ts",
    code: "for (const stream of new Set(failing.map((entry) => entry.stream))) stream.unreserve();",
    becomes: "",
    seed: 20,
  },
  {
    fault: "a frame whose write failed is acknowledged",
    file: "storage/file/journal.ts",
    code: 'if (!isDiskFull(error)) return this.#faulted(sent.entries, error);',
    becomes: 'if (!isDiskFull(error)) return this.#settle(sent.entries, sent.batch);',
    seed: 19,
  },
  {
    fault: "a fork's creation is written without the link in its source",
    file: "storage/file/frame-encoder.ts",
    code: "if (companion !== null) this.#put(companion, companionIdentity, file);",
    becomes: "",
    seed: 20,
  },
];
