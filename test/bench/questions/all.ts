import type { Question } from "../question.js";
import { CLUSTER_APPENDS } from "./cluster-appends.js";
import { CLUSTER_READS } from "./cluster-reads.js";
import { manyStreams, oneStream, producers, shortLives } from "./appends.js";
import { largeAppends, longPoll, oneAtATime } from "./disk-bound.js";
import { firstSeconds } from "./first-seconds.js";
import { fanOut1000, fanOut8000, mixed } from "./live.js";
import { idleLongPolls, idleSse, slowReader, tenGiB } from "./memory.js";
import { checkpoint, costBySize, costByStreams } from "./no-cliff.js";
import { appendsWithTokens, readsWithTokens } from "./rights.js";
import { appendsHttp2, appendsHttps, sseHttp2, sseHttps, sseOfFourHttp2, sseOfFourHttps } from "./secure.js";
import { cachedReads, revalidation, smallReads, warmReads } from "./reads.js";

/** Every question, in the order of the table. */
export const QUESTIONS: readonly Question[] = [
  manyStreams,
  oneStream,
  firstSeconds,
  producers,
  oneAtATime,
  shortLives,
  largeAppends,
  smallReads,
  warmReads,
  cachedReads,
  revalidation,
  readsWithTokens,
  appendsWithTokens,
  fanOut1000,
  fanOut8000,
  longPoll,
  mixed,
  appendsHttps,
  appendsHttp2,
  sseHttps,
  sseHttp2,
  sseOfFourHttps,
  sseOfFourHttp2,
  idleSse,
  idleLongPolls,
  slowReader,
  tenGiB,
  checkpoint,
  costByStreams,
  costBySize,
];

/** The questions about a NATS cluster, which have a table of their own. */
export const CLUSTER_QUESTIONS: readonly Question[] = [...CLUSTER_APPENDS, ...CLUSTER_READS];
