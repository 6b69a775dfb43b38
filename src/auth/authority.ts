// Who sent a request, by the auth file: the one door of this room for HTTP.

import type { X509Certificate } from "node:crypto";
import type { Clock } from "../ops/clock.js";
import type { Log } from "../ops/log.js";
import { isReadFailure, WatchedFile } from "../ops/watched-file.js";
import { parseAuthFile } from "./auth-file.js";
import type { AuthFile } from "./auth-file.js";
import { AUTH_BOUNDS, REMEMBERED_BOUNDS } from "./bounds.js";
import { AuthFileError, UnreadFileError } from "./checked-json.js";
import { ClientAuthorities } from "./client-authorities.js";
import { IssuerKeys, keyFilesOf } from "./issuer-keys.js";
import type { KeyFault } from "./issuer-keys.js";
import { MAX_JWT_CHARS } from "./jwt/compact.js";
import { KnownCaller } from "./known-caller.js";
import { invalid, Policy } from "./policy.js";
import { Remembered } from "./remembered.js";
import type { Authentication, Caller, Unauthenticated } from "./rights/caller.js";
import type { Credentials } from "./rights/credentials.js";
import { TOKEN_PREFIX } from "./token.js";
import { MAX_TICKET_CHARS } from "./ticket.js";
import type { IssuedTicket, WantedTicket } from "./tickets.js";

export { AuthFileError } from "./checked-json.js";

/** The options of {@link Authority.open}. */
export interface AuthorityOptions {
  readonly file: string;
  readonly clock: Clock;
  readonly log: Log;
  /** How often the files are looked at, in milliseconds; 2 s when it is left out. */
  readonly watchIntervalMs?: number;
}

const BEARER = "Bearer ";
const BEARER_FORM = /^bearer +(\S+)$/i;
const MAX_HEADER_CHARS = MAX_JWT_CHARS + 64;

const MISSING: Unauthenticated = {
  kind: "unauthenticated",
  code: "credential-missing",
  detail: "This needs a credential: send Authorization: Bearer TOKEN.",
};
const NO_BEARER = invalid("The Authorization header must be Bearer TOKEN, with one token.");

/** An auth file as it was taken. */
interface TakenFile {
  readonly text: string;
  readonly parsed: AuthFile;
}

/** Answers who sent a request, as the auth file has it now. */
export class Authority {
  readonly #options: AuthorityOptions;
  readonly #keys: IssuerKeys;
  readonly #headers: Remembered;
  readonly #tickets: Remembered;
  readonly #listeners = new Set<() => void>();
  readonly #watchedFile: WatchedFile;
  #watchedKeys: WatchedFile | null = null;
  readonly #clientAuthorities = new ClientAuthorities();
  #policy = new Policy(NOTHING, new Map(), this.#clientAuthorities);
  #loading: Promise<unknown> = Promise.resolve();
  /** The files whose permissions were told of. */
  readonly #warnedOf = new Set<string>();
  /** The auth file that was taken last; `null` where none was. */
  #taken: TakenFile | null = null;
  #isClosed = false;
  #isCurrent = true;

  private constructor(options: AuthorityOptions) {
    const { file, clock, log, watchIntervalMs } = options;
    this.#options = options;
    this.#headers = new Remembered(REMEMBERED_BOUNDS, clock);
    this.#tickets = new Remembered(REMEMBERED_BOUNDS, clock);
    this.#keys = new IssuerKeys({ authFile: file, clock, log, onKeyGone: () => this.#changed() });
    // Before the first read: a change during it is seen.
    this.#watchedFile = new WatchedFile([file], () => void this.#reloadInTurn(), watchIntervalMs);
  }

  /** Reads and checks the file whole; rejects with a one-line {@link AuthFileError} that has file and line. */
  static async open(options: AuthorityOptions): Promise<Authority> {
    const authority = new Authority(options);
    try {
      const loading = authority.#load();
      // A change while it is read is read after it.
      authority.#loading = loading.catch(() => undefined); // whoever opens is told
      const { fault, keyFaults } = await loading;
      if (fault !== null) throw fault;
      authority.#isCurrent = keyFaults.length === 0;
      return authority;
    } catch (error) {
      authority.close();
      throw error;
    }
  }

