import { CONNECTION_FLAGS } from "../../src/cli/client/session/session.js";
import { writtenFlag, usageOf, type DescribedTask } from "../../src/cli/command/task-help.js";
import type { TaskFlag } from "../../src/cli/command/task.js";
import { COMMANDS, VERBS } from "../../src/cli/commands.js";
import { Page } from "../helpers/page-examples.js";

const SHARED = new Set(CONNECTION_FLAGS.map(({ flag }) => flag));
const [{ name: IMPLIED }] = VERBS;

/** The manual page of the command, in the language of man(7), from the table of commands, docs/operating.md and docs/cli.md. */
export function manPage(): string {
  const lines = [
    '.\\" Made by UPDATE_DOCS=1 from the table of commands.',
    '.TH STREAMDIR 1 "" "streamdir" "User Commands"',
    ".SH NAME",
    "streamdir \\- serve, read and write append-only byte streams",
    ".SH SYNOPSIS",
    ...COMMANDS.flatMap(({ tasks, ...task }) =>
      tasks.length === 0 ? synopsis(task.name, task) : tasks.flatMap((each) => synopsis(`${task.name} ${each.name}`, each)),
    ).slice(1),
    ".SH DESCRIPTION",
    prose("streamdir serves named, append-only byte streams in a directory over HTTP, and speaks to such a server."),
    ".SH COMMANDS",
    ...COMMANDS.flatMap(({ tasks, ...task }) =>
      tasks.length === 0 ? section(task.name, task) : tasks.flatMap((each) => section(`${task.name} ${each.name}`, each)),
    ),
    ".SH FLAGS OF COMMANDS FOR A SERVER",
    ...CONNECTION_FLAGS.flatMap(paragraph),
    ".SH FLAGS OF THE SERVER",
    prose(`Of ${IMPLIED} and systemd. A flag wins over its variable.`),
    ...(COMMANDS.find(({ name }) => name === IMPLIED)?.flags ?? []).filter(isOption).flatMap(paragraph),
    ".SH ENVIRONMENT",
    ".TP",
    ".B STREAMDIR_TOKEN",
    prose("the token that is sent to a server, unless --token-file names a file that holds it"),
    ".TP",
    ".B STREAM_URL",
    prose("the server, where neither --server nor STREAMDIR_URL says it"),
    ".TP",
    ".B NO_COLOR",
    prose("if it is not empty, charts have no colours"),
    ".SH EXIT STATUS",
    ...statuses(),
    ".SH EXAMPLES",
    ...[
      "streamdir serve ./data",
      "tail -F app.log | streamdir append logs/app --lines --create",
      "streamdir tail logs/app -f",
      "streamdir export 'chat/**' > chats.tar",
    ].flatMap((example, at) => [...(at === 0 ? [] : [".PP"]), ".nf", escaped(example), ".fi"]),
  ];
  return `${lines.join("\n")}\n`;
}

function synopsis(called: string, task: DescribedTask): string[] {
  return [".br", `.B streamdir ${escaped(usageOf(called, task))}`];
}

function section(called: string, task: DescribedTask): string[] {
  const isClient = task.flags.some(({ flag }) => flag === "server");
  const own = task.flags.filter((flag) => !isOption(flag) && !(isClient && SHARED.has(flag.flag)));
  return [
    `.SS streamdir ${escaped(usageOf(called, task))}`,
    `${prose(`${task.summary.slice(0, 1).toUpperCase()}${task.summary.slice(1)}.`)}`,
  ].concat(own.flatMap(paragraph));
}

/** Whether it is one of the server's options, which have a section of their own. */
function isOption({ flag, env }: TaskFlag): boolean {
  const serve = COMMANDS.find(({ name }) => name === IMPLIED)?.flags ?? [];
  return flag.startsWith("no-") || (env !== null && serve.some((option) => option.flag === flag && option.env === env));
}

function paragraph(flag: TaskFlag): string[] {
  const also = flag.env === null ? "" : ` (${flag.env}${flag.default === undefined ? "" : `, ${flag.default} by default`})`;
  return [".TP", `.B ${escaped(writtenFlag(flag))}`, prose(`${flag.help}${also}`)];
}

/** The tables of docs/operating.md and docs/cli.md. */
function statuses(): string[] {
  const [, exits = ""] = /<!-- exits:begin -->\n([\s\S]*?)<!-- exits:end -->/.exec(new Page("docs/operating.md").text) ?? [];
  const ofDirectory = exits.matchAll(/^\| (\d[\d, ]*) \| (.*) \| .* \|$/gm);
  const rows = new Page("docs/cli.md").text.matchAll(/^\| (\d[\d, ]*) \| (?:`(\w+)`)? ?\| (.*) \|$/gm);
  return [
    `.SS Of ${VERBS.map(({ name }) => name).join(", ")}`,
    ...[...ofDirectory].flatMap(([, status = "", why = ""]) => [".TP", `.B ${status}`, prose(why.replaceAll("`", ""))]),
    ".SS Of commands for a server",
    ...[...rows].flatMap(([, status = "", name = "", why = ""]) => [".TP", `.B ${status}${name === "" ? "" : ` ${name}`}`, prose(why)]),
  ];
}

/** Text as it is: a dash is no hyphen, and a line begins with no control character. */
function escaped(text: string): string {
  const written = text.replaceAll("\\", "\\e").replaceAll("-", "\\-");
  return /^[.']/.test(written) ? `\\&${written}` : written;
}

/** The same of a text that may be broken between its words. */
function prose(text: string): string {
  return [...text.matchAll(/(\S.{0,70})(?:\s|$)/g)].map(([, line = ""]) => escaped(line)).join("\n");
}
