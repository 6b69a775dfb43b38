import { connect, createServer, type Socket } from "node:net";

/** Longest path of a Unix socket, in bytes; Node cuts a longer one off without a word. */
export const MAX_SOCKET_PATH_BYTES = process.platform === "linux" ? 107 : 103;

/** Most connections to one socket at a time; those beyond it are closed at once. */
const MAX_CONNECTIONS = 16;
/** How often a socket is asked whose listener ends just then. */
const MAX_ATTEMPTS = 3;

/** A socket that is listened on. */
export interface Listener {
  /** Ends it and its connections; the file stays where it was put. */
  close(): Promise<void>;
}

/**
 * What a socket's file says. `answers`: a process listens there; `refuses`: none does, so that one made by this machine
 * since it started is a leftover; `missing`: there is no such file; `unknown`: this user may not connect.
 */
export type Reach = "answers" | "refuses" | "missing" | "unknown";

/**
 * Listens on a new socket at `path`. Neither it nor its connections keep the process alive, no child process inherits
 * it, and in a cluster it is the worker's own. Rejects with the system's error; `ENAMETOOLONG` for a path that is too
 * long.
 */
export function listenOn(path: string, accept: (connection: Socket) => void): Promise<Listener> {
  return new Promise((resolve, reject) => {
    const connections = new Set<Socket>();
    const server = createServer((connection) => {
      connection.unref();
      connections.add(connection);
      connection.once("close", () => connections.delete(connection));
      accept(connection);
    });
    server.maxConnections = MAX_CONNECTIONS;
    // Once it listens, an error is that of one connection, which has got nothing; the next is accepted.
    server.on("error", reject);
    server.unref();
    const close = (): Promise<void> =>
      new Promise((done) => {
        server.close(() => done());
        for (const connection of connections) connection.destroy();
      });
    if (Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES) reject(tooLong(path));
    else server.listen({ path, exclusive: true }, () => resolve({ close }));
  });
}

/** Connects to the socket at `path` and leaves again. Rejects when this process can't open a socket. */
export async function probe(path: string): Promise<Reach> {
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES) throw tooLong(path);
  for (let attempt = 1; ; attempt += 1) {
    const code = await connectTo(path);
    // Its listener ended before it had accepted this; the next attempt sees what is there now.
    if (code === "ECONNRESET" && attempt < MAX_ATTEMPTS) continue;
    const reach = REACHES[code];
    if (reach === undefined) throw Object.assign(new Error(`${code}: connect ${path}`), { code });
    return reach;
  }
}

/** Connects to the socket at `path`; rejects with the system's error. */
export function connectOn(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const connection = connect({ path });
    connection.once("error", reject);
    connection.once("connect", () => {
      connection.off("error", reject);
      resolve(connection);
    });
  });
}

/** Resolves to the error's code, `""` when there is none. */
function connectTo(path: string): Promise<string> {
  return new Promise((resolve) => {
    const connection = connect({ path });
    connection.once("connect", () => {
      connection.destroy();
      resolve("");
    });
    connection.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "UNKNOWN"));
  });
}

const REACHES: Readonly<Record<string, Reach>> = {
  "": "answers",
  ECONNRESET: "answers",
  // More wait to be accepted than the system keeps: a process that hangs, or is stopped, is there.
  EAGAIN: "answers",
  // Also of a file that is no socket.
  ECONNREFUSED: "refuses",
  EPROTOTYPE: "refuses",
  ENOTSOCK: "refuses",
  ENOENT: "missing",
  ENOTDIR: "missing",
  EACCES: "unknown",
  EPERM: "unknown",
};

function tooLong(path: string): Error {
  return Object.assign(
    new Error(`ENAMETOOLONG: a socket's path has at most ${MAX_SOCKET_PATH_BYTES} bytes, ${path} has more`),
    { code: "ENAMETOOLONG" },
  );
}
