// What the client verbs have in common: their flags, the server that they speak to, and how they end.

import { randomBytes } from "node:crypto";
import { systemClock, type Clock } from "../../../ops/clock.js";
import { oneLine } from "../../../ops/log.js";
import { packageVersion } from "../../../ops/version.js";
import { isOpenDirectory } from "../../../ops/watched-file.js";
import { checkedName } from "../../../protocol/names/stream-name.js";
import { formatTimestamp } from "../../../protocol/timestamp.js";
import type { Given, Task, TaskFlag, TaskWord } from "../../command/task.js";
import { quoted } from "../../command/value.js";
import { listenForStop, SIGNAL_EXIT } from "../../command/stop-signals.js";
import { EXIT, type ClientInput, type ClientSurroundings, type Output } from "../../command/verb.js";
import { credentialsOf, type Credentials } from "./credentials.js";
import { DataOutput } from "./data-output.js";
import { failure, refusal, stopped, type Failure } from "../remote/failure.js";
import { HttpClient, type Answer, type Asked } from "../remote/http-client.js";
import { RemoteServer, type Insistence } from "../remote/remote-server.js";
import { DEFAULT_SERVER, formatServer, hasPath, parseServer, type ServerAddress } from "../remote/server-address.js";

/** A verb that speaks to a server. */
export type ClientTask = Task<ClientSurroundings>;

/** What a verb ends with when nothing went wrong. */
export const DONE = null;

/** What is particular to a verb. */
export interface Errand {
  readonly name: string;
  readonly summary: string;
  readonly words?: readonly TaskWord[];
  readonly flags?: readonly TaskFlag[];
  readonly readsInput?: true;
  /** Connections at a time; 1 when absent. */
  connections?(given: Given): number;
  /** Resolves to {@link DONE}, or why it could not be done. */
  run(session: Session): Promise<Failure | typeof DONE>;
}

const STOP_SIGNALS = ["SIGHUP", "SIGINT", "SIGTERM"] as const;

/** The word for a stream's name. */
export const NAME: TaskWord = { placeholder: "NAME", isRequired: true };

/** The flags of every client verb. */
export const CONNECTION_FLAGS: readonly TaskFlag[] = [
  {
    ...flag("server", "text", "URL", `the server, or unix:PATH; STREAM_URL too; else ${DEFAULT_SERVER}`),
    env: "STREAMDIR_URL",
  },
  { ...flag("prefix", "text", "PATH", "in front of names, when it is not the URL's path"), env: "STREAMDIR_PREFIX" },
  flag("token-file", "text", "FILE", "holds the token; else STREAMDIR_TOKEN is the token itself"),
  {
    ...flag("cert-file", "text", "FILE", "your certificate in PEM, which an https:// server may ask for"),
    env: "STREAMDIR_CERT_FILE",
  },
  { ...flag("key-file", "text", "FILE", "its key, when that is not in the same file"), env: "STREAMDIR_KEY_FILE" },
  flag("wait", "duration", "TIME", "how long to try again; else 1m for a server that has answered"),
  flag("json", "flag", "", "results as JSON, one value a line"),
];

/** A flag that may be left out, and has no variable. */
export function flag(
  name: string,
  kind: TaskFlag["kind"],
  placeholder: string,
  help: string,
  short?: string,
): TaskFlag {
  const row = { flag: name, kind, placeholder, isRequired: false, env: null, help };
  return short === undefined ? row : { ...row, short };
}

/** Makes a row of the table of verbs. */
export function clientTask(errand: Errand): ClientTask {
  const { name, summary, words = [], flags = [], readsInput } = errand;
  return {
    name,
    summary,
    words,
    flags: [...flags, ...CONNECTION_FLAGS],
    ...(readsInput === undefined ? {} : { readsInput }),
    run: (given, surroundings) => runErrand(errand, given, surroundings),
  };
}

async function runErrand(errand: Errand, given: Given, surroundings: ClientSurroundings): Promise<number> {
  const { stderr } = surroundings;
  const ending = new AbortController();
  // Until there is a session, a signal ends the process at once: the token may be waited for.
  const session = await openSession(errand, given, surroundings, ending.signal);
  const failed = "kind" in session ? session : await runIn(session, errand, ending);
  const status = failed === DONE ? EXIT.done : failed.status;
  if (failed !== DONE && failed.line !== "") say(stderr, failed.line);
  // What nobody takes would keep the process alive.
  if (session instanceof Session && session.out.isCut) stderr.write("", () => surroundings.exit(status));
  return status;
}

async function runIn(session: Session, errand: Errand, ending: AbortController): Promise<Failure | typeof DONE> {
  const { surroundings, clock, out, signal } = session;
  const stop = listenForStop(surroundings, clock, STOP_SIGNALS, (name) => ending.abort(SIGNAL_EXIT[name]));
  try {
    const failed = await errand.run(session);
    return out.isCut ? stopped(signal) : failed;
  } catch (error) {
    // What a signal breaks off, like the input, is no fault.
    return signal.aborted ? stopped(signal) : faultOf(error);
  } finally {
    stop.release();
    session.close();
  }
}

/** Of an error that a verb does not expect. Its input and its output are all that it asks the system for. */
function faultOf(error: unknown): Failure {
  const said = error instanceof Error ? error : new Error(String(error));
  return "syscall" in said
    ? failure(EXIT.fault, `the input can't be read, or the output can't be written: ${said.message}`)
    : failure(EXIT.crash, `this is a fault of streamdir: ${said.stack ?? said.message}`);
}

