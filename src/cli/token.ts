// `streamdir token`: makes, lists and revokes tokens, and signs tickets (docs/auth.md).

import { addTicketKey, addToken, listTokens, revokeToken, signTicketOf } from "../auth/auth-file-edits.js";
import type { ListedToken } from "../auth/auth-file-edits.js";
import { ID_PATTERN } from "../auth/auth-file.js";
import { AuthFileError } from "../auth/checked-json.js";
import { isAdminForSome } from "../auth/rights/grant.js";
import { isOperation, OPERATIONS } from "../auth/rights/operation.js";
import { faultOfPattern } from "../auth/rights/pattern.js";
import { DEFAULT_TICKET_LIFE_MS, MAX_TICKET_LIFE_MS } from "../auth/ticket.js";
import { systemClock } from "../ops/clock.js";
import { oneLine, visibleJson } from "../ops/log.js";
import { WatchedFile } from "../ops/watched-file.js";
import { decodeName } from "../protocol/names/stream-name.js";
import type { Given, Task, TaskFlag, Tool } from "./command/task.js";
import { quoted } from "./command/value.js";
import { EXIT } from "./command/verb.js";
import type { Output, Surroundings } from "./command/verb.js";

const AUTH: TaskFlag = {
  flag: "auth",
  kind: "text",
  placeholder: "FILE",
  isRequired: true,
  env: "STREAMDIR_AUTH",
  help: "the auth file; one that is not there is made by add and key",
};
const ID: TaskFlag = {
  flag: "id",
  kind: "text",
  placeholder: "ID",
  isRequired: true,
  env: null,
  help: "1 to 64 letters, digits and -; it stands in logs",
};

/** The command line is wrong: one line that says what would be right. */
class UsageFault extends Error {}

/** Nobody has the secret of a token that was made. */
class LostToken extends Error {}

const ADD: Task = {
  name: "add",
  summary: "make a token, and print it once: the file has only its hash",
  flags: [
    AUTH,
    ID,
    row("allow", "list", "OPS", true, `what it may do, with commas: ${OPERATIONS.join(",")}`),
    row("streams", "list", "PATTERNS", true, "on which streams, with commas: chat/42,users/**"),
    row("expires", "duration", "TIME", false, "for how long, like 30d; without it, until it is revoked"),
  ],
  run: (given, surroundings) => settled(surroundings, () => add(given, surroundings)),
};

const LIST: Task = {
  name: "list",
  summary: "list the tokens, without their secrets",
  flags: [AUTH, row("json", "flag", "", false, "one JSON object a line")],
  run: (given, surroundings) => settled(surroundings, () => list(given, surroundings)),
};

const REVOKE: Task = {
  name: "revoke",
  summary: "end a token, and the tickets that it asked for",
  flags: [AUTH, ID],
  run: (given, surroundings) => settled(surroundings, () => revoke(given, surroundings)),
};

const SIGN: Task = {
  name: "sign",
  summary: "print a ticket, which reads one stream by its URL",
  flags: [
    AUTH,
    row("stream", "text", "NAME", true, "the stream, without the prefix"),
    row("close", "flag", "", false, "may also close the stream"),
    row("expires", "duration", "TIME", false, "for how long, at most 7d; 1h when it is left out"),
    row("key", "text", "ID", false, "the ticket key that signs; else the first that may"),
  ],
  run: (given, surroundings) => settled(surroundings, () => sign(given, surroundings)),
};

const KEY: Task = {
  name: "key",
  summary: "add a key that signs tickets from now on; a backend may sign with it, too",
  flags: [AUTH, ID],
  run: (given, surroundings) => settled(surroundings, () => key(given, surroundings)),
};

/** The command and its table of flags. */
export const TOKEN: Tool = {
  name: "token",
  summary: "make, list and revoke the tokens of an auth file, and sign tickets",
  tasks: [ADD, LIST, REVOKE, SIGN, KEY],
};

function row(flag: string, kind: TaskFlag["kind"], placeholder: string, isRequired: boolean, help: string): TaskFlag {
  return { flag, kind, placeholder, isRequired, env: null, help };
}

