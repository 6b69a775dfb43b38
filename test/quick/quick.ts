import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/*
 * The tests for between two edits: `npm run test:quick`, or `npm run test:quick -- http storage/file/journal` for those of
 * some folders. To start Node costs more than most files of tests take, so several files share a process.
 */

const TEST = fileURLToPath(new URL("..", import.meta.url));
const PROCESSES = 3;

/** What `npm test` leaves out too, what takes minutes, and what needs programs of others. */
const LEFT_OUT = [
  "bench",
  "conformance",
  "nats",
  "containers",
  "docs/recipes",
  "faults",
  "fuzz",
  "mcp",
  "nodes",
  "openapi",
  "packages",
  "proxies",
  "scale",
];

/** Tests that take seconds each, alone or beside others. `npm run lint` has the last one. */
const SLOW = [
  "cli/backup.test.ts",
  "cli/bin.test.ts",
  "cli/client/append/append-kill.test.ts",
  "cli/client/append/append.test.ts",
  "cli/client/archive/export-kill.test.ts",
  "cli/client/archive/export.test.ts",
  "cli/client/archive/import.test.ts",
  "cli/client/archive/stream-data.test.ts",
  "cli/client/archive/stream-import.test.ts",
  "cli/client/archive/survey.test.ts",
  "cli/client/bench/bench.test.ts",
  "cli/client/reading/cat.test.ts",
  "cli/client/reading/tail-restart.test.ts",
  "cli/client/session/session.test.ts",
  "cli/client/streams/create.test.ts",
  "cli/client/streams/fork.test.ts",
  "cli/client/streams/ls.test.ts",
  "cli/completions/fish.test.ts",
  "cli/completions/zsh.test.ts",
  "cli/main.test.ts",
  "cli/repair.test.ts",
  "cli/serve-process.test.ts",
  "cli/serve.test.ts",
  "cli/systemd/socket-activation-restart.test.ts",
  "cli/systemd/systemd.test.ts",
  "cli/systemd/units.test.ts",
  "cli/token.test.ts",
  "cli/upgrade.test.ts",
  "cli/verify.test.ts",
  "docs/auth-chat.test.ts",
  "docs/auth.test.ts",
  "docs/cli.test.ts",
  "docs/library.test.ts",
  "docs/operating-commands.test.ts",
  "docs/operating.test.ts",
  "docs/terminal.test.ts",
  "http/access/access-certificates.test.ts",
  "http/access/access.test.ts",
  "http/access/live-rights.test.ts",
  "http/access/request-rates.test.ts",
  "http/access/site-policy.test.ts",
  "http/answer/linger.test.ts",
  "http/answer/read-buffers.test.ts",
  "http/bounds/clients-forwarded.test.ts",
  "http/bounds/live-readers-ends.test.ts",
  "http/bounds/rate-limiter.test.ts",
  "http/bounds/unread.test.ts",
  "http/client-errors.test.ts",
  "http/context/body-judgement.test.ts",
  "http/context/body.test.ts",
  "http/dispatch.test.ts",
  "http/forks.test.ts",
  "http/half-close.test.ts",
  "http/handlers/front-page.test.ts",
  "http/handlers/list.test.ts",
  "http/handlers/long-poll.test.ts",
  "http/handlers/page-facts.test.ts",
  "http/handlers/page.test.ts",
  "http/handlers/read-compressed.test.ts",
  "http/handlers/sse.test.ts",
  "http/handlers/tickets.test.ts",
  "http/http-server.test.ts",
  "http/http2-requests.test.ts",
  "http/http2/event-sources.test.ts",
  "http/http2/sessions.test.ts",
  "http/listen/listener.test.ts",
  "http/node/patient-server.test.ts",
  "http/raw-cases.test.ts",
  "http/reading/sse-connection.test.ts",
  "http/reading/sse-reader.test.ts",
  "http/retention.test.ts",
  "http/shared-bodies.test.ts",
  "http/staged-end.test.ts",
  "http/timeouts.test.ts",
  "ops/lines/line-queue-stalled.test.ts",
  "ops/notify.test.ts",
  "page/browser.test.ts",
  "page/size.test.ts",
  "page/surroundings.test.ts",
  "protocol/json/body-blocks.test.ts",
  "protocol/json/json-scanner.test.ts",
  "protocol/json/json-tree.test.ts",
  "readme.test.ts",
  "server.test.ts",
  "storage/file/backup/backup.test.ts",
  "storage/file/directory/lock-races.test.ts",
  "storage/file/directory/lock.test.ts",
  "storage/file/disk/sockets.test.ts",
  "storage/file/offline/repair-crashed.test.ts",
  "storage/file/offline/repair-forks.test.ts",
  "storage/file/offline/repair.test.ts",
  "storage/file/recovery/recovery.test.ts",
  "storage/file/upgrade/upgrade.test.ts",
  "storage/nats/cluster-storage-histories.test.ts",
  "tidy.test.ts",
];

/** Tests of what V8 makes of the objects of a process, which the tests of other files change. */
const ALONE = ["ops/tick-class.test.ts"];

function testsIn(folder: string): string[] {
  return readdirSync(join(TEST, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) return entry.name === "node_modules" || LEFT_OUT.includes(path) ? [] : testsIn(path);
    return path.endsWith(".test.ts") ? [path] : [];
  });
}

const NOT_QUICK = [...SLOW, ...ALONE];
const gone = NOT_QUICK.filter((path) => !existsSync(join(TEST, path)));
if (gone.length > 0)
  throw new Error(`not there any more: ${gone.join(", ")}; mend the list in ${relative(process.cwd(), fileURLToPath(import.meta.url))}`);

const folders = process.argv.slice(2).map((folder) => `${relative(TEST, join(TEST, folder)).replaceAll(sep, "/")}/`);
const files = testsIn("").filter((path) =>
  folders.length === 0 ? !NOT_QUICK.includes(path) : folders.some((folder) => path.startsWith(folder)),
);
const dir = mkdtempSync(join(tmpdir(), "streamdir-quick-"));
try {
  const bundles = Array.from({ length: Math.min(PROCESSES, files.length) }, (_, at) => {
    const own = files.filter((_file, index) => index % PROCESSES === at);
    const bundle = join(dir, `${at}.mjs`);
    writeFileSync(bundle, own.map((path) => `import ${JSON.stringify(pathToFileURL(join(TEST, path)).href)};\n`).join(""));
    return bundle;
  });
  const args = [
    "--import",
    "tsx",
    "--test",
    `--test-concurrency=${PROCESSES}`,
    `--test-reporter=${pathToFileURL(join(TEST, "nodes/failures.mjs")).href}`,
    "--test-reporter-destination=stdout",
    ...bundles,
  ];
  process.exitCode = spawnSync(process.execPath, args, { stdio: "inherit", cwd: join(TEST, "..") }).status ?? 1;
  console.log(`\n${files.length} files of tests, in ${performance.now().toFixed(0)} ms`);
} finally {
  rmSync(dir, { recursive: true, force: true });
}
