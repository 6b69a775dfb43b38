import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import test, { after, describe } from "node:test";
import { COMMANDS } from "../../src/cli/commands.js";
import { EXIT } from "../../src/cli/command/verb.js";
import { createServer } from "../../src/server.js";
import { Page, PAGE_ORIGIN, STREAMDIR_IN_SHELL } from "../helpers/page-examples.js";
import { RealServer } from "../helpers/real-server.js";
import { tempDir } from "../helpers/temp-dir.js";

const PAGE = new Page("docs/cli.md");
const SOCKET = "/run/streamdir.sock";

/** Commands, and the lines that they print, which are below them after `#=`. */
interface Step {
  readonly script: string;
  readonly prints: string;
}

function stepsUnder(heading: string): Step[] {
  const blocks = heading === "" ? blocksBeforeHeadings() : PAGE.blocksUnder(heading);
  return blocks.flatMap((block) =>
    [...block.matchAll(/((?:(?!#= ).*\n)+)((?:#= .*\n)*)/g)].map(([, script = "", prints = ""]) => ({
      script,
      prints: prints.replaceAll(/^#= /gm, ""),
    })),
  );
}

function blocksBeforeHeadings(): string[] {
  const [introduction = ""] = PAGE.text.split(/^## /m);
  return [...introduction.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, code = ""]) => code);
}

/** Times and the checks of offsets differ from run to run. */
function lasting(text: string): string {
  return text.replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, "TIME").replaceAll(/(\d{16}_\d{10})\d{6}/g, "$1xxxxxx");
}

class Terminal {
  readonly cwd = tempDir();
  url = "";
  socket = "";

  /** Runs a step, and compares what it prints. */
  async follow({ script, prints }: Step): Promise<void> {
    const code = `${STREAMDIR_IN_SHELL}${script.replaceAll(PAGE_ORIGIN, this.url).replaceAll(SOCKET, this.socket)}`;
    const env = { ...process.env, STREAMDIR_URL: this.url };
    const child = spawn("bash", ["-eu", "-c", code], { cwd: this.cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    const [output, said, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    assert.equal(status, 0, `${script}${said}`);
    const here = lasting(output).replaceAll(this.url || PAGE_ORIGIN, PAGE_ORIGIN);
    // The columns of a table are as wide as its figures.
    const words = (lines: string): string => lines.replaceAll(/^ +count.*$/gm, (line) => line.replaceAll(/ +/g, " "));
    assert.equal(words(here), words(lasting(prints)), `${script}${said}`);
  }
}

describe("the examples of docs/cli.md print what they say:", () => {
  const terminal = new Terminal();
  const socket = join(terminal.cwd, "socket");
  const server = createServer({ dir: tempDir(), listen: `127.0.0.1:0,unix:${socket}` });
  after(async () => (await server).close());

  for (const heading of ["", "Which server", "List", "Write", "Read", "Fork and delete", "Copy", "Measure", "Completions", "Exit statuses"])
    test(heading, async () => {
      terminal.url = new URL((await server).url).origin;
      terminal.socket = socket;
      const steps = stepsUnder(heading);
      assert.ok(steps.length > 0);
      for (const step of steps) await terminal.follow(step);
    });

  test("With a token", async (t) => {
    const owner = new Terminal();
    const [steps, auth] = [stepsUnder("With a token"), join(owner.cwd, "auth.json")];
    const commands = steps.map(({ script }) => script).join("");
    const [make = "", ...use] = commands.split(/(?=^# The server runs)/m);
    await owner.follow({ script: make, prints: "" });
    const secured = new RealServer(t, ["--auth", auth]);
    await secured.start();
    owner.url = new URL(secured.url).origin;
    await owner.follow({ script: use.join(""), prints: steps.map(({ prints }) => prints).join("") });
  });

  test("no example is left out", () => {
    const headings = [...PAGE.text.matchAll(/^## (.*)$/gm)].map(([, heading = ""]) => heading);
    for (const heading of headings.filter((each) => PAGE.blocksUnder(each).length === 0)) assert.equal(heading, "When a server goes away");
    assert.equal(PAGE.blocks.length, 12);
  });
});

describe("docs/cli.md", () => {
  test("has every command that speaks to a server in an example", () => {
    const code = PAGE.blocks.map((block) => block.code).join("");
    for (const { name, flags } of COMMANDS.filter(({ name }) => name !== "serve" && name !== "systemd"))
      if (flags.some(({ flag }) => flag === "server")) assert.match(code, new RegExp(`\\bstreamdir ${name}\\b`));
  });

  test("has every exit status", () => {
    for (const [name, status] of Object.entries(EXIT))
      if (name !== "unusable") assert.match(PAGE.text, new RegExp(`^\\| ${status} \\|`, "m"), name);
  });
});
