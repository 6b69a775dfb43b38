import { DEFAULT_CONTENT_TYPE, sameMediaType } from "../../protocol/content-type.js";
import { formatTimestamp } from "../../protocol/timestamp.js";
import type { ForkOrigin, StreamConfig } from "../../storage/storage.js";
import type { CreateHead, ForkRequest } from "./command.js";
import { refuse, type Refused } from "./outcome.js";

/** A header in which a create differs from the existing stream. */
interface Difference {
  readonly header: string;
  /** The existing value and the requested one; `null` where they are not shown. */
  readonly values: readonly [there: string, asked: string] | null;
}

/**
 * Why a create is refused whose configuration is not that of the existing stream (docs/api.md, Create a stream); `null`
 * where it is the same.
 */
export function refuseConfig(config: StreamConfig, closed: boolean, head: CreateHead): Refused | null {
  const differences = differencesOf(config, closed, head);
  if (differences.length === 0) return null;
  const texts = differences.map(({ header, values }) =>
    values === null ? header : `${header} (${values[0]} there, ${values[1]} asked for)`,
  );
  return refuse("config-mismatch", {
    detail: `The stream differs in ${texts.join(", ")}.`,
    facts: { differs: differences.map(({ header }) => header) },
  });
}

function differencesOf(config: StreamConfig, closed: boolean, head: CreateHead): Difference[] {
  const { fork } = head;
  const differences: Difference[] = [];
  const note = (header: string, there: string | null, asked: string | null): void =>
    void differences.push({ header, values: [there ?? "none", asked ?? "none"] });
  const contentType = head.contentType ?? (fork === null ? DEFAULT_CONTENT_TYPE : config.contentType);
  if (!sameMediaType(config.contentType, contentType)) note("Content-Type", config.contentType, contentType);
  // A fork inherits a lifetime whole or not at all.
  const isInherited = fork !== null && head.ttlSeconds === null && head.expiresAtMs === null;
  if (!isInherited && config.ttlSeconds !== head.ttlSeconds)
    note("Stream-TTL", textOf(config.ttlSeconds), textOf(head.ttlSeconds));
  if (!isInherited && config.expiresAtMs !== head.expiresAtMs)
    note("Stream-Expires-At", momentOf(config.expiresAtMs), momentOf(head.expiresAtMs));
  if (closed !== head.closed) note("Stream-Closed", closed ? "true" : null, head.closed ? "true" : null);
  // The name of another stream is not shown.
  if (fork !== null && config.forkedFrom?.name !== fork.source)
    differences.push({ header: "Stream-Forked-From", values: null });
  else if (fork !== null && config.forkedFrom !== null && !isSamePlace(config.forkedFrom, fork))
    differences.push({ header: "Stream-Fork-Offset", values: null });
  return differences;
}

/** Whether a request names the same place: in the same words, or with another token of the point itself. */
function isSamePlace({ point, offset, subOffset }: ForkOrigin, request: ForkRequest): boolean {
  if (offset === request.offset && subOffset === request.subOffset) return true;
  const { place } = request;
  return request.subOffset === 0 && place?.kind === "at" && place.partStart + place.byteInPart === point;
}

function textOf(value: number | null): string | null {
  return value === null ? null : String(value);
}

function momentOf(atMs: number | null): string | null {
  return atMs === null ? null : formatTimestamp(atMs);
}
