import { nameMatcher } from "../../../protocol/names/name-pattern.js";
import type { Position } from "../../storage.js";
import { readWhole } from "../disk/files.js";
import { replaceFile } from "../disk/replacement.js";
import { lossesPath, sidecarPath } from "../format/layout.js";
import { decodeLosses, encodeLosses, type AcceptedLoss } from "../survey/losses.js";
import { endOf } from "../memory/segment.js";
import { decodeSidecar, encodeSidecar, type Sidecar } from "../format/sidecar.js";
import type { OfflineDirectory } from "./offline.js";
import type { RepairOptions, RepairSteps } from "./repair-steps.js";
import { lostSegments, type CheckedStream, type LostSegment } from "../survey/stream-check.js";

/** The names of streams, or patterns of names, whose loss somebody accepts. */
export class AcceptedNames {
  readonly #patterns: readonly { readonly pattern: string; readonly matches: (name: string) => boolean }[];
  readonly #matched = new Set<string>();

  constructor(patterns: readonly string[]) {
    this.#patterns = patterns.map((pattern) => ({ pattern, matches: nameMatcher(pattern) }));
  }

  /** Whether the loss of a stream that is refused is accepted; `null` is nobody's name. */
  has(name: string | null): boolean {
    if (name === null) return false;
    const accepting = this.#patterns.filter(({ matches }) => matches(name));
    for (const { pattern } of accepting) this.#matched.add(pattern);
    return accepting.length > 0;
  }

  /** The names among them that nobody has asked about. */
  get unmatched(): string[] {
    return this.#patterns
      .map(({ pattern }) => pattern)
      .filter((pattern) => !this.#matched.has(pattern) && !pattern.includes("*"));
  }
}

/** What is done when somebody accepts that a refused stream has lost its end. */
export interface Acceptance {
  readonly what: string;
  readonly run: () => Promise<void>;
}

/**
 * How a stream that a repair refused is served again, with what there is of it; or says in words why it can't be. That
 * its end was given up is written beside its sidecar before that is put back: a crash in between leaves the stream
 * refused. `lastBatch` is the journal's: nothing before it is asked for again.
 */
export async function acceptanceOf(
  steps: RepairSteps,
  checked: CheckedStream,
  lastBatch: number,
): Promise<Acceptance | string> {
  const { quarantine, options } = steps;
  const { directory, name, refusal } = checked;
  const kept = await keptSidecar(steps, directory);
  if (kept === null || kept.claimed) {
    return {
      what: "give it up, as its loss is accepted: nothing of it is left, and its name is free",
      run: async () => void (await quarantine.move(directory)),
    };
  }
  const lost = await lostSegments(options.files, kept, directory);
  const unreadable = lost.find(({ state }) => state === "unreadable");
  if (unreadable !== undefined) return `${unreadable.path}: ${unreadable.problem}`;
  const { sidecar, dropped } = withoutLostEnd(kept, lost, lastBatch);
  const { state } = sidecar;
  const { tail } = state;
  // Its forks may share what is lost: no position is given out again.
  state.closed ||= steps.isSource(sidecar.id);
  const run = async (): Promise<void> => {
    for (const { path, state } of dropped) if (state === "wrong") await quarantine.move(path);
    const loss = { position: tail, reason: refusal ?? "", acceptedAtMs: options.nowMs };
    await noteAccepted(options, directory, sidecar, loss);
    await quarantine.replaceSidecar(directory, encodeSidecar(sidecar));
  };
  const end = state.closed ? "it is closed" : `positions from ${tail} on are given out again`;
  return { what: `serve ${JSON.stringify(name)} again with ${tail} bytes, as its loss is accepted: ${end}`, run };
}

/** The last sidecar kept when the stream was refused: it holds the most of the journal. `null` without one. */
export async function keptSidecar(
  { quarantine, options }: Pick<RepairSteps, "quarantine"> & { readonly options: Pick<OfflineDirectory, "layout"> },
  directory: string,
): Promise<Sidecar | null> {
  let best: Sidecar | null = null;
  for await (const copy of quarantine.copiesOf(sidecarPath(directory))) {
    const read = decodeSidecar(copy);
    if (read.kind !== "sound" || options.layout.streamDirectory(read.sidecar.name) !== directory) continue;
    if (best === null || read.sidecar.batch >= best.batch) best = read.sidecar;
  }
  return best;
}

/** The sidecar without those last segments that are lost: the stream ends before them. */
function withoutLostEnd(
  kept: Sidecar,
  lost: readonly LostSegment[],
  lastBatch: number,
): { readonly sidecar: Sidecar; readonly dropped: readonly LostSegment[] } {
  const { segments, state, earliest, config } = kept;
  const lostStarts = new Set(lost.map(({ start }) => start));
  const count = segments.findLastIndex(({ start }) => !lostStarts.has(start)) + 1;
  const left = segments.slice(0, count);
  const last = left.at(-1);
  const begins = Math.max(earliest.position, config.forkedFrom?.point ?? 0);
  const tail: Position =
    count === segments.length ? state.tail : Math.max(begins, last === undefined ? 0 : endOf(last));
  const dropped = lost.filter(({ start }) => start >= tail && count < segments.length);
  state.tail = tail;
  return { sidecar: { ...kept, segments: left, batch: Math.max(kept.batch, lastBatch) }, dropped };
}

async function noteAccepted(
  { files }: RepairOptions,
  directory: string,
  { id, name }: Sidecar,
  loss: AcceptedLoss,
): Promise<void> {
  const path = lossesPath(directory);
  const before = decodeLosses((await readWhole(files, path)) ?? Buffer.alloc(0));
  // What an acceptance that was cut short has written already is not written twice.
  const isSame = ({ position, reason }: AcceptedLoss): boolean => position === loss.position && reason === loss.reason;
  const earlier =
    typeof before === "string" || before.id !== id ? [] : before.accepted.filter((known) => !isSame(known));
  await replaceFile(files, path, encodeLosses({ id, name, accepted: [...earlier, loss] }));
  await files.syncDirectory(directory);
}
