import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { startNode } from "../../helpers/process.js";
import type { Rig } from "../rig.js";
import type { Rival } from "./rival.js";

const PROCESS = fileURLToPath(new URL("../reference-process.mjs", import.meta.url));

/** The reference server of Durable Streams, with its files: `npm --prefix test/bench install` brings it. */
export const reference: Rival & { start(rig: Rig): Promise<number> } = {
  name: "reference server",
  isInstalled() {
    try {
      createRequire(import.meta.url).resolve("@durable-streams/server");
      return true;
    } catch {
      return false;
    }
  },
  /** Resolves with its port. */
  async start(rig) {
    const started = startNode(rig, [PROCESS, JSON.stringify(rig.directory())]);
    return Number((await started.stdoutLine(/^port/)).slice(5));
  },
};
