import { reasonOf } from "../disk/error-reasons.js";
import { isSystemError, readWhole, type Files } from "../disk/files.js";
import { replaceFile } from "../disk/replacement.js";
import type { Layout } from "../format/layout.js";
import { FORMAT } from "../format/sidecar.js";
import { NEVER_RESTORED, type Restores } from "../memory/restores.js";
import { DirectoryError } from "./lock.js";

/** What a data directory says of itself (docs/format.md). */
export interface Marker {
  readonly format: number;
  readonly directoryId: Buffer;
  readonly restores: Restores;
  /** The format that an upgrade is changing its files to: until it is done they are of neither; `null` at rest. */
  readonly upgradingTo: number | null;
}

const MARKER =
  /^\{"format":\d+,"directory":"([0-9a-f]{16})"(?:,"restoredAtMs":\[(\d+(?:,\d+)*)\])?(?:,"upgradingTo":(\d+))?\}\n$/;
const OF_ANOTHER_VERSION = /^\{"format":\d+,"directory":"[0-9a-f]{16}",".*\}\n$/;

/**
 * The marker of a data directory, also in the middle of an upgrade; `null` when there is none. Throws {@link
 * DirectoryError} when it is damaged, of a newer format than `known`, or still to be written by a backup.
 */
export async function findMarker(files: Files, layout: Layout, known = FORMAT): Promise<Marker | null> {
  const bytes = await readWhole(files, layout.marker).catch((error: unknown) => {
    throw isSystemError(error) ? new DirectoryError(`${layout.marker} can't be read: ${reasonOf(error)}`) : error;
  });
  if (bytes !== null) return parseMarker(layout, bytes, known);
  if ((await readWhole(files, layout.backup)) !== null)
    throw new DirectoryError(`${layout.root} is a backup that is not complete: run streamdir backup again`);
  return null;
}

/** The id of a data directory that this version can use; `null` without a marker. Throws {@link DirectoryError}. */
export async function readMarker(files: Files, layout: Layout): Promise<Buffer | null> {
  const marker = await findMarker(files, layout);
  return marker === null ? null : usableId(layout, marker);
}

/** The id of a directory whose files this version can use. Throws {@link DirectoryError}. */
export function usableId(layout: Layout, { format, directoryId, upgradingTo }: Marker): Buffer {
  if (upgradingTo !== null) {
    const which = upgradingTo > FORMAT ? ` of a version that knows format ${upgradingTo}` : "";
    throw new DirectoryError(
      `an upgrade of ${layout.root} to format ${upgradingTo} was cut short: run streamdir upgrade again${which}`,
    );
  }
  if (format !== FORMAT) {
    throw new DirectoryError(
      `${layout.marker} has format ${format}; this version knows format ${FORMAT}: streamdir upgrade brings it there`,
    );
  }
  return directoryId;
}

/** Puts `marker` in the place of the one that is there, if any; permanent when it resolves. */
export async function replaceMarker(
  files: Files,
  layout: Layout,
  { format, directoryId, restores, upgradingTo }: Marker,
): Promise<void> {
  const restored = restores.length === 0 ? {} : { restoredAtMs: restores };
  const upgrading = upgradingTo === null ? {} : { upgradingTo };
  const members = { format, directory: directoryId.toString("hex"), ...restored, ...upgrading };
  await replaceFile(files, layout.marker, Buffer.from(`${JSON.stringify(members)}\n`));
  await files.syncDirectory(layout.root);
}

function parseMarker(layout: Layout, bytes: Buffer, known: number): Marker {
  const text = bytes.toString("utf8");
  // Of a newer format only the number is known.
  const format = Number(/^\{"format":(\d+)[,}]/.exec(text)?.[1]);
  if (format > known) {
    throw new DirectoryError(
      `${layout.marker} has format ${format}; this version knows format ${known}: use a newer version of streamdir`,
    );
  }
  const [, id, restoredAtMs, upgradingTo] = MARKER.exec(text) ?? [];
  if (id === undefined) {
    const says = OF_ANOTHER_VERSION.test(text)
      ? "says what this version does not know: use a newer version of streamdir"
      : "is damaged";
    throw new DirectoryError(`${layout.marker} ${says}`);
  }
  return {
    format,
    directoryId: Buffer.from(id, "hex"),
    restores: restoredAtMs?.split(",").map(Number) ?? NEVER_RESTORED,
    upgradingTo: upgradingTo === undefined ? null : Number(upgradingTo),
  };
}
