import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { unless } from "../helpers/machine.js";
import { startProgram, type TestProcess, type TestScope } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";
import { healthcheckOf, only, wordsOf, type Instruction } from "./dockerfile.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);

/** What a file system over this machine's is made by, in namespaces of its own: nothing of it is seen outside. */
const MOUNT = `
  mount -t tmpfs -o size=512m none "$1" && mkdir "$1/upper" "$1/work" "$1/root"
  mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
  mount --bind /proc "$1/root/proc" && mount --rbind /dev "$1/root/dev"
  ip link set lo up
`;
const UNSHARED = ["--mount", "--net", "--propagation", "private", "bash", "-euc"] as const;

/** Why a test in a root of its own is left out, if it is. */
export function lacksRoots(): string | false {
  const probe = `${MOUNT}\nchroot "$1/root" true\nnsenter --version`;
  return unless(["unshare", ...UNSHARED, probe, "bash", tempDir()], "have a root of its own (root, overlayfs, util-linux, iproute2)");
}

/** What a command said, and its status. */
export interface Outcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * A container without a runtime: the steps of a Dockerfile, carried out in a root of its own over that of this machine,
 * whose Node stands for that of FROM.
 */
export class Image {
  readonly #scope: TestScope;
  readonly #instructions: readonly Instruction[];
  readonly #holder: TestProcess;
  readonly #root: string;
  #env: string[];
  #user = "0:0";

  private constructor(scope: TestScope, instructions: readonly Instruction[], holder: TestProcess, root: string) {
    this.#scope = scope;
    this.#instructions = instructions;
    this.#holder = holder;
    this.#root = root;
    this.#env = [`PATH=${process.env["PATH"] ?? ""}`, "HOME=/root"];
  }

  /** Carries out all steps, with the files of `context` to copy; it is gone when the test is over. */
  static async build(scope: TestScope, instructions: readonly Instruction[], context: string): Promise<Image> {
    const place = tempDir();
    const holder = startProgram(scope, "unshare", [...UNSHARED, `${MOUNT}\necho mounted\nexec sleep infinity`, "bash", place]);
    await holder.stdoutLine(/mounted/);
    const image = new Image(scope, instructions, holder, join(place, "root"));
    for (const instruction of instructions) await image.#carryOut(instruction, context);
    return image;
  }

  /** Makes all of it but the volumes read-only, as `--read-only` does; `files` are put into it, by their paths, for USER alone. */
  async close(files: Readonly<Record<string, string>>): Promise<void> {
    for (const [path, file] of Object.entries(files)) {
      await this.#enter([
        "sh",
        "-c",
        'mkdir -p "$(dirname "$1")" && cp "$2" "$1" && chown "$3" "$1" && chmod 600 "$1"',
        "sh",
        join(this.#root, path),
        file,
        this.#user,
      ]);
    }
    const volume = join(this.#root, only(this.#instructions, "VOLUME"));
    const owner = this.#user.replace(":", ",gid=");
    await this.#enter(["mount", "-t", "tmpfs", "-o", `uid=${owner}`, "none", volume]);
    await this.#enter(["mount", "-o", "remount,ro", this.#root]);
  }

  /** Starts what CMD says, as USER. */
  start(): TestProcess {
    return startProgram(this.#scope, "nsenter", [...this.#inside(), ...wordsOf(only(this.#instructions, "CMD"))]);
  }

  /** Runs what HEALTHCHECK says, as USER. */
  healthcheck(): Promise<Outcome> {
    return this.run(healthcheckOf(only(this.#instructions, "HEALTHCHECK")));
  }

  /** Runs a command in it, as USER. */
  run(command: readonly string[]): Promise<Outcome> {
    return outcomeOf("nsenter", [...this.#inside(), ...command]);
  }

  async #carryOut({ name, text }: Instruction, context: string): Promise<void> {
    if (name === "ENV") this.#env = [...this.#env, text];
    if (name === "USER") this.#user = text;
    if (name === "RUN") await this.#enter([...this.#chroot(), "sh", "-c", text]);
    if (name === "COPY") {
      const [from = "", to = ""] = text.split(" ");
      const pattern = new RegExp(`^${from.replaceAll(".", "\\.").replaceAll("*", ".*")}$`);
      const [file, ...more] = readdirSync(context).filter((entry) => pattern.test(entry));
      assert.ok(file !== undefined && more.length === 0, `${from} is one file`);
      await this.#enter(["cp", join(context, file), join(this.#root, to)]);
    }
  }

  #chroot(): string[] {
    return ["chroot", "--groups=", `--userspec=${this.#user}`, this.#root, "env", "-i", ...this.#env];
  }

  #inside(): string[] {
    return [...this.#namespaces(), ...this.#chroot()];
  }

  #namespaces(): string[] {
    return ["--target", String(this.#holder.pid), "--mount", "--net", "--"];
  }

  async #enter(command: readonly string[]): Promise<void> {
    const { status, stdout, stderr } = await outcomeOf("nsenter", [...this.#namespaces(), ...command]);
    assert.equal(status, 0, `${command.join(" ")}: ${stdout}${stderr}`);
  }
}

async function outcomeOf(file: string, args: readonly string[]): Promise<Outcome> {
  try {
    return { status: 0, ...(await run(file, args)) };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }; // of a command that failed
    return { status: code, stdout, stderr };
  }
}

/** The file that `npm pack` makes of a copy of the project: its directory. */
export async function packedProject(): Promise<string> {
  const [copy, packed] = [tempDir(), tempDir()];
  const left = new Set([".git", "node_modules", "dist", "data", "test", "coverage"]);
  for (const name of readdirSync(ROOT).filter((entry) => !left.has(basename(entry))))
    cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
  mkdirSync(packed, { recursive: true });
  await run("npm", ["pack", "--offline", "--pack-destination", packed], { cwd: copy });
  return packed;
}
