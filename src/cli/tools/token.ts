// `streamdir token`: makes, lists and revokes the credentials of an auth file.

import { AuthFileError } from "../../auth/checked-json.js";
import {
  addTicketKey,
  addToken,
  listTokens,
  revokeToken,
  signTicket,
  type ListedToken,
} from "../../auth/auth-file-edit.js";
import { isOperation, OPERATIONS, type Operation } from "../../auth/rights/operation.js";
import { systemClock } from "../../ops/clock.js";
import { oneLine } from "../../ops/log.js";
import { checkedName } from "../../protocol/names.js";
import { quoted } from "../terms/value.js";
import { EXIT, type Surroundings } from "../terms/verb.js";
import type { Given, Tool, ToolCommand, ToolFlag } from "./tool.js";

const AUTH: ToolFlag = {
  flag: "auth",
  kind: "text",
  placeholder: "FILE",
  isRequired: true,
  env: "STREAMDIR_AUTH",
  help: "the auth file; made if need be",
};
const ID: ToolFlag = { flag: "id", kind: "text", placeholder: "ID", isRequired: true, help: "what it is called" };
const EXPIRES: ToolFlag = {
  flag: "expires",
  kind: "duration",
  placeholder: "TIME",
  help: "ends after so long, like 30d",
};

const ADD: ToolCommand = {
  name: "token add",
  summary: "make a token and print it; it is shown this once, and the file keeps only its hash",
  details: [
    "",
    `OPS are some of ${OPERATIONS.join(", ")}, separated by commas.`,
    "PATTERNS are names of streams, separated by commas; * is a segment or a part of one, ** any number of them.",
  ],
  flags: [
    AUTH,
    ID,
    { flag: "allow", kind: "text", placeholder: "OPS", isRequired: true, help: "what it may do" },
    { flag: "streams", kind: "text", placeholder: "PATTERNS", isRequired: true, help: "on which streams" },
    EXPIRES,
    { flag: "rate", kind: "text", placeholder: "RATE", help: "its own rate, like 50 or 50,1MiB a second" },
  ],
  run: (given, surroundings) => reported(surroundings, () => add(given, surroundings)),
};

async function add(given: Given, { stdout, stderr }: Surroundings): Promise<number> {
  const allow = given.needed("allow").split(",");
  const unknown = allow.find((operation) => !isOperation(operation));
  if (unknown !== undefined)
    return refused(stderr, `--allow must be some of ${OPERATIONS.join(", ")}, not ${quoted(unknown)}`);
  const rate = given.text("rate");
  const token = await addToken(given.needed("auth"), {
    id: given.needed("id"),
    grants: [
      {
        streams: given.needed("streams").split(","),
        allow: allow.filter(isOperation) satisfies Operation[],
        ...(rate === null ? {} : { rate }),
      },
    ],
    expiresAtMs: endOf(given),
  });
  stdout.write(`${token}\n`);
  return EXIT.done;
}

const LIST: ToolCommand = {
  name: "token list",
  summary: "list the tokens, never their secrets",
  flags: [AUTH, { flag: "json", kind: "switch", help: "a token a line, as JSON" }],
  run: (given, surroundings) =>
    reported(surroundings, async () => {
      for (const token of await listTokens(given.needed("auth")))
        surroundings.stdout.write(`${given.has("json") ? JSON.stringify(token) : lineOf(token)}\n`);
      return EXIT.done;
    }),
};

function lineOf({ id, state, expires, grants }: ListedToken): string {
  const rights = grants.map(({ allow, streams }) => `${allow.join(",")} on ${streams.join(",")}`).join("; ");
  return oneLine(`${id}  ${state}${expires === null ? "" : ` until ${expires}`}  ${rights}`);
}

const REVOKE: ToolCommand = {
  name: "token revoke",
  summary: "end a token, and the tickets that were issued for it",
  flags: [AUTH, ID],
  run: (given, surroundings) =>
    reported(surroundings, async () => {
      if (await revokeToken(given.needed("auth"), given.needed("id"))) return EXIT.done;
      surroundings.stderr.write(`streamdir: there is no token ${quoted(given.needed("id"))}\n`);
      return EXIT.unusable;
    }),
};

const SIGN: ToolCommand = {
  name: "token sign",
  summary: "print a ticket: a right to read one stream that fits into a URL",
  flags: [
    AUTH,
    { flag: "stream", kind: "text", placeholder: "NAME", isRequired: true, help: "the stream's name" },
    { flag: "close", kind: "switch", help: "it may also close the stream" },
    { flag: "expires", kind: "duration", placeholder: "TIME", help: "ends after so long; 1h if absent, at most 7d" },
    { flag: "key", kind: "text", placeholder: "ID", help: "the key that signs; the first if absent" },
  ],
  run: (given, surroundings) => reported(surroundings, () => sign(given, surroundings)),
};

async function sign(given: Given, { stdout, stderr }: Surroundings): Promise<number> {
  const name = given.needed("stream");
  const checked = checkedName(name);
  if ("fault" in checked) return refused(stderr, checked.fault);
  const wanted = { name, close: given.has("close"), lifetimeMs: given.number("expires"), keyId: given.text("key") };
  stdout.write(`${await signTicket(given.needed("auth"), wanted)}\n`);
  return EXIT.done;
}

const ADD_KEY: ToolCommand = {
  name: "token add-key",
  summary: "add a key that tickets are signed with",
  flags: [AUTH, ID],
  run: (given, surroundings) =>
    reported(surroundings, async () => {
      await addTicketKey(given.needed("auth"), given.needed("id"));
      return EXIT.done;
    }),
};

/** The commands for the auth file (docs/auth.md). */
export const TOKEN_TOOL: Tool = {
  name: "token",
  summary: "Makes, lists and revokes what an auth file lets in (docs/auth.md). A running server reads it again.",
  commands: [ADD, LIST, REVOKE, SIGN, ADD_KEY],
};

/** When what is made now ends, in milliseconds since 1970; `null` when it does not. */
function endOf(given: Given): number | null {
  const lifetimeMs = given.number("expires");
  return lifetimeMs === null ? null : systemClock().nowMs() + lifetimeMs;
}

/** Runs `work`; what is wrong with the file becomes one line. */
async function reported({ stderr }: Surroundings, work: () => Promise<number>): Promise<number> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof AuthFileError)) throw error;
    stderr.write(`streamdir: ${oneLine(error.message)}\n`);
    return EXIT.unusable;
  }
}

function refused(stderr: Surroundings["stderr"], line: string): number {
  stderr.write(`streamdir: ${oneLine(line)}\n`);
  return EXIT.usage;
}
