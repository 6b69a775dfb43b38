import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DEFAULT_DIR } from "../../src/cli/command/verb.js";
import { parseCommand } from "../../src/cli/config.js";
import { VERBS } from "../../src/cli/verbs.js";
import { defaultSettings, OPTIONS } from "../../src/options.js";
import type { Settings } from "../../src/options.js";

const SERVE = { name: "serve" };
const SALUTE = { name: "salute", switches: [{ flag: "loudly", help: "so that all hear it" }] };
type Env = Readonly<Record<string, string | undefined>>;

function parse(args: readonly string[], env: Env = {}): ReturnType<typeof parseCommand<{ name: string }>> {
  return parseCommand(args, env, [SERVE, SALUTE]);
}

function runOf(args: readonly string[]) {
  const command = parse(args);
  assert.ok(command.kind === "run");
  return command;
}

/** What Kubernetes tells of a service with the port 4437, called http. */
function serviceVariables(service: string): Env {
  const port = `${service}_PORT_4437_TCP`;
  return {
    [`${service}_SERVICE_HOST`]: "10.0.0.1",
    [`${service}_SERVICE_PORT`]: "4437",
    [`${service}_SERVICE_PORT_HTTP`]: "4437",
    [`${service}_PORT`]: "tcp://10.0.0.1:4437",
    [port]: "tcp://10.0.0.1:4437",
    [`${port}_PROTO`]: "tcp",
    [`${port}_PORT`]: "4437",
    [`${port}_ADDR`]: "10.0.0.1",
  };
}

function words(text: string): string[] {
  return text === "" ? [] : text.split(" ");
}

