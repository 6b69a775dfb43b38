import { join } from "node:path";
import type { Clock } from "../../ops/clock.js";
import { DamagedStreamError, type ListedStream } from "../storage.js";
import { endOf } from "./file-stream.js";
import { readWhole, type Files } from "./files.js";
import { sidecarPath, type Layout } from "./layout.js";
import { decodeSidecar, type Sidecar } from "./sidecar.js";

/** Sidecars read between two pauses, and how long those are: listing a million streams disturbs nobody. */
const BURST = 16;
const PAUSE_MS = 10;

/** The sidecar of the stream `name`, `null` when the directory holds no such stream, or what is wrong with it. */
export async function readSidecar(files: Files, name: string, directory: string): Promise<Sidecar | DamagedStreamError | null> {
  const path = sidecarPath(directory);
  const bytes = await readWhole(files, path);
  if (bytes === null) {
    const leftovers = await files.list(directory);
    return leftovers.some((file) => file.endsWith(".seg")) ? new DamagedStreamError(name, path, "it is missing") : null;
  }
  const read = decodeSidecar(bytes);
  if (read.kind === "damaged") return new DamagedStreamError(name, path, read.problem);
  if (read.sidecar.name !== name) return new DamagedStreamError(name, path, `it is that of ${JSON.stringify(read.sidecar.name)}`);
  return read.sidecar;
}

/** What a listing works with. */
export interface ListOptions {
  readonly files: Files;
  readonly layout: Layout;
  readonly clock: Clock;
  /** Told of deleted streams that no fork needs any more. */
  readonly unneeded: (name: string) => void;
}

/** Every stream with a sound sidecar that was not deleted, without loading it. */
export async function* listStreams({ files, layout, clock, unneeded }: ListOptions): AsyncGenerator<ListedStream> {
  let readCount = 0;
  for (const shard of await files.list(layout.streams)) {
    const directory = join(layout.streams, shard);
    for (const entry of await files.list(directory)) {
      const bytes = await readWhole(files, sidecarPath(join(directory, entry)));
      const read = bytes === null ? null : decodeSidecar(bytes);
      if (read?.kind === "sound" && !read.sidecar.claimed) {
        const { sidecar } = read;
        if (!sidecar.softDeleted) yield listedOf(sidecar);
        else if (sidecar.forks === null) unneeded(sidecar.name);
      }
      readCount += 1;
      if (readCount % BURST === 0) await new Promise<void>((resolve) => clock.after(PAUSE_MS, resolve));
    }
  }
}

function listedOf({ name, config, state, segments }: Sidecar): ListedStream {
  const [first] = segments;
  const oldest = first === undefined ? null : { end: endOf(first), newestAtMs: first.newestAtMs };
  return { name, config, touchedAtMs: state.touchedAtMs, tail: state.tail, oldest };
}
