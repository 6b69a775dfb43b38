import type { Log } from "../../src/ops/log.js";
import { createServer } from "../../src/server.js";
import { tempDir } from "../helpers/temp-dir.js";
import { runSession, type SessionOptions } from "./session.js";

/** Requests of one seed: few, so that a seed that fails is soon run again. */
const SESSION_REQUESTS = 100;

const JOURNAL_BYTES = 1024 * 1024;

/** Clients at a time. */
const CLIENTS = 8;

/** How many requests are sent, by which seeds. */
export interface CampaignOptions extends Pick<SessionOptions, "maxConnectionMs" | "trace"> {
  readonly from: number;
  /** The least number of requests; a campaign of one seed has as many as that has. */
  readonly requests: number;
  /** Ends after the first seed that fails. */
  readonly stopsEarly?: boolean;
  /** Told of each seed that fails, as soon as it does. */
  readonly failure?: (failed: FailedSeed) => void;
}

/** A seed at one of whose answers something was wrong. */
export interface FailedSeed {
  readonly seed: number;
  readonly says: string;
}

/** What a campaign found. */
export interface CampaignResult {
  readonly requests: number;
  readonly failures: readonly FailedSeed[];
  /** What the server logged as errors. */
  readonly faults: readonly string[];
}

/** Has clients send requests to a server of their own, in this process. */
export async function runCampaign({ from, requests, stopsEarly = false, failure, ...session }: CampaignOptions): Promise<CampaignResult> {
  const faults: string[] = [];
  const note = (message: string, fields?: object): void => void faults.push(`${message} ${JSON.stringify(fields)}`);
  // The warnings are of a slow disk.
  const log: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: note };
  // Not what is durable is looked at here, and a long-poll is not to be waited for.
  const server = await createServer({
    dir: tempDir(),
    port: 0,
    fsync: "no",
    journalBytes: JOURNAL_BYTES,
    longPollTimeoutMs: 20,
    insecure: true,
    corsOrigin: "*",
    log,
  });
  const failures: FailedSeed[] = [];
  let seed = from;
  let sent = 0;
  const runClient = async (): Promise<void> => {
    while (seed < from + requests / SESSION_REQUESTS && !(stopsEarly && failures.length > 0)) {
      const mine = seed++;
      try {
        const count = await runSession({ port: server.port, seed: mine, requests: SESSION_REQUESTS, ...session });
        sent += count;
      } catch (error) {
        const failed = { seed: mine, says: error instanceof Error ? error.message : String(error) };
        failures.push(failed);
        failure?.(failed);
      }
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, runClient));
  await server.close();
  return { requests: sent, failures, faults };
}
