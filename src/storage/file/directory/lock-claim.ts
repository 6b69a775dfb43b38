import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { dirname, join } from "node:path";
import { errorCode, isBusy, readWhole, removeFile, type Files } from "../disk/files.js";
import { putReplacement, writeReplacement } from "../disk/replacement.js";
import { claimPath, claimSocket, replacementPath } from "../format/layout.js";
import { encodeHolder, type LockHolder } from "./lock-holder.js";
import type { ProcessIdentity } from "../../../ops/lock/process-identity.js";
import type { Listener } from "../disk/sockets.js";

/** Where a lock is, and who asks for it. */
export interface ClaimOptions {
  readonly files: Files;
  /** The lock's own file; claims and sockets lie beside it. */
  readonly path: string;
  readonly self: ProcessIdentity;
  /** Talks to whoever connects to the socket. */
  readonly accept: (connection: Socket) => void;
}

/** What a claim listens on; `fault` says why on nothing. */
interface Ear {
  readonly listener: Listener | null;
  readonly fault: string | null;
}

/** What a file system says that takes no sockets, or a system that has none. */
const NO_SOCKETS = new Set([
  "EPERM",
  "EACCES",
  "ENOTSUP",
  "EOPNOTSUPP",
  "ENOSYS",
  "EINVAL",
  "EAFNOSUPPORT",
  "EPROTONOSUPPORT",
  "ENAMETOOLONG",
]);

/**
 * One process that asks for a lock, under a name of its own, so that nobody can take its place by mistake. Whoever sees
 * the claim finds its socket listening. It becomes the lock by one rename; its socket stays where it is.
 */
export class Claim {
  readonly id: string;
  /** Why it has no socket; `null` when it has one. */
  readonly socketFault: string | null;
  readonly #options: ClaimOptions;
  readonly #listener: Listener | null;
  readonly #bytes: Buffer;
  /** `promoting`: its file may be at either place. */
  #progress: "asking" | "promoting" | "promoted" = "asking";

  private constructor(options: ClaimOptions, id: string, { listener, fault }: Ear) {
    this.#options = options;
    this.id = id;
    this.socketFault = fault;
    this.#listener = listener;
    const holder: LockHolder = { ...options.self, socket: listener === null ? null : claimSocket(options.path, id) };
    this.#bytes = encodeHolder(holder);
  }

  /** Shows everybody that this process asks for the lock; `null` when another took this for a leftover meanwhile. */
  static async publish(options: ClaimOptions): Promise<Claim | null> {
    const { files, path } = options;
    const id = randomBytes(8).toString("hex");
    try {
      const claim = new Claim(options, id, await listen(options, id));
      try {
        await writeReplacement(files, claimPath(path, id), claim.#bytes);
        // The directory's user must be able to read whose lock it is, also root's.
        await files.letAllRead?.(replacementPath(claimPath(path, id)));
        await putReplacement(files, claimPath(path, id));
        return claim;
      } catch (error) {
        await claim.end();
        throw error;
      }
    } catch (error) {
      if (errorCode(error) === "ENOENT") return null;
      throw error;
    }
  }

  /** Takes the lock, whoever had it; `false` when another took this claim for a leftover, or has the lock now. */
  async promote(): Promise<boolean> {
    const { files, path } = this.#options;
    this.#progress = "promoting";
    try {
      await files.rename(claimPath(path, this.id), path);
    } catch (error) {
      if (errorCode(error) === "ENOENT") return false;
      throw error;
    }
    this.#progress = "promoted";
    return (await readWhole(files, path))?.equals(this.#bytes) === true;
  }

  /** Withdraws it, or gives the lock back. The socket goes last, and stays as long as a file names it. */
  async end(): Promise<void> {
    const { files, path } = this.#options;
    let isForgotten = true;
    try {
      if (this.#progress !== "asking") isForgotten = await this.#removeLock();
      if (this.#progress !== "promoted") await removeFile(files, claimPath(path, this.id));
    } catch (error) {
      isForgotten = false;
      throw error;
    } finally {
      await this.#listener?.close();
      if (isForgotten && this.#listener !== null)
        await removeFile(files, join(dirname(path), claimSocket(path, this.id)));
    }
  }

  /** Unless somebody forced it meanwhile: it is theirs. One that can't be read stays; the next start finds it stale. */
  async #removeLock(): Promise<boolean> {
    const { files, path } = this.#options;
    try {
      const bytes = await readWhole(files, path);
      if (bytes?.equals(this.#bytes) === true) await files.unlink(path);
      return true;
    } catch (error) {
      if (isBusy(error)) return false;
      throw error;
    }
  }
}

async function listen({ files, path, accept }: ClaimOptions, id: string): Promise<Ear> {
  const socket = join(dirname(path), claimSocket(path, id));
  let listener: Listener;
  try {
    listener = await files.listen(socket, accept);
  } catch (error) {
    if (!NO_SOCKETS.has(errorCode(error))) throw error;
    return { listener: null, fault: errorCode(error) };
  }
  let isFound = false;
  try {
    // Some file systems take a socket and never find it again: it would say of a living process that it has ended.
    isFound = (await files.reach(socket)) !== "refuses";
  } finally {
    if (!isFound) await listener.close();
  }
  if (isFound) return { listener, fault: null };
  await removeFile(files, socket);
  return { listener: null, fault: "ECONNREFUSED" };
}
