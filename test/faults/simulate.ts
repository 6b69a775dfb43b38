import { runHistory } from "./histories.js";

const args = process.argv.slice(2);
const valueOf = (flag: string): number | null => {
  const at = args.indexOf(flag);
  return at === -1 ? null : Number(args[at + 1]);
};
const seed = valueOf("--seed");
if (seed !== null) {
  try { await runHistory(seed, { trace: (line) => console.log(line) }); } catch (e) { console.log(e instanceof Error ? e.stack : e); process.exitCode = 1; }
} else {
  const first = valueOf("--from") ?? 1;
  const count = valueOf("--seeds") ?? 1000;
  let failures = 0;
  const started = performance.now();
  for (let s = first; s < first + count; s++) {
    if (args.includes("-v")) console.log(s, ((performance.now() - started) / 1000).toFixed(2));
    try { await runHistory(s); } catch (e) {
      failures++;
      console.log(`seed ${s}: ${e instanceof Error ? (e.name === "Violation" ? e.message : e.stack) : String(e)}`.slice(0, 1200));
      if (failures > (valueOf("--max") ?? 15)) break;
    }
  }
  console.log(failures, "failures", count / ((performance.now() - started) / 1000), "/s");
}
