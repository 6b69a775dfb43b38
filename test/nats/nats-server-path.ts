import { execFile } from "node:child_process";
import { access } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const FOLDER = fileURLToPath(new URL("node_modules/.nats-server", import.meta.url));

/** A nats-server that is new enough; fetched when it is not there. */
export async function natsServerPath(): Promise<string> {
  return fetched(`${FOLDER}/nats-server`);
}

/** That of Debian's release: its compare-and-swap does not hold in a cluster. */
export async function oldNatsServerPath(): Promise<string> {
  return fetched(`${FOLDER}/old/nats-server`);
}

async function fetched(path: string): Promise<string> {
  try {
    await access(path);
  } catch {
    await promisify(execFile)(fileURLToPath(new URL("get-nats-server", import.meta.url)), [FOLDER]);
  }
  return path;
}
