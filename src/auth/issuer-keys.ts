// Brings the keys of the issuers together: secrets, files beside the auth file, and URLs.

import { dirname, resolve } from "node:path";
import type { Clock } from "../ops/clock.js";
import type { Log } from "../ops/log.js";
import { isReadFailure, WatchedFile, type FileFault } from "../ops/watched-file.js";
import type { AuthFile, IssuerEntry, KeyPlace } from "./auth-file.js";
import { AUTH_BOUNDS } from "./bounds.js";
import { AuthFileError, faultAt, UnreadFileError } from "./checked-json.js";
import type { SourceText } from "./checked-json.js";
import { certificatesIn } from "../net/certificates.js";
import { MAX_KEY_SET_BYTES, parseKeySet } from "./jwt/key-set.js";
import { fixedKeys } from "./jwt/key-source.js";
import type { KeySource } from "./jwt/key-source.js";
import { RemoteKeys } from "./jwt/remote-keys.js";
import { Succession } from "./jwt/succession.js";
import { secretKey } from "./jwt/verification-key.js";
import type { VerificationKey } from "./jwt/verification-key.js";
import type { GrantingIssuer } from "./policy.js";

/** What {@link IssuerKeys} work with. */
export interface IssuerKeysParts {
  readonly authFile: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when a key that was there is gone. */
  readonly onKeyGone: () => void;
}

/** What is wrong with the keys of an issuer, though the rest of the auth file is taken. */
export interface KeyFault extends FileFault {
  readonly level: "error" | "warn";
  readonly message: string;
}

/** What came of the issuers of an auth file. */
export interface LoadedKeys {
  /** By their names. */
  readonly issuers: ReadonlyMap<string, GrantingIssuer>;
  readonly faults: readonly KeyFault[];
  /** Whether all files of keys are as they were. */
  readonly areSame: boolean;
}

/** What one auth file comes to, while it is loaded. */
interface Loading {
  readonly remote: Map<string, RemoteKeys>;
  /** The texts of key files and CAs, by the names of their issuers. */
  readonly files: Map<string, string>;
  /** The names of the issuers that keep what they had. */
  readonly kept: Set<string>;
  readonly faults: KeyFault[];
}

const NO_KEYS = fixedKeys([]);

/** Failures whose end a look at the file shows. */
const SEEN_TO_END: readonly unknown[] = ["ENOENT", "ENOTDIR", "ELOOP", "EISDIR", "EACCES"];

/** The files that the auth file names, as paths from the root. */
export function keyFilesOf({ issuers }: AuthFile, authFile: string): string[] {
  return issuers.flatMap(({ keys }) => {
    const path = keys.kind === "file" ? keys.path : keys.kind === "url" ? keys.caPath : null;
    return path === null ? [] : [resolve(dirname(authFile), path)];
  });
}

/**
 * The keys of the issuers. What was fetched stays when the auth file changes and still names its URL; what was read
 * stays while its file is broken.
 */
export class IssuerKeys {
  readonly #parts: IssuerKeysParts;
  #remote: ReadonlyMap<string, RemoteKeys> = new Map();
  /** What was read, by the names of the issuers. */
  #files: ReadonlyMap<string, string> = new Map();
  #kept: ReadonlySet<string> = new Set();
  /** `null` until the first load has ended well. */
  #issuers: ReadonlyMap<string, GrantingIssuer> | null = null;
  #isClosed = false;

  constructor(parts: IssuerKeysParts) {
    this.#parts = parts;
  }

