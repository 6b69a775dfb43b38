/** A recording of a run: each answer that a server gave, as a line of JSON; and the judgement of it. */
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { Description } from "./description.mjs";

/** Most faults that are told; there may be one for each answer. */
const MAX_TOLD = 20;

/**
 * Compares each answer of a recording with the description.
 * @param {string} file
 * @returns {Promise<{ answers: number, faults: string[] }>} how many there are, and what is not as described
 */
export async function judgeRecording(file) {
  const description = new Description();
  const faults = new Map();
  let answers = 0;
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const answered = JSON.parse(line);
    answers += 1;
    for (const fault of description.faultsOf(answered)) {
      const told = `${answered.method ?? "(no HTTP)"} answered with ${answered.status}: ${fault}`;
      if (faults.size < MAX_TOLD) faults.set(told, `${told} (${answered.target})`);
    }
  }
  return { answers, faults: [...faults.values()] };
}
