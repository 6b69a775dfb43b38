// Runs the official suite and the official client's tests, and judges the result: none may fail, and no answer may be
// other than docs/openapi.yaml describes.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { judgeRecording } from "../openapi/recording.mjs";

/** The suite's own count, version 0.3.6; fewer means that some did not run. */
const OFFICIAL_TESTS_AT_LEAST = 332;
/** Each test has several; fewer means that they were not recorded. */
const ANSWERS_AT_LEAST = 1000;
const ENDED_WITHIN_MS = 20 * 60_000;

const here = fileURLToPath(new URL(".", import.meta.url));
const reportFolder = mkdtempSync(join(tmpdir(), "streamdir-conformance-report-"));
const reportFile = join(reportFolder, "report.json");
const recordingFile = join(reportFolder, "answers.jsonl");

/** What the suite is run over: HTTP/1.1, and HTTPS with HTTP/1.1 and HTTP/2. Arguments are for all runs. */
const { CONFORMANCE_OVERS = "http,https,h2" } = process.env;
const OVERS = CONFORMANCE_OVERS.split(",");
/** Over these, answers are plain on their way. */
const RECORDED = ["http", "nats", "nats-two"];

/** Runs vitest, in a process group of its own so that nothing of it stays behind; its exit status. */
function runVitest(over) {
  const vitest = join(here, "node_modules", "vitest", "vitest.mjs");
  const args = [vitest, "run", "--reporter=json", `--outputFile=${reportFile}`, ...process.argv.slice(2)];
  const child = spawn(process.execPath, args, {
    cwd: here,
    env: { ...process.env, CONFORMANCE_OVER: over, CONFORMANCE_RECORDING: recordingFile },
    stdio: ["ignore", "inherit", "inherit"],
    detached: true,
  });
  const end = () => {
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // all of them have ended
    }
  };
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.once(signal, () => {
      end();
      process.exit(1);
    });
  }
  const tooLate = setTimeout(() => {
    console.error(`not finished after ${ENDED_WITHIN_MS} ms`);
    end();
  }, ENDED_WITHIN_MS);
  return new Promise((resolve) => {
    child.once("exit", (status) => {
      clearTimeout(tooLate);
      end();
      resolve(status);
    });
  });
}

/** Every test that ran, and every file that could not run, as one list. */
function outcomes(report) {
  return report.testResults.flatMap((file) => {
    const name = basename(file.name);
    const tests = file.assertionResults.map((test) => ({
      name: [...test.ancestorTitles, test.title].join(" > "),
      file: name,
      status: test.status,
      messages: test.failureMessages ?? [],
    }));
    const untold = file.status === "failed" && !tests.some(({ status }) => status === "failed");
    return untold ? [...tests, { name: "the file itself", file: name, status: "failed", messages: [file.message] }] : tests;
  });
}

function tally(tests) {
  const passed = tests.filter(({ status }) => status === "passed").length;
  const failed = tests.filter(({ status }) => status === "failed").length;
  return { passed, failed, ran: passed + failed };
}

function printFailures(tests) {
  for (const { name, file, status, messages } of tests) {
    if (status !== "failed") continue;
    // What vitest reports of a test that ran out of time is a stack without a reason.
    const words = messages.join("\n").replace("STACK_TRACE_ERROR", "did not end within its time").trim().split("\n").slice(0, 12);
    console.log(`\nFAILED ${file} > ${name}\n${words.map((line) => `    ${line}`).join("\n")}`);
  }
}

/** What is wrong with the run; empty when nothing is. */
function faultsOf(status, all, officialRan, recording) {
  const faults = [];
  if (all.failed > 0) faults.push(`${all.failed} tests failed`);
  if (officialRan < OFFICIAL_TESTS_AT_LEAST)
    faults.push(`only ${officialRan} tests of the official suite ran, of at least ${OFFICIAL_TESTS_AT_LEAST}`);
  if (status !== 0 && all.failed === 0) faults.push(`vitest ended with status ${status} though no test failed`);
  if (recording.answers < ANSWERS_AT_LEAST) faults.push(`only ${recording.answers} answers were recorded, of at least ${ANSWERS_AT_LEAST}`);
  return [...faults, ...recording.faults.map((fault) => `not as docs/openapi.yaml has it: ${fault}`)];
}

async function judge(status, over) {
  const tests = outcomes(JSON.parse(readFileSync(reportFile, "utf8")));
  const official = tests.filter(({ file, name }) => file === "suite.test.ts" && name.includes(" > "));
  const all = tally(tests);
  const isRecorded = RECORDED.includes(over);
  const recording = isRecorded ? await judgeRecording(recordingFile) : { answers: Infinity, faults: [] };
  rmSync(recordingFile, { force: true });

  printFailures(tests);
  const faults = faultsOf(status, all, tally(official).ran, recording);
  for (const fault of faults) console.log(`\nNOT CONFORMING: ${fault}`);
  if (isRecorded) console.log(`${recording.answers} answers compared with docs/openapi.yaml`);
  console.log(`over ${over}: ${all.passed} passed, ${all.failed} failed`);
  return faults.length === 0 ? 0 : 1;
}

try {
  for (const over of OVERS) process.exitCode = Math.max(Number(process.exitCode ?? 0), await judge(await runVitest(over), over));
} catch (fault) {
  console.error(`the run left no report: ${fault.message}`);
  process.exitCode = 1;
} finally {
  rmSync(reportFolder, { recursive: true, force: true });
}
