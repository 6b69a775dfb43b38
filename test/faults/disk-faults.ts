import type { Random } from "../helpers/random.js";
import type { FaultCode } from "../helpers/simulated-call.js";
import type { SimulatedDisk } from "../helpers/simulated-disk.js";

/** Which calls can fail in which way. */
const CALLS: Record<FaultCode, RegExp> = { EIO: /./, ENOSPC: /write|create|mkdir|rename/, EMFILE: /^(open|create)/ };

/** Makes one of the next calls fail, or a run of them where the fault is one that lasts; tells with what. */
export function failLater(disk: SimulatedDisk, random: Random): FaultCode {
  const code = random.pick<FaultCode>(["EIO", "EIO", "ENOSPC", "EMFILE"]);
  const times = code === "EIO" ? 1 : random.pick([1, 1, 5, 40]);
  disk.failAfter(random.integer(0, 60), code, (call) => CALLS[code].test(call), times);
  return code;
}
