/** Everything that a grant can allow (docs/auth.md, Operations). */
export const OPERATIONS = ["read", "append", "create", "close", "delete", "list", "admin"] as const;

/** One thing that a grant can allow. */
export type Operation = (typeof OPERATIONS)[number];

/** Whether `text` is the name of an operation. */
export function isOperation(text: unknown): text is Operation {
  return OPERATIONS.some((operation) => operation === text);
}