  /**
   * Who sent a request: at once nearly always; a promise, which never rejects, only where an issuer's keys must be
   * fetched. `name` is the stream's name, `null` where the request names none. Never throws.
   */
  authenticate(credentials: Credentials, name: string | null): Authentication | Promise<Authentication> {
    const { authorization, ticket, certificate } = credentials;
    if (authorization !== null) return this.#byHeader(authorization);
    if (ticket !== null) return this.#byTicket(ticket, name);
    if (certificate !== null) return this.#policy.byCertificate(certificate, this.#nowMs());
    return this.#policy.publicCaller ?? MISSING;
  }

  /** Whether a signature must be verified to say who sent these: a token costs less, and what is remembered. */
  mustVerify({ authorization }: Credentials): boolean {
    if (authorization === null || authorization.startsWith(`${BEARER}${TOKEN_PREFIX}`)) return false;
    return this.#headers.find(authorization, null) === null;
  }

  /** What a caller is now, after the file changed: `null` when its credential no longer holds. */
  renew(caller: Caller): Caller | null {
    const basis = KnownCaller.basisOf(caller);
    return basis === null ? null : this.#policy.renew(basis, this.#nowMs());
  }

  /**
   * Issues a ticket for `name`, whose rights to it `caller` was asked for before: it never outlives the caller, nor 7
   * days; without a wanted life it has 1 h.
   */
  issueTicket(caller: Caller, wanted: WantedTicket): IssuedTicket {
    return this.#policy.tickets.issue(caller, KnownCaller.basisOf(caller), wanted, this.#nowMs());
  }

  /**
   * Reads the files again, as on SIGHUP; a broken auth file keeps the old one, and a broken key file its issuer's keys,
   * with a line in the log. Resolves to whether the auth file was taken.
   */
  reload(): Promise<boolean> {
    this.#watchedFile.tellAnew();
    return this.#reloadInTurn();
  }

