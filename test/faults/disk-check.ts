import { readMarker } from "../../src/storage/file/directory.js";
import type { Files } from "../../src/storage/file/files.js";
import { Layout } from "../../src/storage/file/layout.js";
import { verifyDirectory } from "../../src/storage/file/verify.js";
import type { SimulatedDisk } from "../helpers/simulated-disk.js";
import { must } from "./model.js";

/** After a clean end: `verify` finds nothing to say, and nothing is left that belongs to no one. */
export async function checkFiles(disk: SimulatedDisk, dir: string): Promise<void> {
  must(!disk.namesIn(dir).includes("damaged"), () => "something was set aside as damaged");
  must(!disk.namesIn(dir).includes("lock"), () => "the lock is still there");
  const files: Files = disk.mount();
  const layout = new Layout(dir);
  const directoryId = await readMarker(files, layout);
  must(directoryId !== null, () => "the marker is gone");
  const findings: string[] = [];
  const report = ({ file, offset, problem }: { readonly file: string; readonly offset: number | null; readonly problem: string }): void => {
    findings.push(`${file}${offset === null ? "" : ` at ${offset}`}: ${problem}`);
  };
  await verifyDirectory({ files, layout, directoryId, report, progress: () => undefined });
  must(findings.length === 0, () => `verify says: ${findings.join("; ")}`);
}
