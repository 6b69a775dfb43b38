import { accessSync, constants } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
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

/** A port that nothing listens on, for programs that can't pick one themselves. */
export function freePort(): Promise<number> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo; // it listens on a port
      server.close(() => resolve(port));
    });
  });
}
