import { JournaledStream } from "../../src/storage/file/survey/journaled-stream.js";
import { RecordKind, type StreamIdentity } from "../../src/storage/file/format/record.js";
import { recordOf } from "./engine.js";

/** A stream that the journal names once, and whose directory tells nothing, with `more`. */
export function journaledStream(identity: StreamIdentity, directory: string, more: Partial<JournaledStream> = {}): JournaledStream {
  const record = { kind: RecordKind.bind, handle: 0, position: 0, segmentStart: 0, change: recordOf(""), identity, bypassed: null };
  return Object.assign(new JournaledStream({ record, identity, batch: 1, isSound: true }, directory, null, false), more);
}
