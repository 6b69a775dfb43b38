import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { withMeasured } from "../bench/report.js";
import { Random } from "../helpers/random.js";
import { pause } from "../scale/server-under-load.js";
import { Crowd } from "./crowd.js";
import { findingsOf, type Finding, type Sample } from "./findings.js";
import { KilledServer } from "./killed-server.js";
import { soakPictureOf, type Mark, type Panel } from "./picture.js";
import { SoakServer, streamdir } from "./soak-server.js";

/*
 * Runs the built server for a long time under a mixed load: `npm run soak -- --minutes 60`. Draws memory, descriptors,
 * latency and disk over the time, and ends with status 1 where something grew. With `--report` the picture and the
 * figures go into docs/soak.md. A second server beside it is killed once a minute; both are backed up all the time.
 */

const SAMPLE_MS = 5000;
/** Of the whole: what happens, and how often at least. */
const KILLS_PER_HOUR = 60;
const BACKUPS_PER_HOUR = 12;
const HOUR_MS = 3_600_000;
const PAGE = docs("soak.md");
const PICTURE = docs("soak.svg");

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "60" }, seed: { type: "string" }, report: { type: "boolean", default: false } },
});
const minutes = Number(values.minutes);
const seed = Number(values.seed ?? Date.now());
console.log(`seed ${seed}`);

const cleanups: (() => Promise<void>)[] = [];
const scope = { after: (run: () => Promise<void>) => void cleanups.push(run) };
const root = mkdtempSync(join(tmpdir(), "streamdir-soak-"));
try {
  const findings = await soak();
  for (const { what, value, goal, holds } of findings) console.log(`${what}: ${value}; ${goal}${holds ? "" : "  MISSED"}`);
  process.exitCode = findings.every(({ holds }) => holds) ? 0 : 1;
} finally {
  for (const run of cleanups) await run();
  rmSync(root, { recursive: true, force: true });
}

async function soak(): Promise<Finding[]> {
  const wholeMs = minutes * 60_000;
  const server = await SoakServer.start(scope, join(root, "steady"));
  const killed = new KilledServer(scope, join(root, "killed"));
  const crowd = new Crowd(server.port, new Random(seed));
  const samples: Sample[] = [];
  const marks: Mark[] = [];
  const startedMs = performance.now();
  const sinceStartMs = (): number => performance.now() - startedMs;
  const work = [crowd.run(), killed.run()];
  const until = async (perHour: number, run: () => Promise<void>): Promise<void> => {
    const everyMs = Math.min(HOUR_MS / perHour, wholeMs / 3);
    for (let next = everyMs; next < wholeMs; next += everyMs) {
      await pause(Math.max(0, next - sinceStartMs()));
      await run();
    }
  };
  const happenings = [
    until(HOUR_MS / SAMPLE_MS, async () => {
      samples.push({ atMs: sinceStartMs(), ...(await server.sample()), latencies: crowd.taken() });
    }),
    until(KILLS_PER_HOUR, async () => {
      marks.push({ atMs: sinceStartMs(), kind: "kill" });
      await killed.kill();
    }),
    until(BACKUPS_PER_HOUR, async () => {
      for (const [name, { dir }] of Object.entries({ steady: server, killed })) {
        marks.push({ atMs: sinceStartMs(), kind: "backup" });
        await backUp(name, dir);
      }
    }),
  ];
  await Promise.race([Promise.all(happenings), ...work.map((done) => done.then(() => Promise.reject(new Error("the load ended early"))))]);
  crowd.stop();
  killed.end();
  await Promise.all(work);
  const appended = await killed.check();
  await server.stop();
  await streamdir(scope, "verify", server.dir);
  const told = [...crowd.told].sort(([, one], [, other]) => other - one).map(([what, times]) => `${what}: ${times}`);
  console.log(`answers: ${told.join(", ")}`);
  const findings = findingsOf(samples);
  const kills = marks.filter(({ kind }) => kind === "kill").length;
  const lines = [
    `${minutes} minutes, seed ${seed}; ${kills} kills, ${marks.length - kills} backups, each verified. Of ${appended} appends that the`,
    "killed server acknowledged, each was there once at the end.",
    "",
    "| what | found | goal |",
    "|---|---|---|",
    ...findings.map(({ what, value, goal }) => `| ${what} | ${value} | ${goal} |`),
  ];
  console.log(lines.join("\n"));
  if (values.report) {
    writeFileSync(PAGE, withMeasured(readFileSync(PAGE, "utf8"), lines));
    writeFileSync(PICTURE, soakPictureOf(`${minutes} minutes under a mixed load`, panelsOf(samples), marks));
  }
  return findings;
}

/** A backup of what the server has at the moment. One that a kill cuts short is taken again. */
async function backUp(name: string, dir: string): Promise<void> {
  const destination = join(root, `${name}-backup`);
  for (let tries = 0; ; tries += 1) {
    try {
      await streamdir(scope, "backup", dir, destination);
      break;
    } catch (error) {
      if (tries >= 5) throw error;
      console.log(`backup of ${name}, again: ${String(error)}`);
      await pause(1000);
    }
  }
  await streamdir(scope, "verify", destination);
}

function panelsOf(samples: readonly Sample[]): Panel[] {
  const panel = (title: string, unit: string, of: (sample: Sample) => number): Panel => ({
    title,
    unit,
    points: samples.map((sample) => ({ atMs: sample.atMs, value: of(sample) })).filter(({ value }) => !Number.isNaN(value)),
  });
  return [
    panel("Resident memory", "MiB", ({ memoryMiB }) => memoryMiB),
    panel("Open descriptors", "files and connections", ({ descriptors }) => descriptors),
    panel("p99 of appends, five seconds at a time", "ms", ({ latencies }) => latencies.at(0.99)),
    panel("Disk", "MiB", ({ diskMiB }) => diskMiB),
  ];
}

function docs(name: string): string {
  return fileURLToPath(new URL(`../../docs/${name}`, import.meta.url));
}
