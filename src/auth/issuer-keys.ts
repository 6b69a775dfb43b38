// Brings the keys of the issuers together: secrets, files beside the auth file, and URLs.

import { dirname, resolve } from "node:path";
import type { Clock } from "../ops/clock.js";
import type { Log } from "../ops/log.js";
import { isReadFailure, WatchedFile } from "../ops/watched-file.js";
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
export interface KeyFault {
  readonly level: "error" | "warn";
  readonly message: string;
  /** One line, with the file. */
  readonly fault: string;
  /** Whether the file may be there to be read later, with no change to see. */
  readonly isUnread: boolean;
}

/** What came of the issuers of an auth file. */
export interface LoadedKeys {
  /** By their names. */
  readonly issuers: ReadonlyMap<string, GrantingIssuer>;
  readonly faults: readonly KeyFault[];
  /** Whether all files of keys are as they were. */
  readonly areSame: boolean;
}

/** The file of an issuer's keys, or of its CA, as it was when it was last sound. */
interface SoundFile {
  readonly path: string;
  readonly text: string;
}

/** Where a file of an issuer is; `entry` names it in the auth file. */
interface FilePlace {
  readonly iss: string;
  readonly path: string;
  readonly maxBytes: number;
  readonly entry: Extract<KeyPlace, { kind: "file" | "url" }>;
}

/** What one auth file comes to, while it is loaded. */
interface Loading {
  readonly remote: Map<string, RemoteKeys>;
  readonly files: Map<string, SoundFile>;
  readonly faults: KeyFault[];
}

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
  /** By the names of their issuers. */
  #files: ReadonlyMap<string, SoundFile> = new Map();
  #issuers: ReadonlyMap<string, GrantingIssuer> = new Map();

  constructor(parts: IssuerKeysParts) {
    this.#parts = parts;
  }

  /**
   * The issuers of an auth file. An issuer that had the same file before keeps its keys where that can't be read now:
   * it must not hold up a revocation. Rejects with `AuthFileError` where another's can't, and changes nothing then.
   */
  async load(file: AuthFile): Promise<LoadedKeys> {
    const loading: Loading = { remote: new Map(), files: new Map(), faults: [] };
    const { remote, files, faults } = loading;
    const issuers = new Map<string, GrantingIssuer>();
    for (const entry of file.issuers) issuers.set(entry.iss, { ...entry, keys: await this.#sourceOf(entry, loading) });
    const before = this.#remote;
    const areSame = [...files].every(([iss, { text }]) => this.#files.get(iss)?.text === text);
    this.#remote = remote;
    this.#files = files;
    this.#issuers = issuers;
    for (const [place, keys] of before) if (!remote.has(place)) keys.close();
    for (const keys of remote.values()) keys.warm();
    return { issuers, faults, areSame };
  }

  close(): void {
    for (const keys of this.#remote.values()) keys.close();
  }

  async #sourceOf(entry: IssuerEntry, loading: Loading): Promise<KeySource> {
    const { iss, keys, algs } = entry;
    if (keys.kind === "secret") return fixedKeys([secretKey(keys.secret)]);
    if (keys.kind === "url") return this.#succeeding(iss, await this.#remoteOf(iss, keys, loading));
    const file = resolve(dirname(this.#parts.authFile), keys.path);
    const place = { iss, path: file, maxBytes: MAX_KEY_SET_BYTES, entry: keys };
    const { value: all, text, failure } = await this.#soundFile(place, loading, keysIn);
    const fitting = all.filter(({ alg }) => algs.includes(alg));
    if (fitting.length === 0) {
      const fault = faultAt({ file, text }, 0, `the set has no key for ${algs.join(", ")}`);
      // Only a change of the keys withdraws them: where they fit what `algs` were, those are a slip of the auth file.
      const algsBefore = this.#issuers.get(iss)?.algs ?? [];
      const isSlip = this.#files.get(iss)?.path !== file || all.some(({ alg }) => algsBefore.includes(alg));
      if (isSlip) throw failure ?? fault;
      const message = "the keys of an issuer are withdrawn; its JWTs are refused";
      loading.faults.push({ level: "warn", message, fault: fault.message, isUnread: false });
    }
    return fixedKeys(fitting);
  }

  /** An issuer's file as `parse` takes it; where it can't be read or parsed, as it was when it was last sound. */
  async #soundFile<T>(
    { iss, path, maxBytes, entry }: FilePlace,
    { files, faults }: Loading,
    parse: (source: SourceText) => T,
  ): Promise<{ readonly value: T; readonly text: string; readonly failure: AuthFileError | null }> {
    try {
      const text = await readBeside(path, maxBytes, entry);
      const value = parse({ file: path, text });
      files.set(iss, { path, text });
      return { value, text, failure: null };
    } catch (failure) {
      const before = this.#files.get(iss);
      if (!(failure instanceof AuthFileError) || before?.path !== path) throw failure;
      const message = "a key file is not taken; its issuer keeps the keys that it had";
      faults.push({ level: "error", message, fault: failure.message, isUnread: failure instanceof UnreadFileError });
      files.set(iss, before);
      return { value: parse({ file: path, text: before.text }), text: before.text, failure };
    }
  }

  /** An issuer's keys at a URL, with those that it had before until there is an answer. */
  #succeeding(iss: string, keys: RemoteKeys): KeySource {
    const before = this.#issuers.get(iss)?.keys;
    if (before instanceof Succession && before.next === keys) return before;
    return before === undefined || before === keys || keys.hasAnswered ? keys : new Succession(keys, before);
  }

  async #remoteOf(iss: string, place: Extract<KeyPlace, { kind: "url" }>, loading: Loading): Promise<RemoteKeys> {
    const { authFile, clock, log, onKeyGone } = this.#parts;
    const { url, caPath } = place;
    let ca: string | null = null;
    if (caPath !== null) {
      const file = { iss, path: resolve(dirname(authFile), caPath), maxBytes: AUTH_BOUNDS.caBytes, entry: place };
      ca = (await this.#soundFile(file, loading, assertCertificates)).text;
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
