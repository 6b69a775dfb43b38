// Brings the keys of the issuers together: secrets, files beside the auth file, and URLs.

import { dirname, resolve } from "node:path";
import type { Clock } from "../ops/clock.js";
import type { Log } from "../ops/log.js";
import { isReadFailure, WatchedFile } from "../ops/watched-file.js";
import type { AuthFile, IssuerEntry, KeyPlace } from "./auth-file.js";
import { AUTH_BOUNDS } from "./bounds.js";
import { faultAt, UnreadFileError } from "./checked-json.js";
import { MAX_KEY_SET_BYTES, parseKeySet } from "./jwt/key-set.js";
import { fixedKeys } from "./jwt/key-source.js";
import type { KeySource } from "./jwt/key-source.js";
import { RemoteKeys } from "./jwt/remote-keys.js";
import { Succession } from "./jwt/succession.js";
import { secretKey } from "./jwt/verification-key.js";
import type { GrantingIssuer } from "./policy.js";

/** What {@link IssuerKeys} work with. */
export interface IssuerKeysParts {
  readonly authFile: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when a key that was there is gone. */
  readonly onKeyGone: () => void;
}

/** The files that the auth file names, as paths from the root. */
export function keyFilesOf({ issuers }: AuthFile, authFile: string): string[] {
  return issuers.flatMap(({ keys }) => {
    const path = keys.kind === "file" ? keys.path : keys.kind === "url" ? keys.caPath : null;
    return path === null ? [] : [resolve(dirname(authFile), path)];
  });
}

/** The keys of the issuers. What was fetched stays when the auth file changes and still names its URL. */
export class IssuerKeys {
  readonly #parts: IssuerKeysParts;
  #remote: ReadonlyMap<string, RemoteKeys> = new Map();
  #issuers: ReadonlyMap<string, GrantingIssuer> = new Map();

  constructor(parts: IssuerKeysParts) {
    this.#parts = parts;
  }

  /** The issuers of an auth file by their names; rejects with `AuthFileError`, and changes nothing then. */
  async load(file: AuthFile): Promise<ReadonlyMap<string, GrantingIssuer>> {
    const remote = new Map<string, RemoteKeys>();
    const issuers = new Map<string, GrantingIssuer>();
    for (const entry of file.issuers) issuers.set(entry.iss, { ...entry, keys: await this.#sourceOf(entry, remote) });
    const before = this.#remote;
    this.#remote = remote;
    this.#issuers = issuers;
    for (const [place, keys] of before) if (!remote.has(place)) keys.close();
    for (const keys of remote.values()) keys.warm();
    return issuers;
  }

  close(): void {
    for (const keys of this.#remote.values()) keys.close();
  }

  async #sourceOf({ iss, keys, algs }: IssuerEntry, remote: Map<string, RemoteKeys>): Promise<KeySource> {
    if (keys.kind === "secret") return fixedKeys([secretKey(keys.secret)]);
    if (keys.kind === "url") return this.#succeeding(iss, await this.#remoteOf(keys, remote));
    const file = resolve(dirname(this.#parts.authFile), keys.path);
    const text = await readBeside(file, MAX_KEY_SET_BYTES, keys);
    const set = parseKeySet(text);
    if (set.kind === "fault") throw faultAt({ file, text }, set.at, `the set of keys ${set.words}`);
    const fitting = set.keys.filter(({ alg }) => algs.includes(alg));
    if (fitting.length === 0) throw faultAt({ file, text }, 0, `the set has no key for ${algs.join(", ")}`);
    return fixedKeys(fitting);
  }

  /** An issuer's keys at a URL, with those that it had before until there is an answer. */
  #succeeding(iss: string, keys: RemoteKeys): KeySource {
    const before = this.#issuers.get(iss)?.keys;
    if (before instanceof Succession && before.next === keys) return before;
    return before === undefined || before === keys || keys.hasAnswered ? keys : new Succession(keys, before);
  }

  async #remoteOf(place: Extract<KeyPlace, { kind: "url" }>, remote: Map<string, RemoteKeys>): Promise<RemoteKeys> {
    const { authFile, clock, log, onKeyGone } = this.#parts;
    const { url, caPath } = place;
    const ca =
      caPath === null ? null : await readBeside(resolve(dirname(authFile), caPath), AUTH_BOUNDS.caBytes, place);
    const key = `${url}\n${ca ?? ""}`;
    const keys =
      remote.get(key) ?? this.#remote.get(key) ?? new RemoteKeys({ place: { url, ca }, clock, log, onKeyGone });
    remote.set(key, keys);
    return keys;
  }
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
    throw isReadFailure(error) ? new UnreadFileError(fault.message) : fault;
  }
}
