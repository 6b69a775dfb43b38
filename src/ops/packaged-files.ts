import { readdirSync, readFileSync } from "node:fs";

/** What a package.json has. */
interface Manifest {
  readonly name?: unknown;
  readonly version?: unknown;
}

/**
 * What the package.json says that belongs to the file at `here`, two folders above it in the source as in what is
 * built; `null` in a bundle of another program, beside which are that program's files; one as CommonJS has no `here`.
 */
export function ownManifest(here: string | undefined): Manifest | null {
  if (here === undefined) return null;
  try {
    const text = readFileSync(new URL("../../package.json", here), "utf8");
    const manifest: unknown = JSON.parse(text.replace(/^\uFEFF/, ""));
    if (typeof manifest !== "object" || manifest === null) return null;
    return /(^|\/)streamdir$/.test(String(Reflect.get(manifest, "name"))) ? manifest : null;
  } catch {
    return null; // another program's may be anything, and nobody asked for it
  }
}

/** That of this package. */
export const MANIFEST: Manifest | null = ownManifest(import.meta.url);

/**
 * The folder with the files of this package's page: as far from `here` in the source as from `chunks/` in what is
 * built. `null` where another program's is there, or none.
 */
export function pageFolder(here: string | undefined = import.meta.url): URL | null {
  if (here === undefined) return null;
  const folder = new URL("../page/", here);
  try {
    return readFileSync(new URL("index.html", folder), "utf8").includes("<title>streamdir</title>") ? folder : null;
  } catch {
    return null; // there is no page then
  }
}

/**
 * The files of a folder of this package, by name; empty in a bundle that was made without it. `folder` ends with a
 * slash. Throws what else keeps them from being read.
 */
export function packagedFiles(folder: URL | null): ReadonlyMap<string, Buffer> {
  return new Map(folder === null ? [] : namesIn(folder).map((name) => [name, readFileSync(new URL(name, folder))]));
}

function namesIn(folder: URL): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}
