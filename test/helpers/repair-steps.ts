import { Layout } from "../../src/storage/file/format/layout.js";
import { RepairSteps, type RepairOptions } from "../../src/storage/file/offline/repair-steps.js";
import { keptLog } from "./engine.js";
import { WatchedFiles } from "./watched-files.js";

/** The steps of a repair that changes what is there, and tells nobody. */
export function repairSteps(more: Partial<RepairOptions>): RepairSteps {
  return new RepairSteps({
    files: new WatchedFiles(),
    layout: new Layout("/data"),
    directoryId: Buffer.from("01234567"),
    apply: true,
    nowMs: 0,
    log: keptLog().log,
    say: () => undefined,
    ...more,
  });
}