  /**
   * The issuers of an auth file. The first time it rejects with `AuthFileError` where the file of one can't be used.
   * From then on none holds up what else the auth file says, which may be a revocation: such an issuer keeps the keys
   * that it had, and one without has none.
   */
  async load(file: AuthFile): Promise<LoadedKeys> {
    const loading: Loading = { remote: new Map(), files: new Map(), kept: new Set(), faults: [] };
    const { remote, files, kept, faults } = loading;
    const issuers = new Map<string, GrantingIssuer>();
    for (const entry of file.issuers) issuers.set(entry.iss, { ...entry, keys: await this.#sourceOf(entry, loading) });
    const before = this.#remote;
    const areSame =
      kept.size === this.#kept.size &&
      [...kept].every((iss) => this.#kept.has(iss)) &&
      [...files].every(([iss, text]) => this.#files.get(iss) === text);
    this.#remote = remote;
    this.#files = files;
    this.#kept = kept;
    this.#issuers = issuers;
    for (const [place, keys] of before) if (!remote.has(place)) keys.close();
    for (const keys of remote.values()) if (!this.#isClosed) keys.warm();
    return { issuers, faults, areSame };
  }

  close(): void {
    this.#isClosed = true;
    for (const keys of this.#remote.values()) keys.close();
  }

  async #sourceOf(entry: IssuerEntry, loading: Loading): Promise<KeySource> {
    const { iss, keys } = entry;
    try {
      if (keys.kind === "secret") return fixedKeys([secretKey(keys.secret)]);
      if (keys.kind === "url") return this.#succeeding(iss, await this.#remoteOf(iss, keys, loading));
      return await this.#keysOf(entry, keys, loading);
    } catch (failure) {
      if (this.#issuers === null || !(failure instanceof AuthFileError)) throw failure;
      const before = this.#keep(iss, loading);
      const message =
        before === NO_KEYS
          ? "a key file is not taken; its issuer has no keys, and its JWTs are refused"
          : "a key file is not taken; its issuer keeps the keys that it had";
      const isUnread = failure instanceof UnreadFileError;
      loading.faults.push({ level: "error", message, fault: failure.message, isUnread });
      return before;
    }
  }

  /** The keys of a file that fit what the auth file says of their issuer. */
  async #keysOf(
    { iss, algs }: IssuerEntry,
    place: Extract<KeyPlace, { kind: "file" }>,
    { files, faults }: Loading,
  ): Promise<KeySource> {
    const file = resolve(dirname(this.#parts.authFile), place.path);
    const text = await readBeside(file, MAX_KEY_SET_BYTES, place);
    const fitting = keysIn({ file, text }).filter(({ alg }) => algs.includes(alg));
    if (fitting.length === 0) {
      const fault = faultAt({ file, text }, 0, `the set has no key for ${algs.join(", ")}`);
      if (this.#issuers === null) throw fault;
      // Whoever takes out keys, or algorithms, withdraws what they signed.
      const message = "an issuer has no key any more; its JWTs are refused";
      faults.push({ level: "warn", message, fault: fault.message, isUnread: false });
    }
    files.set(iss, text);
    return fitting.length === 0 ? NO_KEYS : fixedKeys(fitting);
  }

  /** Has an issuer keep the keys that it had, which go on to be fetched. */
  #keep(iss: string, { remote, files, kept }: Loading): KeySource {
    const before = this.#issuers?.get(iss)?.keys ?? NO_KEYS;
    kept.add(iss);
    const fetched = before instanceof Succession ? before.next : before;
    for (const [place, keys] of this.#remote) if (keys === fetched) remote.set(place, keys);
    const file = this.#files.get(iss);
    if (file !== undefined) files.set(iss, file);
    return before;
  }

  /** An issuer's keys at a URL, with those that it had before until there is an answer. */
  #succeeding(iss: string, keys: RemoteKeys): KeySource {
    const before = this.#issuers?.get(iss)?.keys;
    if (before instanceof Succession && before.next === keys) return before;
    return before === undefined || before === keys || keys.hasAnswered ? keys : new Succession(keys, before);
  }

  async #remoteOf(iss: string, place: Extract<KeyPlace, { kind: "url" }>, loading: Loading): Promise<RemoteKeys> {
    const { authFile, clock, log, onKeyGone } = this.#parts;
    const { url, caPath } = place;
    let ca: string | null = null;
    if (caPath !== null) {
      const path = resolve(dirname(authFile), caPath);
      ca = await readBeside(path, AUTH_BOUNDS.caBytes, place);
      assertCertificates({ file: path, text: ca });
      loading.files.set(iss, ca);
    }
    const key = `${url}\n${ca ?? ""}`;
    const keys =
      loading.remote.get(key) ?? this.#remote.get(key) ?? new RemoteKeys({ place: { url, ca }, clock, log, onKeyGone });
    loading.remote.set(key, keys);
    return keys;
  }
}

/** Throws where the text of a CA has no certificate: Node would trust those that it knows. */
function assertCertificates(source: SourceText): void {
  try {
    certificatesIn(source.text);
  } catch (error) {
    throw faultAt(source, 0, `it has no sound certificate: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** The keys of a set that can verify a JWT; throws where it is none. */
function keysIn(source: SourceText): readonly VerificationKey[] {
  const set = parseKeySet(source.text);
  if (set.kind === "fault") throw faultAt(source, set.at, `the set of keys ${set.words}`);
  return set.keys;
}

async function readBeside(
  path: string,
  maxBytes: number,
  { entry }: Exclude<KeyPlace, { kind: "secret" }>,
): Promise<string> {
  try {
    return await WatchedFile.read(path, maxBytes);
  } catch (error) {
    const fault = entry.fault(`can't be read: ${error instanceof Error ? error.message : String(error)}`);
    const isSeenToEnd = error instanceof Error && "code" in error && SEEN_TO_END.includes(error.code);
    throw isReadFailure(error) && !isSeenToEnd ? new UnreadFileError(fault.message) : fault;
  }
}
