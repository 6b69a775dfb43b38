// Which files in the data directory the server's own options name.

import { basename, dirname, resolve } from "node:path";
import type { Settings } from "../options.js";

/** The names of files and sockets in `dir` that the options name: an auth file, a certificate, where it listens. */
export function namedFilesIn(dir: string, settings: Settings): string[] {
  const words = Object.values(settings).flatMap((value) => (typeof value === "string" ? value.split(",") : []));
  const paths = words.map((word) => resolve(word.trim().replace(/^unix:/, "")));
  return paths.filter((path) => dirname(path) === resolve(dir)).map((path) => basename(path));
}
