/** Longest pattern of names, in bytes of UTF-8: as long as a name can be. */
export const MAX_PATTERN_BYTES = 1024;

const SUB = "{sub}";
const MAX_SUB_CHARS = 255;

/** The pattern for `sub`, who is taken literally; `null` where it names a `sub` and there is none. */
export function patternFor(pattern: string, sub: string | null): string | null {
  if (!pattern.includes(SUB)) return pattern;
  return sub === null ? null : pattern.replaceAll(SUB, () => sub);
}

/** Whether `sub` may stand for itself in a pattern: 1 to 255 characters of one segment, none with a meaning there. */
export function isSub(sub: string): boolean {
  return sub.length >= 1 && sub.length <= MAX_SUB_CHARS && !/[\p{Cc}\p{Cs}/*{}]|\.\.|^\.$/u.test(sub);
}

/**
 * What is wrong with a pattern, in words that follow it; `null` when nothing is. `hasSub` is whether it may have
 * `{sub}`.
 */
export function faultOfPattern(pattern: string, hasSub: boolean): string | null {
  if (pattern === "") return "must not be empty; ** is every stream";
  if (Buffer.byteLength(pattern) > MAX_PATTERN_BYTES) return `must have at most ${MAX_PATTERN_BYTES} bytes`;
  if (/[\p{Cc}\p{Cs}]/u.test(pattern)) return "must have no control character";
  const segments = pattern.split("/");
  if (segments.includes("")) return "must have no empty segment, so no / at its start or end; names have none";
  if (segments.some((segment) => segment === "." || segment === "..")) return "must have no . or .. segment";
  // `room-a-*`, for whom `a` names, would also have what `a-b` names.
  if (hasSub && segments.some((segment) => segment.includes(SUB) && segment.includes("*")))
    return "has {sub} and * in one segment, where one name could begin or end another; give {sub} a segment of its own";
  const braces = pattern.match(/\{[^/]*?\}/g)?.filter((found) => found !== SUB || !hasSub) ?? [];
  if (braces.length === 0) return null;
  return hasSub ? `has ${braces[0]}; only {sub} is filled in` : `has ${braces[0]}; nobody's name is filled in here`;
}
