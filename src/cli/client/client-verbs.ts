// The table of the verbs that speak to a server.

import { APPEND } from "./append/append.js";
import { EXPORT } from "./archive/export.js";
import { IMPORT } from "./archive/import.js";
import { BENCH } from "./bench/bench.js";
import { CAT } from "./reading/cat.js";
import { TAIL } from "./reading/tail.js";
import type { ClientTask } from "./session/session.js";
import { CLOSE } from "./streams/close.js";
import { CREATE } from "./streams/create.js";
import { FORK } from "./streams/fork.js";
import { INFO } from "./streams/info.js";
import { LS } from "./streams/ls.js";
import { RM } from "./streams/rm.js";

/** The verbs, in the order of the help. */
export const CLIENT_VERBS: readonly ClientTask[] = [
  LS,
  INFO,
  CREATE,
  APPEND,
  CAT,
  TAIL,
  CLOSE,
  FORK,
  RM,
  EXPORT,
  IMPORT,
  BENCH,
];