describe("a command line runs", () => {
  const rows: readonly [line: string, dir: string, settings: Partial<Settings>][] = [
    ["", DEFAULT_DIR, {}],
    ["serve", DEFAULT_DIR, {}],
    ["some-dir", "some-dir", {}],
    ["./verify", "./verify", {}],
    ["serve verify", "verify", {}],
    ["serve tail", "tail", {}],
    ["./tail", "./tail", {}],
    ["tail/", "tail/", {}],
    ["serve serve", "serve", {}],
    ["serv", "serv", {}],
    ["serve /abs/dir", "/abs/dir", {}],
    ["--port 0", DEFAULT_DIR, { port: 0 }],
    ["--port=0", DEFAULT_DIR, { port: 0 }],
    ["--port 1 --port 2", DEFAULT_DIR, { port: 2 }],
    ["dir --port 0 --host ::1", "dir", { port: 0, host: "::1" }],
    ["--port 0 dir --host ::1", "dir", { port: 0, host: "::1" }],
    ["--host help", DEFAULT_DIR, { host: "help" }],
    ["--host=--help", DEFAULT_DIR, { host: "--help" }],
    ["--host=a=b", DEFAULT_DIR, { host: "a=b" }],
    ["--read-only", DEFAULT_DIR, { readOnly: true }],
    ["--read-only dir", "dir", { readOnly: true }],
    ["--no-read-only", DEFAULT_DIR, { readOnly: false }],
    ["--read-only --no-read-only", DEFAULT_DIR, { readOnly: false }],
    ["--read-only=false", DEFAULT_DIR, { readOnly: false }],
    ["--read-only=1", DEFAULT_DIR, { readOnly: true }],
    ["--ui", DEFAULT_DIR, { ui: true }],
    ["--no-ui", DEFAULT_DIR, { ui: false }],
    ["--no-ui --ui=loopback", DEFAULT_DIR, { ui: "loopback" }],
    ["--chunk-bytes 512KiB", DEFAULT_DIR, { chunkBytes: 524288 }],
    ["--long-poll-timeout 1.5s", DEFAULT_DIR, { longPollTimeoutMs: 1500 }],
    ["--fsync no", DEFAULT_DIR, { fsync: "no" }],
    ["--prefix /a/", DEFAULT_DIR, { prefix: "/a/" }],
    ["--port 0 -- --odd", "--odd", { port: 0 }],
    ["-- -h", "-h", {}],
    ["--", DEFAULT_DIR, {}],
  ];
  for (const [line, dir, settings] of rows) {
    test(`streamdir ${line}`, () => {
      const { lineUnlessThere, ...run } = runOf(words(line));
      const implied = dir === DEFAULT_DIR ? { isDirImplied: true } : {};
      const all = { ...defaultSettings(), ...settings };
      assert.deepEqual(run, { kind: "run", verb: SERVE, dir, settings: all, switches: new Set(), ...implied });
      const mayBeMade = line.startsWith("serve") || /[/]/.test(dir);
      assert.equal(lineUnlessThere === null, mayBeMade);
    });
  }

  test("and tells the default directory from the same one, named", () => {
    assert.equal(runOf(["serve"]).isDirImplied, true);
    assert.equal(runOf(["serve", DEFAULT_DIR]).isDirImplied, undefined);
  });

  test("with a directory that is named like the value of a flag, once it can't be one", () => {
    for (const args of [
      ["serve", "--insecure", "./false"],
      ["serve", "--insecure", "--", "false"],
      ["serve", "false", "--insecure"],
    ])
      assert.match(runOf(args).dir, /^(\.\/)?false$/);
    assert.equal(runOf(["serve", "--insecure", "loopback"]).dir, "loopback");
  });

  test("with the values of the verb's switches, as often as they are given", () => {
    const greet = {
      name: "greet",
      switches: [
        { flag: "whom", value: "NAME", help: "who is greeted" },
        { flag: "loudly", help: "so that all hear it" },
      ],
    };
    const greeted = (args: readonly string[]): unknown => parseCommand(args, {}, [SERVE, greet]);
    const run = { kind: "run", verb: greet, dir: "dir", settings: defaultSettings(), switches: new Set(["loudly"]), lineUnlessThere: null };
    assert.deepEqual(greeted(["greet", "--whom", "a/b", "dir", "--whom=-c", "--loudly"]), {
      ...run,
      values: new Map([["whom", ["a/b", "-c"]]]),
    });
    for (const args of [["--whom"], ["--whom="], ["--whom", "--loudly"]])
      assert.deepEqual(greeted(["greet", "dir", ...args]), { kind: "usage-error", line: "--whom needs a value, like --whom=NAME" });
    assert.deepEqual(greeted(["greet", "--whon", "a"]), { kind: "usage-error", line: 'unknown flag "--whon"; did you mean --whom?' });
  });

  test("with the switches of the verb that it names", () => {
    const run = { kind: "run", verb: SALUTE, dir: "dir", settings: defaultSettings(), lineUnlessThere: null };
    assert.deepEqual(parse(["salute", "dir", "--loudly"]), { ...run, switches: new Set(["loudly"]) });
    assert.deepEqual(parse(["salute", "--loudly=1"]), { kind: "usage-error", line: "--loudly takes no value" });
    assert.deepEqual(parse(["serve", "--loudly"]), { kind: "usage-error", line: 'unknown flag "--loudly"; streamdir --help lists them' });
  });

  test("with the verb that it names", () => {
    assert.deepEqual(parse(["salute", "dir"]), {
      kind: "run",
      verb: SALUTE,
      dir: "dir",
      settings: defaultSettings(),
      switches: new Set(),
      lineUnlessThere: null,
    });
  });

  const lines: readonly [args: readonly string[], line: string][] = [
    [["tail"], '"tail" is neither a command nor a directory: streamdir --help lists commands, streamdir serve tail makes the directory'],
    [
      ["--port", "0", "ls"],
      '"ls" is neither a command nor a directory: streamdir --help lists commands, streamdir serve ls makes the directory',
    ],
    [["salut"], '"salut" is neither a command nor a directory: did you mean streamdir salute? Else write streamdir serve salut to make it'],
    [
      ["--", "--new"],
      '"--new" is neither a command nor a directory: streamdir --help lists commands, streamdir serve DIR makes the directory',
    ],
    [["a b\n"], '"a b\\n" is neither a command nor a directory: streamdir --help lists commands, streamdir serve DIR makes the directory'],
  ];
  for (const [args, line] of lines) {
    test(`and says of a word that is no directory: ${line}`, () => assert.equal(runOf(args).lineUnlessThere, line));
  }
});

describe("a command line asks for", () => {
  const rows: readonly [line: string, kind: string][] = [
    ["--help", "help"],
    ["-h", "help"],
    ["serve --help", "help"],
    ["--wrong --help", "help"],
    ["--host --help", "help"],
    ["--host -h", "help"],
    ["--help --version", "help"],
    ["--version", "version"],
    ["dir --version", "version"],
  ];
  for (const [line, kind] of rows) test(`${kind}: streamdir ${line}`, () => assert.deepEqual(parse(words(line)), { kind }));

  test("help in spite of a wrong variable", () => assert.deepEqual(parse(["--help"], { STREAMDIR_PORT: "x" }), { kind: "help" }));
});