async function add(given: Given, { stdout, stderr }: Surroundings): Promise<void> {
  const [id, allow, streams] = [idOf(given), given.list("allow"), given.list("streams")];
  const unknown = allow.find((operation) => !isOperation(operation));
  if (unknown !== undefined)
    throw new UsageFault(`--allow has ${quoted(unknown)}; operations are ${OPERATIONS.join(", ")}`);
  for (const pattern of streams) {
    const fault = faultOfPattern(pattern, false);
    if (fault !== null) throw new UsageFault(`--streams: ${quoted(pattern)} ${fault}`);
  }
  if (isAdminForSome({ streams, allow: allow.filter(isOperation) }))
    throw new UsageFault(
      "--streams must have ** where admin is allowed: it is about the server, not about some streams",
    );
  const lifetimeMs = given.durationMs("expires");
  const token = await addToken(given.required("auth"), { id, allow, streams, lifetimeMs }, systemClock().nowMs());
  const lost = await faultOfWriting(stdout, `${token}\n`);
  if (lost !== null)
    throw new LostToken(`the token ${id} is in the file and could not be printed (${lost}): revoke it`);
  stderr.write(
    `This token is shown once and kept nowhere. A running server takes it within seconds, ${UNLESS_COPIED}.\n`,
  );
}

/** Whose server does not see that the file has changed. */
const UNLESS_COPIED = "a service of systemd when it is started again, as it has a copy of the file";

/** Why a text could not be written; `null` once it is. */
function faultOfWriting(output: Output, text: string): Promise<string | null> {
  return new Promise((resolve) => void output.write(text, (error) => resolve(error?.message ?? null)));
}

async function list(given: Given, { stdout }: Surroundings): Promise<void> {
  const tokens = await listTokens(given.required("auth"), systemClock().nowMs());
  const asJson = given.has("json");
  for (const token of tokens) stdout.write(`${asJson ? visibleJson(token) : lineOf(token)}\n`);
  if (tokens.length === 0 && !asJson) stdout.write("no tokens\n");
}

function lineOf({ id, state, created, expires, grants }: ListedToken): string {
  const rights = grants.map(({ allow, streams }) => `${allow.join(",")} on ${streams.join(",")}`).join("; ");
  const end = expires === null ? "does not end" : `ends ${expires}`;
  const times = `${created === null ? "" : `, made ${created}`}, ${end}`;
  return oneLine(`${id}: ${state}${times}: ${rights}`);
}

async function revoke(given: Given, { stdout }: Surroundings): Promise<void> {
  const id = idOf(given);
  await revokeToken(given.required("auth"), id, systemClock().nowMs());
  stdout.write(
    `${id} is revoked, with the tickets that it asked for. A running server ends it within seconds,\n` +
      `${UNLESS_COPIED}.\n` +
      `The file keeps under "revoked" until when; a new token may have the id.\n`,
  );
}

async function sign(given: Given, { stdout }: Surroundings): Promise<void> {
  const path = given.required("auth");
  const lifetimeMs = given.durationMs("expires") ?? DEFAULT_TICKET_LIFE_MS;
  if (lifetimeMs > MAX_TICKET_LIFE_MS) throw new UsageFault("--expires must be at most 7d");
  const wanted = { name: nameOf(given), close: given.has("close"), lifetimeMs, keyId: given.text("key") };
  const ticket = await signTicketOf(path, wanted, systemClock().nowMs());
  if (ticket === null)
    throw new AuthFileError(`${path} has no ticket key for it: streamdir token key --auth FILE --id ID makes one`);
  stdout.write(`${ticket}\n`);
}

async function key(given: Given, { stdout, stderr }: Surroundings): Promise<void> {
  const [path, id] = [given.required("auth"), idOf(given)];
  const before = await addTicketKey(path, id);
  const except = before.length === 0 ? "" : `, but for what ${before.join(", ")} may sign`;
  stdout.write(`The ticket key ${id} is in the file, under "ticketKeys". It signs new tickets from now on${except}.\n`);
  if (await WatchedFile.isReadableByAll(path))
    stderr.write("Every user of this machine may read its secret; chmod 600 keeps the file to its owner.\n");
}

function idOf(given: Given): string {
  const id = given.required("id");
  if (!ID_PATTERN.test(id)) throw new UsageFault(`--id must be 1 to 64 letters, digits and -, not ${quoted(id)}`);
  return id;
}

/** The name as the server will have it. */
function nameOf(given: Given): string {
  // As bytes, which no name can make invalid.
  const encoded = Buffer.from(given.required("stream")).toString("hex").replace(/../g, "%$&");
  const result = decodeName(encoded);
  if ("fault" in result) throw new UsageFault(`--stream: ${result.fault}`);
  return result.name;
}

async function settled({ stderr }: Surroundings, run: () => Promise<void>): Promise<number> {
  try {
    await run();
    return EXIT.done;
  } catch (error) {
    if (!(error instanceof UsageFault || error instanceof AuthFileError || error instanceof LostToken)) throw error;
    stderr.write(`streamdir: ${oneLine(error.message)}\n`);
    if (error instanceof LostToken) return EXIT.fault;
    return error instanceof UsageFault ? EXIT.usage : EXIT.unusable;
  }
}
