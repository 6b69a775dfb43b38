import { fileURLToPath } from "node:url";
import { createServer, type ServerOptions } from "../../src/server.js";
import { startStreamdir, type TestProcess, type TestScope } from "../helpers/process.js";

/** The folder that has the client of NATS. */
export const HERE = fileURLToPath(new URL(".", import.meta.url));

/** A front end that serves: a process of its own, or in this one. */
export interface FrontEnd {
  /** What a stream's name is appended to. */
  readonly url: string;
  /** The process; `null` for one in this process. */
  readonly process: TestProcess | null;
}

/** Where and how the command is started. */
export interface ProcessOptions {
  /** 0 for any that is free. */
  readonly port?: number;
  readonly args?: readonly string[];
  /** The working directory, whose client of NATS it loads. */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts the command on a bucket; resolves when it serves. It is killed when the test is over. */
export async function startFrontEnd(
  scope: TestScope,
  storage: string,
  { port = 0, args = [], cwd = HERE, env = {} }: ProcessOptions = {},
): Promise<FrontEnd> {
  const flags = ["--storage", storage, "--port", String(port), "--log-level", "info", "--log-format", "text", ...args];
  const process = startStreamdir(scope, flags, { cwd, env });
  const ready = await process.stdoutLine(/http:/).catch(async (cause: unknown) => {
    throw new Error(`the front end did not start: ${(await process.ended).stderr}`, { cause });
  });
  return { url: /http:[^\s"]+/.exec(ready)?.[0] ?? "", process };
}

/** Serves a bucket in this process, which has to have {@link HERE} as its working directory. It ends with the test. */
export async function serveHere(scope: TestScope, storage: string, options: ServerOptions = {}): Promise<FrontEnd> {
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const server = await createServer({ storage, port: 0, log, ...options });
  scope.after(() => server.close());
  return { url: server.url, process: null };
}

/** Two front ends on one bucket, in processes of their own. */
export function startTwo(scope: TestScope, storage: string, options: ProcessOptions = {}): Promise<readonly FrontEnd[]> {
  return Promise.all([startFrontEnd(scope, storage, options), startFrontEnd(scope, storage, options)]);
}