describe("a command line is refused", () => {
  const rows: readonly [args: readonly string[], line: string][] = [
    [["--port", "x"], '--port must be from 0 to 65535, not "x"'],
    [["--port=x"], '--port must be from 0 to 65535, not "x"'],
    [["--port", "-1"], '--port must be from 0 to 65535, not "-1"'],
    [["--port="], '--port must be from 0 to 65535, not ""'],
    [["--port", "1", "--port", "x"], '--port must be from 0 to 65535, not "x"'],
    [["--port", "x", "--port", "1"], '--port must be from 0 to 65535, not "x"'],
    [["--auth", ""], "--auth must not be empty; leave it out where there is none"],
    [["--tls-cert=", "--tls-key="], "--tls-cert must not be empty; leave it out where there is none"],
    [["--port"], "--port needs a value, like --port=4437"],
    [["--port", "--host", "::"], "--port needs a value, like --port=4437"],
    [["--chunk-bytes"], "--chunk-bytes needs a value, like --chunk-bytes=1MiB"],
    [["--chunk-bytes", "1GiB"], '--chunk-bytes must be from 1B to 64MiB, not "1GiB"'],
    [["--chunk-bytes", "1M"], '--chunk-bytes must be from 1B to 64MiB, written like 1MiB, not "1M"'],
    [["--sse-lifetime", "60"], '--sse-lifetime must be from 1ms to 1d, with its unit like 1m or 500ms, not "60"'],
    [["--host", "a\nb", "--fsync", "a\nb"], '--fsync must be always or no, not "a\\nb"'],
    [["--read-only=yes"], '--read-only must be true or false, not "yes"'],
    [["--ui=yes"], '--ui must be true, false or loopback, not "yes"'],
    [["--no-read-only=true"], "--no-read-only takes no value"],
    [["--insecure", "false"], '"false" after --insecure is not its value: write --insecure=false; a directory of that name is ./false'],
    [["serve", "--read-only", "0"], '"0" after --read-only is not its value: write --read-only=0; a directory of that name is ./0'],
    [["serve", "d", "--ui", "true"], '"true" after --ui is not its value: write --ui=true; a directory of that name is ./true'],
    [["--ui", "loopback"], '"loopback" after --ui is not its value: write --ui=loopback; a directory of that name is ./loopback'],
    [["--no-ui", "1"], '"1" after --no-ui is not its value: --no-ui takes no value; a directory of that name is ./1'],
    [["--prot", "1"], 'unknown flag "--prot"; did you mean --port?'],
    [["--prot=1"], 'unknown flag "--prot"; did you mean --port?'],
    [["-port", "1"], 'unknown flag "-port"; did you mean --port?'],
    [["--no-port"], 'unknown flag "--no-port"; streamdir --help lists them'],
    [["--no-readonly"], 'unknown flag "--no-readonly"; did you mean --no-read-only?'],
    [["--PORT", "1"], 'unknown flag "--PORT"; streamdir --help lists them'],
    [["--tail-cache", "1"], 'unknown flag "--tail-cache"; did you mean --tail-cache-bytes?'],
    [["--quux"], 'unknown flag "--quux"; streamdir --help lists them'],
    [["-p", "1"], 'unknown flag "-p"; streamdir --help lists them'],
    [["-"], 'unknown flag "-"; streamdir --help lists them'],
    [["a", "b"], '"a" is no command: see streamdir --help; and only one directory can be named, not both "a" and "b"'],
    [["./a", "b"], 'only one directory can be named, not both "./a" and "b"'],
    [["serve", "a", "b"], 'only one directory can be named, not both "a" and "b"'],
    [["serve", "a", "--", "b"], 'only one directory can be named, not both "a" and "b"'],
    [["serv", "a"], 'unknown command "serv"; did you mean streamdir serve?'],
    [["salut", "a", "--loudly"], 'unknown flag "--loudly"; did you mean the command salute?'],
    [["dir", "--loudly"], 'unknown flag "--loudly"; streamdir --help lists them'],
    [[""], "the directory must not be empty; leave it out for ./data"],
    [["serve", ""], "the directory must not be empty; leave it out for ./data"],
    [["--port", "0", "serve"], "a command stands before all flags: streamdir serve; a directory of that name is ./serve"],
    [["--port", "0", "serve", "a"], "a command stands before all flags: streamdir serve; a directory of that name is ./serve"],
    [["help"], '"help" is not a directory here: write streamdir --help; a directory of that name is ./help'],
    [["help", "serve"], '"help" is not a directory here: write streamdir --help; a directory of that name is ./help'],
    [["version"], '"version" is not a directory here: write streamdir --version; a directory of that name is ./version'],
  ];
  for (const [args, line] of rows) {
    test(`streamdir ${JSON.stringify(args.join(" "))}`, () => assert.deepEqual(parse(args), { kind: "usage-error", line }));
  }
});

