import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { runInNewContext } from "node:vm";
import { parseAuthFile } from "../../src/auth/auth-file.js";
import { AUTH_BOUNDS } from "../../src/auth/bounds.js";
import { MAX_CLAIMED, MAX_CLAIMED_BYTES, MAX_CLAIMED_DEEP } from "../../src/auth/jwt/claims.js";
import { MAX_JWT_CHARS } from "../../src/auth/jwt/compact.js";
import { MAX_KEY_SET_BYTES, MAX_KEYS } from "../../src/auth/jwt/key-set.js";
import { MAX_PATTERN_BYTES } from "../../src/auth/rights/pattern.js";
import { OPERATIONS } from "../../src/auth/rights/operation.js";
import { MAX_TICKET_CHARS, parseTicket, ticketMac } from "../../src/auth/ticket.js";
import { nameMatcher } from "../../src/protocol/names/name-pattern.js";
import { bash, Page } from "../helpers/page-examples.js";
import { TICKET_SECRET } from "../helpers/auth-files.js";
import { freePort } from "../helpers/free-ports.js";
import { startNode, type TestProcess } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";

const PATH = "docs/auth.md";
const PAGE = new Page(PATH);
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const KEY_SECRET = TICKET_SECRET.toString("base64url");
const NAME = "grün/1";

function blockOf(language: string, part: string): string {
  const block = PAGE.blocks.find((one) => one.language === language && one.code.includes(part));
  assert.ok(block !== undefined, `${language} with ${part}`);
  return block.code;
}

