import { mkdirSync } from "node:fs";
import { startProgram } from "../../helpers/process.js";
import type { Rig } from "../rig.js";
import { freePort } from "../../helpers/free-ports.js";
import { hasProgram, type Rival } from "./rival.js";

/** Redis Streams, each append in its log and synced before it is answered. */
export const redis: Rival & { start(rig: Rig): Promise<number> } = {
  name: "Redis",
  isInstalled: () => hasProgram("redis-server"),
  /** Resolves with its port. */
  async start(rig) {
    const directory = rig.directory();
    mkdirSync(directory);
    const port = await freePort();
    const args = [
      "--port",
      String(port),
      "--bind",
      "127.0.0.1",
      "--dir",
      directory,
      "--save",
      "",
      "--appendonly",
      "yes",
      "--appendfsync",
      "always",
    ];
    await startProgram(rig, "redis-server", args).stdoutLine(/Ready to accept connections/);
    return port;
  },
};
