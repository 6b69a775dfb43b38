import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** One file: its path from the root of the project, with `/`, and what it holds. */
export interface TreeFile {
  readonly path: string;
  readonly text: string;
}

/** The files that the checks look at. */
export type Tree = readonly TreeFile[];

/** A place that breaks a measure: `path:line`, and what is there and what would be right. */
export interface Offence {
  readonly at: string;
  readonly says: string;
}

/** Files by path, as a check's own examples are written. */
export type Sample = Readonly<Record<string, string>>;

/** One measure, with the examples that show that it can fail, and that it does not fail for what is right. */
export interface Check {
  readonly title: string;
  find(tree: Tree): Offence[];
  /** What the measure is against. */
  readonly planted: Sample;
  /** Where it must be found: the offences' `at`, in any order. */
  readonly found: readonly string[];
  /** What looks alike and is right. */
  readonly fine: Sample;
}

/** A tree from a check's example. */
export function treeOf(sample: Sample): Tree {
  return Object.entries(sample).map(([path, text]) => ({ path, text }));
}

/** The TypeScript files of src. */
export function sources(tree: Tree): Tree {
  return tree.filter((file) => file.path.startsWith("src/") && file.path.endsWith(".ts"));
}

/** The files that git tracks, and those of our own folders that it does not track yet; without git, what is there. */
export function readTree(root: string): Tree {
  const paths = gitFiles(root) ?? walk(root, "");
  return [...new Set(paths)]
    .filter((path) => existsSync(join(root, path)))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

const OUR_FOLDERS = ["src", "test", "bin", "docs", ".ci"];

function gitFiles(root: string): string[] | null {
  if (!existsSync(join(root, ".git"))) return null;
  try {
    return [...git(root, ["ls-files", "-z"]), ...git(root, ["ls-files", "-z", "-o", "--exclude-standard", "--", ...OUR_FOLDERS])];
  } catch {
    return null; // no git on this machine: the folder itself has to do
  }
}

function git(root: string, args: string[]): string[] {
  return execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] })
    .split("\0")
    .filter(Boolean);
}

/** What .gitignore names; `data` is the server's default directory. */
const NOT_OURS = new Set([".git", "node_modules", "dist", "coverage", "data"]);

function walk(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (NOT_OURS.has(entry.name) || entry.name.endsWith(".tgz")) return [];
    return entry.isDirectory() ? walk(root, path) : [path];
  });
}