  #reloadInTurn(): Promise<boolean> {
    // One after the other: of two reads at the same time the older could win.
    const done = this.#loading.then(() => this.#reload());
    this.#loading = done.catch(() => undefined); // whoever asked is told
    return done;
  }

  /**
   * Only certificates that one of these has signed count from now on, on connections that are open too. Before the
   * first call all do that TLS lets in.
   */
  trustClients(authorities: readonly X509Certificate[]): void {
    this.#clientAuthorities.replace(authorities);
    this.#changed();
  }

  /** Calls `listener` after each change that was taken; returns the way to stop it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Whether the auth file and all key files hold as they were when they were last read. */
  get isCurrent(): boolean {
    return this.#isCurrent;
  }

  /** Stops watching the files and fetching keys. */
  close(): void {
    this.#isClosed = true;
    this.#watchedFile.close();
    this.#watchedKeys?.close();
    this.#keys.close();
  }

  #byHeader(header: string): Authentication | Promise<Authentication> {
    const known = this.#headers.find(header, null);
    if (known !== null) return known;
    const token = header.length > MAX_HEADER_CHARS ? undefined : BEARER_FORM.exec(header)?.[1];
    if (token === undefined) return NO_BEARER;
    const policy = this.#policy;
    const found = policy.byBearer(token, this.#nowMs());
    if (!(found instanceof Promise)) return this.#keep(header, token, found);
    // While keys were fetched the file may have changed: then the new one decides.
    return found.then((answer) =>
      this.#policy === policy ? this.#keep(header, token, answer) : this.#byHeader(header),
    );
  }

  /** Remembers only the usual spelling: others of the same token would push out other tokens. */
  #keep(header: string, token: string, found: Authentication): Authentication {
    if (found instanceof KnownCaller && header.length === BEARER.length + token.length && header.startsWith(BEARER))
      this.#headers.keep(header, null, found, found.weight);
    return found;
  }

  #byTicket(ticket: string, name: string | null): Authentication | Promise<Authentication> {
    const known = name === null ? null : this.#tickets.find(ticket, name);
    if (known !== null) return known;
    // A copy: a part of its URL would keep all of that in memory.
    const own = ticket.length > MAX_TICKET_CHARS ? ticket : Buffer.from(ticket).toString();
    const policy = this.#policy;
    const found = policy.byTicket(own, name, this.#nowMs());
    if (!(found instanceof Promise)) return this.#keepTicket(own, name, found);
    return found.then((answer) =>
      this.#policy === policy ? this.#keepTicket(own, name, answer) : this.#byTicket(own, name),
    );
  }

  #keepTicket(ticket: string, name: string | null, found: Authentication): Authentication {
    if (found instanceof KnownCaller) this.#tickets.keep(ticket, name, found);
    return found;
  }

  async #reload(): Promise<boolean> {
    if (this.#isClosed) return false;
    const { file, log } = this.#options;
    const before = this.#taken;
    const { fault, keyFaults } = await this.#load();
    this.#isCurrent = fault === null && keyFaults.length === 0;
    const own = fault === null ? [] : [{ fault: fault.message, isUnread: fault instanceof UnreadFileError }];
    const isNews = this.#watchedFile.noteFaults([...keyFaults, ...own]);
    if (isNews) for (const { level, message, fault } of keyFaults) log[level](message, { fault });
    if (isNews && fault !== null)
      log.error("the auth file is not taken; what it said before still holds", { fault: fault.message });
    if (fault === null && (isNews || before?.text !== this.#taken?.text)) log.info("the auth file was taken", { file });
    return fault === null;
  }

  /** Takes the files, as far as they are sound: says what is wrong with the auth file, and with the keys of issuers. */
  async #load(): Promise<{ readonly fault: AuthFileError | null; readonly keyFaults: readonly KeyFault[] }> {
    const { file } = this.#options;
    try {
      const text = await this.#read();
      return { fault: null, keyFaults: await this.#take({ text, parsed: parseAuthFile({ file, text }) }) };
    } catch (fault) {
      if (!(fault instanceof AuthFileError)) throw fault;
      // What holds on does so with its key files as they are now: a key that was taken out of one may be stolen.
      return { fault, keyFaults: this.#taken === null ? [] : await this.#take(this.#taken) };
    }
  }

  /** Returns what is wrong with the keys of issuers. */
  async #take(taken: TakenFile): Promise<readonly KeyFault[]> {
    const keyFiles = keyFilesOf(taken.parsed, this.#options.file);
    this.#watchKeys(keyFiles);
    await this.#warnOfWriters(keyFiles);
    const { issuers, faults, areSame } = await this.#keys.load(taken.parsed);
    // A key file that can't be read is tried again and again: that changes nothing for those who read.
    if (areSame && taken.text === this.#taken?.text) return faults;
    this.#taken = taken;
    this.#policy = new Policy(taken.parsed, issuers, this.#clientAuthorities);
    this.#changed();
    return faults;
  }

  async #read(): Promise<string> {
    const { file } = this.#options;
    const message = "every user of this machine may read the auth file; chmod 600 keeps it to its owner";
    await this.#warnOnce(file, WatchedFile.isReadableByAll, message);
    try {
      return await WatchedFile.read(file, AUTH_BOUNDS.fileBytes);
    } catch (error) {
      const fault = `${file}:1: can't be read: ${error instanceof Error ? error.message : String(error)}`;
      throw isReadFailure(error) ? new UnreadFileError(fault) : new AuthFileError(fault);
    }
  }

  /** Who writes a key file signs for anybody; that others read it does no harm. */
  async #warnOfWriters(keyFiles: readonly string[]): Promise<void> {
    const message = "every user of this machine may write a key file; chmod go-w keeps it to its owner";
    for (const file of keyFiles) await this.#warnOnce(file, WatchedFile.isWritableByAll, message);
  }

  async #warnOnce(file: string, isOpen: (path: string) => Promise<boolean>, message: string): Promise<void> {
    const isTold = this.#warnedOf.has(file);
    // Who mends it and makes the mistake again is told again.
    if (!(await isOpen(file))) return void this.#warnedOf.delete(file);
    if (isTold) return;
    this.#warnedOf.add(file);
    this.#options.log.warn(message, { file });
  }

  /** Before they are read, and even if they are broken: so that their repair is seen. */
  #watchKeys(paths: readonly string[]): void {
    this.#watchedKeys?.close();
    this.#watchedKeys =
      paths.length === 0 || this.#isClosed
        ? null
        : new WatchedFile(paths, () => void this.#reloadInTurn(), this.#options.watchIntervalMs);
  }

  #changed(): void {
    this.#headers.clear();
    this.#tickets.clear();
    for (const listener of this.#listeners) listener();
  }

  #nowMs(): number {
    return this.#options.clock.nowMs();
  }
}

/** What holds until the file was read. */
const NOTHING: AuthFile = { tokens: [], issuers: [], certificates: null, ticketKeys: [], public: [], revoked: [] };
