import type { Random } from "../helpers/random.js";
import type { FaultCode } from "../helpers/simulated-call.js";
import type { SimulatedDisk } from "../helpers/simulated-disk.js";

/** Which calls can fail in which way. */
const CALLS: Record<FaultCode, RegExp> = { EIO: /./, ENOSPC: /write|create|mkdir|rename/, EMFILE: /^(open|create)/ };

/** Calls on whose outcome most depends: few of all, so that chance alone seldom meets them. */
const CRUCIAL = [/^log-write/, /^log-write/, /^log-write/, /sync/, /^(write|replacement-write)/, /^(rename|unlink|remove-tree|truncate)/];

/** Makes one of the next calls fail, or a run of them where the fault is one that lasts; tells with what. */
export function failLater(disk: SimulatedDisk, random: Random, whims: Random): FaultCode {
  const code = random.pick<FaultCode>(["EIO", "EIO", "ENOSPC", "EMFILE"]);
  const times = code === "EIO" ? 1 : random.pick([1, 1, 5, 40]);
  const after = random.integer(0, 60);
  const crucial = whims.chance(0.4) ? whims.pick(CRUCIAL) : null;
  disk.failAfter(
    crucial === null ? after : after % 12,
    code,
    (call) => CALLS[code].test(call) && (crucial === null || code === "EMFILE" || crucial.test(call)),
    times,
  );
  return code;
}

/** Lets there be no room for one of the next frames of the journal, or some of them. */
export function lackFrames(disk: SimulatedDisk, whims: Random): void {
  disk.failAfter(whims.integer(0, 15), "ENOSPC", (call) => call === "log-write", whims.pick([1, 1, 2, 5]));
}

/** Lets the process end in the middle of one of the next crucial calls. */
export function crashAmidCrucial(disk: SimulatedDisk, whims: Random, onCrash: () => void): void {
  const matches = whims.pick(CRUCIAL);
  disk.crashAmid(whims.integer(0, 12), whims.pick(["power", "kill"]), (call) => matches.test(call), onCrash);
}

/** Makes some crucial calls late for a while: what is decided meanwhile waits for them. */
export function delayCrucial(disk: SimulatedDisk, whims: Random): void {
  const matches = whims.pick(CRUCIAL);
  disk.slow = { matches: (call) => matches.test(call), turns: whims.pick([10, 40, 150, 400]) };
}