describe("the environment", () => {
  const rows: readonly [title: string, env: Env, settings: Partial<Settings>][] = [
    ["sets an integer", { STREAMDIR_PORT: "0" }, { port: 0 }],
    ["sets a size", { STREAMDIR_CHUNK_BYTES: "64KiB" }, { chunkBytes: 65536 }],
    ["sets a duration", { STREAMDIR_SSE_LIFETIME: "2m" }, { sseLifetimeMs: 120_000 }],
    ["sets a switch with true", { STREAMDIR_READ_ONLY: "true" }, { readOnly: true }],
    ["sets a switch with 1", { STREAMDIR_READ_ONLY: "1" }, { readOnly: true }],
    ["leaves a switch with 0", { STREAMDIR_READ_ONLY: "0" }, { readOnly: false }],
    ["may hold what client verbs use", { STREAMDIR_URL: "http://a", STREAMDIR_TOKEN: "x" }, {}],
    ["may hold what others use", { PATH: "/bin", STREAMDIRECTORY: "x", streamdir_port: "x" }, {}],
    ["may hold an unset variable", { STREAMDIR_PORT: undefined }, {}],
  ];
  for (const [title, env, settings] of rows) {
    test(title, () =>
      assert.deepEqual(parse([], env), {
        kind: "run",
        verb: SERVE,
        dir: DEFAULT_DIR,
        settings: { ...defaultSettings(), ...settings },
        switches: new Set(),
        lineUnlessThere: null,
        isDirImplied: true,
      }),
    );
  }

  test("yields to a flag", () => {
    const command = parse(["--port", "1", "--no-read-only"], { STREAMDIR_PORT: "2", STREAMDIR_READ_ONLY: "true", STREAMDIR_HOST: "::1" });
    assert.deepEqual(command, {
      kind: "run",
      verb: SERVE,
      dir: DEFAULT_DIR,
      settings: { ...defaultSettings(), port: 1, host: "::1" },
      switches: new Set(),
      lineUnlessThere: null,
      isDirImplied: true,
    });
  });

  const refusals: readonly [env: Env, line: string][] = [
    [{ STREAMDIR_PORT: "x" }, 'STREAMDIR_PORT must be from 0 to 65535, not "x"'],
    [{ STREAMDIR_PORT: "" }, 'STREAMDIR_PORT must be from 0 to 65535, not ""'],
    [{ STREAMDIR_AUTH: "" }, "STREAMDIR_AUTH must not be empty; leave it out where there is none"],
    [{ STREAMDIR_READ_ONLY: "yes" }, 'STREAMDIR_READ_ONLY must be true or false, not "yes"'],
    [{ STREAMDIR_SSE_LIFETIME: "60" }, 'STREAMDIR_SSE_LIFETIME must be from 1ms to 1d, with its unit like 1m or 500ms, not "60"'],
    [{ STREAMDIR_PROT: "1" }, 'unknown environment variable "STREAMDIR_PROT"; did you mean STREAMDIR_PORT?'],
    [{ STREAMDIR_DIR: "a" }, 'unknown environment variable "STREAMDIR_DIR"; streamdir --help lists them'],
    [{ STREAMDIR_: "a" }, 'unknown environment variable "STREAMDIR_"; streamdir --help lists them'],
    [{ "STREAMDIR_A\nB": "a" }, 'unknown environment variable "STREAMDIR_A\\nB"; streamdir --help lists them'],
  ];
  for (const [env, line] of refusals) {
    test(`is refused with ${JSON.stringify(env)}`, () => assert.deepEqual(parse([], env), { kind: "usage-error", line }));
  }

  test("may not be empty for any option that has a value, nor may its flag", () => {
    for (const { flag, env, kind } of Object.values(OPTIONS).filter((spec) => spec.kind !== "flag")) {
      for (const command of [parse([], { [env]: "" }), parse([`--${flag}=`])])
        assert.equal(command.kind, "usage-error", `${flag}: ${kind}`);
    }
  });

  test("may hold what Kubernetes sets for services", () => {
    const settings = (env: Env): unknown => {
      const command = parse([], env);
      return command.kind === "run" ? command.settings : command;
    };
    assert.deepEqual(settings(serviceVariables("STREAMDIR")), defaultSettings());
    assert.deepEqual(settings(serviceVariables("STREAMDIR_PROD")), defaultSettings());
    const both = { ...serviceVariables("STREAMDIR"), ...serviceVariables("STREAMDIR_PORT"), STREAMDIR_PORT: "1" };
    assert.deepEqual(settings(both), { ...defaultSettings(), port: 1 });
  });

  test("is refused with more than that", () => {
    const service = serviceVariables("STREAMDIR_PROD");
    for (const name of ["STREAMDIR_PROD_PROT", "STREAMDIR_PROD_PORT_4437", "STREAMDIR_SERVICE_PORT", "STREAMDIR_TEST_SERVICE_PORT"])
      assert.equal(parse([], { ...service, [name]: "1" }).kind, "usage-error", name);
    const alone = { STREAMDIR_PORT: "tcp://10.0.0.1:4437" };
    assert.deepEqual(parse([], { ...service, ...alone }), {
      kind: "usage-error",
      line: 'STREAMDIR_PORT must be from 0 to 65535, not "tcp://10.0.0.1:4437"',
    });
  });

  test("is refused even where a flag wins", () => {
    assert.deepEqual(parse(["--port", "1"], { STREAMDIR_PORT: "x" }), {
      kind: "usage-error",
      line: 'STREAMDIR_PORT must be from 0 to 65535, not "x"',
    });
  });

  test("is looked at behind the command line", () => {
    assert.deepEqual(parse(["--prot"], { STREAMDIR_PORT: "x" }), {
      kind: "usage-error",
      line: 'unknown flag "--prot"; did you mean --port?',
    });
  });
});

