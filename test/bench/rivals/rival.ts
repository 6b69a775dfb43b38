import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** A server of another kind that some questions are put to as well, where it is installed. */
export interface Rival {
  /** As the table calls it. */
  readonly name: string;
  isInstalled(): boolean;
}

/** Whether there is a program `name` to start. */
export function hasProgram(name: string, path = process.env["PATH"] ?? ""): boolean {
  return path.split(delimiter).some((directory) => isExecutable(join(directory, name)));
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
