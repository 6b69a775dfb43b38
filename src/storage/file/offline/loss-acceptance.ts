import type { Position } from "../../storage.js";
import type { Quarantine } from "../directory/quarantine.js";
import { readWhole, replaceFile, type Files } from "../disk/files.js";
import { lossesPath, sidecarPath, type Layout } from "../format/layout.js";
import { decodeLosses, encodeLosses, type AcceptedLoss } from "../survey/losses.js";
import { endOf } from "../memory/segment.js";
import { decodeSidecar, encodeSidecar, type Sidecar } from "../format/sidecar.js";
import { lostSegments, type CheckedStream, type LostSegment } from "../survey/stream-check.js";

/** What an acceptance works with. */
export interface AcceptanceOptions {
  readonly files: Files;
  readonly layout: Layout;
  readonly quarantine: Quarantine;
  readonly nowMs: number;
  /** The journal's last batch: nothing before it is asked for again. */
  readonly lastBatch: number;
  /** Whether the stream of this id has forks: they may share what is lost, so no position is given out again. */
  readonly isSource: (id: string) => boolean;
}

/** What is done when somebody accepts that a refused stream has lost its end. */
export interface Acceptance {
  readonly what: string;
  readonly run: () => Promise<void>;
}

/**
 * How a stream that a repair refused is served again, with what there is of it; or says in words why it can't be. That
 * its end was given up is written beside its sidecar before that is put back: a crash in between leaves the stream
 * refused.
 */
export async function acceptanceOf(options: AcceptanceOptions, checked: CheckedStream): Promise<Acceptance | string> {
  const { layout, quarantine } = options;
  const { directory, name, refusal } = checked;
  const kept = await keptSidecar(quarantine, layout, directory);
  if (kept === null || kept.claimed) {
    return {
      what: "give it up, as its loss is accepted: nothing of it is left, and its name is free",
      run: async () => void (await quarantine.move(directory)),
    };
  }
  const lost = await lostSegments(
    { ...options, trimmedTo: 0, readSegments: true, onBytes: () => undefined },
    kept,
    directory,
  );
  const unreadable = lost.find(({ state }) => state === "unreadable");
  if (unreadable !== undefined) return `${unreadable.path}: ${unreadable.problem}`;
  const { sidecar, dropped } = withoutLostEnd(kept, lost, options.lastBatch);
  const { state } = sidecar;
  const { tail } = state;
  state.closed ||= options.isSource(sidecar.id);
  const run = async (): Promise<void> => {
    for (const { path, state } of dropped) if (state === "wrong") await quarantine.move(path);
    await noteAccepted(options, directory, sidecar, {
      position: tail,
      reason: refusal ?? "",
      acceptedAtMs: options.nowMs,
    });
    await quarantine.replaceSidecar(directory, encodeSidecar(sidecar));
  };
  const end = state.closed ? "it is closed" : `positions from ${tail} on are given out again`;
  return { what: `serve ${JSON.stringify(name)} again with ${tail} bytes, as its loss is accepted: ${end}`, run };
}

/**
 * The last sidecar that was kept when the stream was refused: it holds the most of the journal. `null` when there is
 * none.
 */
export async function keptSidecar(quarantine: Quarantine, layout: Layout, directory: string): Promise<Sidecar | null> {
  let best: Sidecar | null = null;
  for await (const copy of quarantine.copiesOf(sidecarPath(directory))) {
    const read = decodeSidecar(copy);
    if (read.kind !== "sound" || layout.streamDirectory(read.sidecar.name) !== directory) continue;
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
  { files }: AcceptanceOptions,
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