describe("a cluster's address", () => {
  const storage = "nats://h";
  const refused = (args: readonly string[], env: Env): unknown => parseCommand(args, env, VERBS);

  test("that is wrong is refused by the part that is, without its password", () => {
    const env = { STREAMDIR_STORAGE: "nats://u:secret@h/Chats" };
    const line = "STREAMDIR_STORAGE must have a bucket of 1 to 16 of the characters a-z and 0-9";
    assert.deepEqual(refused(["serve"], env), { kind: "usage-error", line });
  });

  for (const [args, env, called] of [
    [["--storage", storage], {}, "--storage"],
    [[], { STREAMDIR_STORAGE: storage }, "STREAMDIR_STORAGE"],
    [["--storage", storage], { STREAMDIR_STORAGE: "nats://other" }, "--storage"],
  ] as const)
    test(`is refused by the name that it was given with: ${[...args, ...Object.keys(env)].join(" ")}`, () => {
      const none = `verify is for a directory, and ${called} names none`;
      assert.deepEqual(refused(["verify", "dir", ...args], env), { kind: "usage-error", line: none });
      const both = `with ${called} there is no directory to name, like "dir"`;
      assert.deepEqual(refused(["serve", "dir", ...args], env), { kind: "usage-error", line: both });
    });
});

describe("a command that needs two directories", () => {
  const PAIR = { name: "pair", second: "OTHER" };
  const pair = (...args: string[]): unknown => {
    const command = parseCommand(["pair", ...args], {}, [SERVE, PAIR]);
    return command.kind === "run" ? [command.dir, command.second] : command.kind === "usage-error" ? command.line : null;
  };

  test("has both, flags between them or not", () => {
    assert.deepEqual(pair("a", "b"), ["a", "b"]);
    assert.deepEqual(pair("a", "--port", "0", "--", "b"), ["a", "b"]);
    assert.deepEqual(pair("help", "help"), ["help", "help"]);
  });

  test("is refused with fewer, with more, and with one that is empty", () => {
    const needed = "pair needs two directories: DIR OTHER";
    assert.deepEqual([pair(), pair("a"), pair("a", "b", "c")], [needed, needed, `${needed}, and no third, "c"`]);
    assert.deepEqual([pair("", "b"), pair("a", "")], Array(2).fill("the directory must not be empty"));
  });
});
