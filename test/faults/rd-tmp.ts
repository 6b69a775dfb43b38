import { runDamage } from "./random-damage.js";
const [from=0,count=1,show=0]=process.argv.slice(2).map(Number);
let failed=0; const t=performance.now();
for(let seed=from;seed<from+count;seed++){ try { await runDamage(seed, show? (l)=>console.log(l):undefined); } catch(e){ failed++; if(failed<=12||show) console.log(seed, show? (e as Error).stack : (e as Error).message.slice(0,300)); } }
console.log(count, "runs", failed, "failed", ((performance.now()-t)/count).toFixed(1),"ms each");
