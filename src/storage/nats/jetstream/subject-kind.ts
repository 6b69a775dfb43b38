/** What the permissions of a subject are told by, once for all that are alike: its first tokens. */
export function kindOf(subject: string): string {
  return subject
    .split(".")
    .slice(0, subject.startsWith("$JS.") ? 4 : 2)
    .join(".");
}
