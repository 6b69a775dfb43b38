import { crc32 } from "node:zlib";
import { decodeSidecar } from "../../src/storage/file/sidecar.js";
import type { SimulatedDisk } from "../helpers/simulated-disk.js";
import { must } from "./model.js";

/** After a clean end: each sidecar and each segment is whole, and the checksums are right. */
export function checkFiles(disk: SimulatedDisk, dir: string): void {
  for (const shard of disk.namesIn(`${dir}/streams`)) {
    for (const name of disk.namesIn(`${dir}/streams/${shard}`)) checkStream(disk, `${dir}/streams/${shard}/${name}`);
  }
  must(!disk.namesIn(dir).includes("damaged"), () => "something was set aside as damaged");
  must(!disk.namesIn(dir).includes("lock"), () => "the lock is still there");
}

function checkStream(disk: SimulatedDisk, directory: string): void {
  const bytes = disk.contentOf(`${directory}/meta.json`);
  if (bytes === null) {
    must(!disk.namesIn(directory).some((name) => name.endsWith(".seg")), () => `${directory} has segments, but no sidecar`);
    return;
  }
  const read = decodeSidecar(bytes);
  must(read.kind === "sound", () => `${directory}: ${read.kind === "damaged" ? read.problem : ""}`);
  const { segments, state, claimed } = read.sidecar;
  if (claimed) return;
  let end = segments[0]?.start ?? 0;
  for (const { start, length, crc } of segments) {
    must(start === end, () => `${directory}: a segment at ${start} follows one that ends at ${end}`);
    const content = disk.contentOf(`${directory}/${String(start).padStart(16, "0")}.seg`);
    must(content !== null && content.length >= length, () => `${directory}: segment ${start} is shorter than ${length} bytes`);
    must(crc32(content.subarray(0, length)) === crc, () => `${directory}: segment ${start} does not match its checksum`);
    end += length;
  }
  must(end === state.tail, () => `${directory}: the segments end at ${end}, the stream at ${state.tail}`);
}
