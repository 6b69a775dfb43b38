import { Random } from "../helpers/random.js";
import { SimulatedDisk } from "../helpers/simulated-disk.js";
import { DamagedWorld, DIR } from "./damaged-world.js";
import { doHarm } from "./random-harm.js";
import { surveyJournal } from "../../src/storage/file/journal-survey.js";
import { Layout } from "../../src/storage/file/layout.js";
import { readMarker } from "../../src/storage/file/directory.js";
import { soundFrames } from "../../src/storage/file/journal-reader.js";
import { decodeRecords } from "../../src/storage/file/record.js";
const seed=Number(process.argv[2]);
const random=new Random(seed); const disk=new SimulatedDisk(seed); disk.scheduler.maxDelayTurns=0;
const w=new DamagedWorld(disk,random); await w.live();
const layout=new Layout(DIR); const files=disk.mount(); const directoryId=(await readMarker(files,layout))!;
for(const n of disk.namesIn(layout.journal)){ const bytes=disk.contentOf(layout.journal+"/"+n)!; console.log(n,bytes.length); for(const f of soundFrames(bytes,0,{sequence:parseInt(n),directoryId,lastBatch:null})) console.log(" ",f.offset,"batch",f.batch,"handles",f.handles,[...decodeRecords(f)].map(r=>`${r.kind}/${r.handle}@${r.position}+${r.bypassed?.length??r.change.payload.length}${r.identity?":"+r.identity.name+":"+r.identity.id.slice(0,4):""}`).join(" ")); }
const harms=Array.from({length:random.chance(0.75)?1:2},()=>doHarm(disk,random)); console.log(harms);
const s=await surveyJournal({files:disk.mount(),layout,directoryId});
for(const x of s.streams.values()) console.log(x.identity.name,x.identity.id.slice(0,4),{...x,identity:0,sidecar:x.sidecar?.kind});
console.log(s.damages);