/** What keeps the input from being read: Node takes a directory for an empty one. */
export function faultOfInput({ fd }: ClientInput): Failure | null {
  const isDirectory = fd !== undefined && isOpenDirectory(fd);
  return isDirectory ? failure(EXIT.fault, "the input can't be read: it is a directory") : null;
}

async function openSession(
  errand: Errand,
  given: Given,
  surroundings: ClientSurroundings,
  signal: AbortSignal,
): Promise<Session | Failure> {
  const { env } = surroundings;
  const shared = env["STREAM_URL"] ?? "";
  const isShared = !given.has("server") && shared !== "";
  const called = { server: isShared ? "STREAM_URL" : given.nameOf("server"), prefix: given.nameOf("prefix") };
  const written = given.text("server") ?? (isShared ? shared : DEFAULT_SERVER);
  // A variable is for many servers: the path of one URL says more. A flag is meant for this one.
  const isImplied = called.prefix !== "--prefix" && hasPath(written);
  const address = parseServer(written, isImplied ? null : given.text("prefix"), called);
  if ("fault" in address) return failure(EXIT.usage, address.fault);
  const credentials = await credentialsOf(given, env, address);
  if ("kind" in credentials) return credentials;
  const connections = errand.connections?.(given) ?? 1;
  const session = new Session({ given, surroundings, address, credentials, connections, signal });
  if (credentials.token !== null && !address.isPrivate)
    session.say(`the token goes to ${session.serverName} unencrypted`);
  if (credentials.certificate !== null && credentials.certificate.endsAtMs <= session.clock.nowMs())
    session.say(`the certificate ended at ${formatTimestamp(credentials.certificate.endsAtMs)}`);
  return session;
}

interface SessionParts {
  readonly given: Given;
  readonly surroundings: ClientSurroundings;
  readonly address: ServerAddress;
  readonly credentials: Credentials;
  readonly connections: number;
  readonly signal: AbortSignal;
}

/** One run of a verb. */
export class Session {
  readonly given: Given;
  readonly server: RemoteServer;
  /** For data, and nothing else. */
  readonly out: DataOutput;
  readonly clock: Clock = systemClock();
  /** Aborted by the signals that end the verb; its reason is the exit status. */
  readonly signal: AbortSignal;
  readonly surroundings: ClientSurroundings;
  readonly serverName: string;
  readonly #parts: SessionParts;
  readonly #client: HttpClient;

  constructor(parts: SessionParts) {
    const { given, surroundings, address, credentials, connections, signal } = parts;
    this.#parts = parts;
    this.given = given;
    this.surroundings = surroundings;
    this.signal = signal;
    this.out = new DataOutput(surroundings.stdout, signal);
    this.serverName = formatServer(address);
    const userAgent = `streamdir/${packageVersion()}`;
    this.#client = new HttpClient({ address, ...credentials, userAgent, connections, signal });
    this.server = new RemoteServer({
      client: this.#client,
      clock: this.clock,
      random: Math.random,
      name: this.serverName,
      showsCertificate: credentials.certificate !== null,
      prefix: address.prefix,
      patienceMs: given.durationMs("wait"),
      say: (line) => this.say(line),
      signal,
    });
  }

  /** Whether results are to be JSON. */
  get asJson(): boolean {
    return this.given.has("json");
  }

  /** Says something to people, on standard error. */
  say(line: string): void {
    say(this.surroundings.stderr, line);
  }

  /** The stream's name at a place among the words, or why it is none. */
  name(place: number): string | Failure {
    const word = this.given.word(place);
    if (/^https?:\/\//.test(word))
      return failure(EXIT.usage, `${quoted(word)}: this is a URL: write the name alone, and the server with --server`);
    const checked = checkedName(word);
    if ("name" in checked) return checked.name;
    const at = word.startsWith("/") ? "beginning" : word.endsWith("/") ? "end" : null;
    const hint = at === null ? "" : ` Leave out the / at its ${at}.`;
    return failure(EXIT.usage, `${quoted(word)}: ${checked.fault}${hint}`);
  }

  /** The answer, if its status is one of these; else why not. */
  async expect(statuses: readonly number[], about: string, asked: Asked, insistence?: Insistence) {
    const answer = await this.server.askStream(asked, insistence);
    return answer.kind === "failure" || statuses.includes(answer.status) ? answer : refusal(answer, about);
  }

  /** Ends with a result: `facts` as JSON where that is asked for. Without, people on a terminal read `line`. */
  async conclude(line: string, facts: object): Promise<typeof DONE> {
    if (this.asJson) await this.out.writeJson(facts);
    else if (this.surroundings.stderr.isTTY === true) this.say(line);
    return DONE;
  }

  /** Another one with the same server, for what is left to do after a signal; the caller closes it. */
  afterSignal(signal: AbortSignal): Session {
    return new Session({ ...this.#parts, signal });
  }

  /** Ends the connections. */
  close(): void {
    this.#client.close();
  }
}

function say(stderr: Output, line: string): void {
  stderr.write(`streamdir: ${oneLine(line)}\n`);
}

/** An id that nobody else has, for a producer or a stream. */
export function freshId(): string {
  return randomBytes(12).toString("hex");
}

/** The offset where a stream ends, as an answer says it. */
export function nextOffsetOf(answer: Answer): string {
  return answer.header("stream-next-offset") ?? "";
}

/** A stream as messages name it. */
export function streamCalled(name: string): string {
  return `stream ${JSON.stringify(name)}`;
}
