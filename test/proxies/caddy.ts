import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { unless } from "../helpers/machine.js";
import type { TestProcess, TestScope } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";
import { freePort } from "../helpers/free-ports.js";
import { startProxy } from "./proxy-process.js";

const DOCUMENTED = fileURLToPath(new URL("../../docs/Caddyfile", import.meta.url));

/** Why a test with Caddy is left out, if it is. */
export const lacksCaddy = unless(["caddy", "version"], "run Caddy (the package caddy)");

/** Starts Caddy with docs/Caddyfile in front of a streamdir on this machine; gives what a stream's name is appended to. */
export async function startCaddy(scope: TestScope, originPort: number): Promise<string> {
  return (await startCaddyProcess(scope, originPort)).url;
}

/** {@link startCaddy}, with the process, which logs to standard error; `globals` are global options beyond those of the file. */
export async function startCaddyProcess(
  scope: TestScope,
  originPort: number,
  globals: readonly string[] = [],
): Promise<{ readonly url: string; readonly process: TestProcess }> {
  const [port, dir] = [await freePort(), tempDir()];
  const site = `http://127.0.0.1:${port}`;
  const config = join(dir, "Caddyfile");
  // It would listen on all addresses, and on a port of its own to be administered.
  const documented = readFileSync(DOCUMENTED, "utf8");
  assert.match(documented, /^\{$/m, "docs/Caddyfile has a block of global options");
  const added = ["admin off", "default_bind 127.0.0.1", ...globals];
  writeFileSync(config, documented.replace(/^\{$/m, ["{", ...added].join("\n\t")));
  const env = { STREAMS_SITE: site, STREAMS_UPSTREAM: `127.0.0.1:${originPort}`, HOME: dir, XDG_DATA_HOME: dir, XDG_CONFIG_HOME: dir };
  const process = await startProxy(scope, {
    command: "caddy",
    args: ["run", "--config", config, "--adapter", "caddyfile"],
    env,
    ready: /serving initial configuration/,
  });
  return { url: `${site}/v1/stream/`, process };
}