describe("the page on access", () => {
  test("shows auth files that are valid", () => {
    const documents = PAGE.blocks.filter(({ language }) => language === "json").map(({ code }) => code);
    assert.ok(documents.length >= 7);
    for (const code of documents) {
      const document = JSON.parse(code);
      const isGrant = "streams" in document;
      const isClaim = "authorization_details" in document;
      const text = isGrant ? JSON.stringify({ public: [document] }) : isClaim ? "{}" : code;
      parseAuthFile({ file: PATH, text });
    }
    const whole = parseAuthFile({ file: PATH, text: blockOf("json", '"trustGrants"') });
    for (const [key, value] of Object.entries(whole)) assert.ok(value !== null && value.length > 0, key);
  });

  test("has a row for each operation", () => {
    for (const operation of OPERATIONS) assert.match(PAGE.text, new RegExp(`^\\| \`${operation}\` \\|`, "m"));
  });

  test("says of its patterns what is true", () => {
    const rows = [...PAGE.text.matchAll(/^\| `([^`]*\/?[^`]*)` \| (`[^|]*|every stream) \| (`[^|]*)?\|$/gm)];
    const names = (cell = ""): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
    const patterns = rows.filter(([, pattern = ""]) => /^(chat|\*)/.test(pattern));
    assert.equal(patterns.length, 6);
    for (const [, pattern = "", yes, no] of patterns) {
      for (const name of names(yes)) assert.equal(nameMatcher(pattern)(name), true, `${pattern} ${name}`);
      for (const name of names(no)) assert.equal(nameMatcher(pattern)(name), false, `${pattern} ${name}`);
    }
  });

  test("has the bounds of the code", () => {
    const rows: readonly (readonly [string, number])[] = [
      ["bytes of the file", AUTH_BOUNDS.fileBytes],
      ["tokens", AUTH_BOUNDS.tokens],
      ["issuers", AUTH_BOUNDS.issuers],
      ["ticket keys", AUTH_BOUNDS.ticketKeys],
      ["revocations", AUTH_BOUNDS.revocations],
      ["grants in one list", AUTH_BOUNDS.grants],
      ["patterns in a grant", AUTH_BOUNDS.patterns],
      ["bytes of a pattern", MAX_PATTERN_BYTES],
      ["characters of any other text", AUTH_BOUNDS.textChars],
      ["bytes of a set of keys", MAX_KEY_SET_BYTES],
      ["keys in a set", MAX_KEYS],
      ["bytes of a CA file", AUTH_BOUNDS.caBytes],
      ["characters of a JWT", MAX_JWT_CHARS],
      ["patterns in a JWT", MAX_CLAIMED],
      ["bytes of these, with `{sub}` filled in", MAX_CLAIMED_BYTES],
      ["segments after a `**` in these", MAX_CLAIMED_DEEP],
      ["characters of a ticket", MAX_TICKET_CHARS],
    ];
    const lines = rows.map(([what, most]) => `| ${what} | ${most.toLocaleString("en-US")} |`);
    PAGE.assertTable(PATH, "bounds", ["| bound | at most |", "|---|---|", ...lines].join("\n"));
  });

  test("has commands that run", async () => {
    const commands = PAGE.blocks.filter(({ language }) => language === "sh").flatMap(({ code }) => code.split("\n"));
    const tokens = commands.filter((line) => /^(CHAT_TOKEN=\$\()?streamdir token/.test(line));
    assert.equal(tokens.length, 6);
    const command = `streamdir() { node --import ${import.meta.resolve("tsx")} ${join(ROOT, "src/cli/main.ts")} "$@"; }`;
    const printed = await bash(`${command}\ncd ${tempDir()}\n${tokens.join("\n")}\necho "$CHAT_TOKEN"\n`);
    assert.match(printed, /^sd_ci_[\w-]{43}$/m);
    assert.match(printed, /^v1\.\d+\.r\.k1\.[\w-]{43}$/m);
    assert.match(printed, /^sd_chat_[\w-]{43}$/m);
  });
});

/** A ticket that an example has signed is a ticket of an hour for the stream. */
function assertTicket(text: string): void {
  const ticket = parseTicket(text.trim());
  assert.ok(ticket !== null, text);
  assert.ok(ticketMac(TICKET_SECRET, ticket, NAME).equals(ticket.mac));
  assert.equal(ticket.kid, "k1");
  assert.ok(Math.abs(ticket.expiresS - Date.now() / 1000 - 3600) < 60);
}

describe("the lines that sign a ticket", () => {
  test("do so in JavaScript", async (context) => {
    const file = join(tempDir(), "sign.mjs");
    const before = `import { createHmac } from "node:crypto";\nconst [keyId, keySecret, name] = ["k1", "${KEY_SECRET}", "${NAME}"];\n`;
    writeFileSync(file, `${before}${blockOf("js", "const mac")}console.log(ticket);\n`);
    const ended = await startNode(context, [file]).ended;
    assert.equal(ended.status, 0, ended.stderr);
    assertTicket(ended.stdout);
  });

  const hasPython = spawnSync("python3", ["--version"]).status === 0;
  test("do so in Python", { skip: hasPython ? false : "python3 is missing" }, () => {
    const before = `import base64, hmac, time\nkey_id, key_secret, name = "k1", "${KEY_SECRET}", "${NAME}"\n`;
    const ended = spawnSync("python3", ["-X", "utf8", "-"], {
      input: `${before}${blockOf("python", "hmac.digest")}print(ticket)\n`,
      encoding: "utf8",
    });
    assert.equal(ended.status, 0, ended.stderr);
    assertTicket(ended.stdout);
  });

  // Where Go or PHP is missing, only this holds their lines to the form.
  test("name the form of a ticket in Go and PHP", () => {
    const go = blockOf("go", "hmac.New");
    assert.match(go, /"v1\.%d\.r\.%s", time\.Now\(\)\.Unix\(\)\+3600, keyID/);
    assert.match(go, /hmac\.New\(sha256\.New, secret\)/);
    assert.match(go, /signed \+ "\." \+ name/);
    assert.match(go, /base64\.RawURLEncoding/);
    assert.match(blockOf("php", "hash_hmac"), /hash_hmac\('sha256', \$signed \. '\.' \. \$name, .*, true\)/);
  });

  const hasPhp = spawnSync("php", ["--version"]).status === 0;
  test("do so in PHP", { skip: hasPhp ? false : "php is missing" }, () => {
    const before = `<?php\n[$keyId, $keySecret, $name] = ['k1', '${KEY_SECRET}', '${NAME}'];\n`;
    // Without the settings of this machine.
    const ended = spawnSync("php", ["-n"], { input: `${before}${blockOf("php", "hash_hmac")}echo $ticket;\n`, encoding: "utf8" });
    assert.equal(ended.status, 0, ended.stderr);
    assertTicket(ended.stdout);
  });

  const hasGo = spawnSync("go", ["version"]).status === 0;
  test("do so in Go", { skip: hasGo ? false : "go is missing" }, () => {
    const dir = tempDir();
    const names = ["crypto/hmac", "crypto/sha256", "encoding/base64", "fmt", "time"].map((name) => `import "${name}"\n`).join("");
    const before = `package main\n${names}func main() {\nkeyID, keySecret, name := "k1", "${KEY_SECRET}", "${NAME}"\n`;
    writeFileSync(join(dir, "main.go"), `${before}${blockOf("go", "hmac.New")}fmt.Println(ticket)\n}\n`);
    // It fetches nothing, and leaves nothing in its user's folder.
    const env = { ...process.env, GOCACHE: join(dir, "cache"), GOPROXY: "off", GOTOOLCHAIN: "local", GO111MODULE: "off" };
    const ended = spawnSync("go", ["run", join(dir, "main.go")], { encoding: "utf8", env });
    assert.equal(ended.status, 0, ended.stderr);
    assertTicket(ended.stdout);
  });
});

/** The backend of the chat, whose streams are at a port. */
async function startBackend(context: TestContext, streamsPort: number): Promise<{ url: string; backend: TestProcess }> {
  const dir = tempDir();
  const code = blockOf("js", "createServer")
    .replace("127.0.0.1:4437", `127.0.0.1:${streamsPort}`)
    .replace("server.listen(8080,", "server.listen(0,")
    .concat('server.on("listening", () => console.log(server.address().port));\n');
  writeFileSync(join(dir, "chat.mjs"), code);
  writeFileSync(join(dir, "chat.html"), "the page");
  writeFileSync(join(dir, "auth.json"), JSON.stringify({ ticketKeys: [{ id: "k1", secret: KEY_SECRET }] }));
  const backend = startNode(context, [join(dir, "chat.mjs")], { cwd: dir, env: { CHAT_TOKEN: "sd_chat_x" } });
  return { backend, url: `http://127.0.0.1:${Number(await backend.stdoutLine(/^\d+$/))}` };
}

test("the backend of the chat signs tickets, and appends with its token", async (context) => {
  const received: string[] = [];
  const streams = createServer((request, response) => {
    request.setEncoding("utf8").on("data", (body: string) => received.push(`${request.url} ${request.headers.authorization} ${body}`));
    request.on("end", () => response.writeHead(204).end());
  });
  streams.listen(0, "127.0.0.1");
  await once(streams, "listening");
  context.after(() => streams.close());
  const address = streams.address();
  assert.ok(typeof address === "object" && address !== null);
  const { url } = await startBackend(context, address.port);
  const place = new URL(await (await fetch(`${url}/ticket`)).text());
  const ticket = parseTicket(place.searchParams.get("ticket") ?? "");
  assert.equal(place.pathname, "/v1/stream/chat/42");
  assert.ok(ticket !== null && ticketMac(TICKET_SECRET, ticket, "chat/42").equals(ticket.mac));
  assert.equal((await fetch(`${url}/say`, { method: "POST", body: "hello" })).status, 204);
  assert.deepEqual(received, ['/v1/stream/chat/42 Bearer sd_chat_x {"text":"hello"}']);
  assert.equal(await (await fetch(url)).text(), "the page");
});

test("the backend of the chat goes on when streamdir is away, and when a page leaves in the middle", async (context) => {
  const { url, backend } = await startBackend(context, await freePort());
  const ended = backend.ended.then(({ stderr }) => assert.fail(stderr));
  const away = fetch(`${url}/say`, { method: "POST", body: "hello" });
  assert.equal((await Promise.race([away, ended])).status, 502);
  const leaving = connect(Number(new URL(url).port), "127.0.0.1");
  leaving.write("POST /say HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n");
  await once(leaving, "data"); // it reads the body by now
  leaving.destroy();
  await Promise.race([backend.stderrLine(/aborted/), ended]);
  assert.equal(await (await fetch(url)).text(), "the page");
});

/** What the backend, or the server, answers the page with. */
interface FakeAnswer {
  readonly status: number;
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The page's script on a stand-in for a browser. */
class FakePage {
  readonly sources: { url: string; readyState: number; emit: (type: string, data?: unknown) => void; isClosed: boolean }[] = [];
  shown: string[] = [];
  readonly timers: (() => void)[] = [];
  /** Of each timer, the pause in milliseconds. */
  readonly pausesMs: number[] = [];
  /** One for each request; `null` is none. */
  answers: (FakeAnswer | null)[] = [];
  /** What was said beside the messages. */
  said = "";

  start(script: string): void {
    const page: FakePage = this;
    class EventSource {
      static readonly CLOSED = 2;
      readonly #listeners = new Map<string, (event: { data: string }) => void>();
      readyState = 1;
      isClosed = false;
      constructor(readonly url: string) {
        page.sources.push(this);
      }
      addEventListener(type: string, listener: (event: { data: string }) => void): void {
        this.#listeners.set(type, listener);
      }
      close(): void {
        this.isClosed = true;
      }
      emit(type: string, data: unknown = null): void {
        this.#listeners.get(type)?.({ data: JSON.stringify(data) });
      }
    }
    const element = {
      append: (item: { textContent: string }) => page.shown.push(item.textContent),
      replaceChildren: () => (page.shown = []),
      addEventListener() {},
      value: "",
    };
    runInNewContext(script, {
      EventSource,
      Math: { random: () => 0, min: Math.min },
      setTimeout: (run: () => void, pauseMs: number) => {
        page.timers.push(run);
        page.pausesMs.push(pauseMs);
      },
      fetch: async () => {
        const answer = page.answers.shift() ?? null;
        if (answer === null) throw new TypeError("no answer");
        const { status, text = "", headers = {} } = answer;
        return { status, ok: status === 200, text: async () => text, headers: new Headers(headers) };
      },
      document: {
        createElement: () => ({ textContent: "" }),
        getElementById: () => element,
        body: { append: (text: string) => (page.said += text) },
      },
    });
  }
}

/** Lets what was promised come. */
async function turn(): Promise<void> {
  for (let at = 0; at < 5; at++) await new Promise((resolve) => setImmediate(resolve));
}

describe("the page of the chat", () => {
  const script = /<script type="module">([\s\S]*?)<\/script>/.exec(blockOf("html", "follow"))?.[1] ?? "";
  const ticket = (number: number) => ({ status: 200, text: `http://s/chat?ticket=${number}` });
  const isThere = { status: 304, headers: { "Stream-Next-Offset": "9_9" } };

  /** The page, once it was answered so. */
  async function answered(...answers: readonly (FakeAnswer | null)[]): Promise<FakePage> {
    const page = new FakePage();
    page.answers = [...answers];
    page.start(script);
    await turn();
    return page;
  }

  test("goes on with a new ticket from the last offset, and shows nothing twice", async () => {
    const page = await answered(ticket(1), isThere, { status: 500 }, ticket(2), isThere);
    const [first] = page.sources;
    assert.equal(first?.url, "http://s/chat?ticket=1&live=sse&offset=-1");
    first.emit("data", [{ text: "a" }]);
    assert.deepEqual(page.shown, []);
    first.emit("control", { streamNextOffset: "1_1" });
    first.emit("data", [{ text: "cut off" }]);
    first.readyState = 0;
    first.emit("error");
    assert.equal(page.timers.length, 0, "it connects again by itself");
    first.readyState = 2;
    first.emit("error");
    page.timers.shift()?.();
    await turn();
    assert.equal(page.sources.length, 1, "the backend had none");
    page.timers.shift()?.();
    await turn();
    const second = page.sources[1];
    assert.equal(second?.url, "http://s/chat?ticket=2&live=sse&offset=1_1");
    second.emit("data", [{ text: "cut off" }]);
    second.emit("control", { streamNextOffset: "2_2", streamClosed: true });
    assert.deepEqual(page.shown, ["a", "cut off"]);
    assert.equal(second.isClosed, true);
  });

  test("stops when the user is logged out", async () => {
    const page = await answered({ status: 403 });
    assert.deepEqual([page.sources.length, page.timers.length], [0, 0]);
  });

  for (const status of [403, 404, 410])
    test(`stops, and says so, when its stream can't be read: ${status}`, async () => {
      const page = await answered(ticket(1), { status });
      assert.deepEqual([page.sources.length, page.timers.length, page.said], [0, 0, "This chat can't be read."]);
    });

  test("comes back after what passes, with pauses that grow to half a minute", async () => {
    const passing = [null, { status: 401 }, { status: 408 }, { status: 429 }, { status: 502 }, { status: 503 }, null];
    const page = await answered(...passing.flatMap((answer) => [ticket(1), answer]), ticket(2), isThere);
    for (const _ of passing) {
      assert.equal(page.timers.length, 1);
      page.timers.shift()?.();
      await turn();
    }
    assert.deepEqual(page.pausesMs, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
    assert.equal(page.sources[0]?.url, "http://s/chat?ticket=2&live=sse&offset=-1");
    assert.equal(page.said, "");
  });

  test("shows a stream that was made anew from where it begins", async () => {
    const page = await answered(ticket(1), isThere, ticket(2), { status: 410, headers: { "Stream-Earliest-Offset": "0_7" } });
    const [first] = page.sources;
    assert.ok(first !== undefined);
    first.emit("data", [{ text: "old" }]);
    first.emit("control", { streamNextOffset: "1_1" });
    assert.deepEqual(page.shown, ["old"]);
    first.readyState = 2;
    first.emit("error");
    page.timers.shift()?.();
    await turn();
    assert.deepEqual([page.sources[1]?.url, page.shown], ["http://s/chat?ticket=2&live=sse&offset=0_7", []]);
  });
});

test("the page names the line of a fault as the server does", () => {
  const text = readFileSync(join(ROOT, PATH), "utf8");
  const shown = /^auth\.json:12: (.*)$/m.exec(text)?.[1] ?? "";
  const wrong = JSON.stringify({ tokens: [{ id: "a", sha256: "0".repeat(64), grants: [{ streams: ["a"], allow: ["read", "write"] }] }] });
  assert.throws(() => parseAuthFile({ file: "auth.json", text: wrong }), { message: `auth.json:1: ${shown}` });
});
