import { readdirSync, readFileSync } from "node:fs";

/** The folder with the files of the page: as far from here in the source as from `chunks/` in what is built. */
export const PAGE_FOLDER: URL = new URL("../page/", import.meta.url);

/**
 * The files of a folder of this package, by name; empty in a bundle that was made without it. `folder` ends with a
 * slash. Throws what else keeps them from being read.
 */
export function packagedFiles(folder: URL): ReadonlyMap<string, Buffer> {
  return new Map(namesIn(folder).map((name) => [name, readFileSync(new URL(name, folder))]));
}

function namesIn(folder: URL): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}
