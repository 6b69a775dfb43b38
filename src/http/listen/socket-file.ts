// The files that Unix sockets are in the file system.

import { chmodSync, lstatSync, unlinkSync } from "node:fs";
import { connect } from "node:net";
import { isMainThread } from "node:worker_threads";

/** How long a server may take to accept a connection before its socket counts as in use all the same. */
const MAX_CONNECT_MS = 2_000;
const ALL = 0o777;

/**
 * Removes a socket that a server has left behind: nobody answers there any more. What is no socket, and a socket with a
 * server behind it, stays, so that listening there fails.
 */
export async function removeStaleSocket(path: string): Promise<void> {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket() === true && (await isAbandoned(path))) unlinkSync(path);
}

function isAbandoned(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    const settle = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.on("connect", () => settle(false));
    socket.on("error", (error: NodeJS.ErrnoException) => settle(error.code === "ECONNREFUSED"));
    socket.setTimeout(MAX_CONNECT_MS, () => settle(false));
  });
}

/**
 * Runs `listen`, which makes the socket at `path` before it returns, so that the socket has the permissions `mode`, and
 * at no time others.
 */
export function withMode(path: string, mode: number, listen: () => void): void {
  // A worker can't set the mask of its process: there the socket has the usual permissions for a moment.
  const before = isMainThread ? process.umask(ALL & ~mode) : null;
  try {
    listen();
  } finally {
    if (before !== null) process.umask(before);
  }
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket() === true && before === null) chmodSync(path, mode);
}
