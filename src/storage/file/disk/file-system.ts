import type { Socket } from "node:net";
import type { DescriptorReserve } from "./descriptor-reserve.js";
import type { Listener, Reach } from "./sockets.js";

/**
 * The door to the file system. Everything that storage does to a disk goes through a `Files`, so that a simulated
 * disk can stand in its place and fail, reorder or lose what was not synced.
 */
export interface Files {
  /** Descriptors for what is to be written or synced, where no others are left; only the system's own disk has them. */
  readonly reserve?: DescriptorReserve;
  /**
   * Opens a file: `read` needs it to exist, and so does `whole`, which is for a file that is read at once and
   * closed, and `plain`, which takes nothing but a file, no link to one; `write` makes it where it is missing, `log`
   * also syncs each write, and so does `replacement`, which makes it anew. None of these three goes through a link.
   */
  open(path: string, mode: OpenMode): Promise<OpenFile>;
  /** Makes a file that must not exist yet. */
  createNew(path: string): Promise<OpenFile>;
  /** Names in a directory; empty when there is no such directory. */
  list(directory: string): Promise<string[]>;
  /** Makes a directory, and those above it. */
  makeDirectory(path: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
  /** Removes a directory and all in it; fine when it is not there. */
  removeTree(path: string): Promise<void>;
  /** Makes creations, renames and removals in a directory permanent. */
  syncDirectory(path: string): Promise<void>;
  /** Where a symbolic link points to; `null` where there is none, or the system does not tell. */
  linkTarget(path: string): Promise<string | null>;
  /**
   * Makes a Unix socket that only this user may connect to: whoever sees it at `path` finds a listener behind it.
   * Removing it is the caller's.
   */
  listen(path: string, accept: (connection: Socket) => void): Promise<Listener>;
  /** Finds out whether a process listens on the socket at `path`, in whatever container of this machine. */
  reach(path: string): Promise<Reach>;
  /** Lets every user read a file, whatever the umask withholds; only the system's own disk has users. */
  letAllRead?(path: string): Promise<void>;
  /** `null` where there is nothing; a link is followed. Only the system's own disk has processes to ask after. */
  status?(path: string): Promise<FileStatus | null>;
}

/** How a file is opened. */
export type OpenMode = "read" | "whole" | "plain" | "write" | "log" | "replacement";

/** An open file. Positions and lengths in bytes. */
export interface OpenFile {
  /** Reads up to `length` bytes at `position` into `target` from `offset`; resolves to how many, 0 at the end. */
  read(target: Buffer, offset: number, length: number, position: number): Promise<number>;
  /** Writes all of `bytes` at `position`. */
  write(bytes: Buffer, position: number): Promise<void>;
  /**
   * Like `write`, without a promise: `done` gets the error, or `null` when all is written (and synced, where the
   * mode does so).
   */
  writeThen(bytes: Buffer, position: number, done: (error: Error | null) => void): void;
  /** Makes the file's bytes and length permanent. */
  sync(): Promise<void>;
  truncate(length: number): Promise<void>;
  size(): Promise<number>;
  close(): Promise<void>;
}

/** What the system says of a file or directory. */
export interface FileStatus {
  readonly size: number;
  readonly kind: "file" | "directory" | "link" | "other";
  /** The user that it belongs to. */
  readonly owner: number;
  /** The two name it, whatever its path. */
  readonly device: number;
  readonly inode: number;
  /** How many names it has. */
  readonly links: number;
}

/** The real file system, with what only those use who look at a directory from outside. */
export interface SystemFiles extends Files {
  /** `null` where there is nothing. */
  status(path: string): Promise<FileStatus | null>;
  /** The same of a link itself. */
  linkStatus(path: string): Promise<FileStatus | null>;
  /** Gives a file a second name. */
  link(from: string, to: string): Promise<void>;
  /** Connects to the Unix socket at `path`. */
  connect(path: string): Promise<Socket>;
}
