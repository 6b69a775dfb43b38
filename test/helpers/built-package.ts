import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Runs a script of package.json that builds into a folder of dist/, with its output in `dir` instead. */
export function build(script: "build:code" | "build:page", dir: string): void {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const command = String(scripts[script]).replace(/--outdir=\S+/, `--outdir=${dir}`);
  execFileSync("sh", ["-c", `node_modules/.bin/${command}`], { cwd: ROOT });
}
