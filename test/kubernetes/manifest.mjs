/** docs/kubernetes.yaml, and what is wrong with a manifest. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { PersistentVolumeClaim } from "kubernetes-models/v1/PersistentVolumeClaim";
import { Pod } from "kubernetes-models/v1/Pod";
import { Service } from "kubernetes-models/v1/Service";
import { StatefulSet } from "kubernetes-models/apps/v1/StatefulSet";
import ts from "typescript";
import { parseAllDocuments } from "yaml";

/** The file. */
export const FILE = new URL("../../docs/kubernetes.yaml", import.meta.url);
const HERE = fileURLToPath(new URL(".", import.meta.url));

const MODELS = new Map([
  ["PersistentVolumeClaim", { Model: PersistentVolumeClaim, from: "kubernetes-models/v1/PersistentVolumeClaim" }],
  ["Pod", { Model: Pod, from: "kubernetes-models/v1/Pod" }],
  ["Service", { Model: Service, from: "kubernetes-models/v1/Service" }],
  ["StatefulSet", { Model: StatefulSet, from: "kubernetes-models/apps/v1/StatefulSet" }],
]);

/** The objects of the file, by their kinds. */
export function objects(text = readFileSync(FILE, "utf8")) {
  // Kubernetes reads YAML 1.1, where 0440 is octal.
  const documents = parseAllDocuments(text, { version: "1.1" });
  for (const { errors, warnings } of documents) for (const fault of [...errors, ...warnings]) throw fault;
  return new Map(documents.map((document) => document.toJS()).map((object) => [object.kind, object]));
}

/** What the schemas of Kubernetes have against an object: values of a wrong type, what is missing, and fields that are unknown. */
export function faultsOf(object) {
  const { Model, from } = MODELS.get(object.kind) ?? {};
  if (Model === undefined) return [`${object.kind}: a kind without a schema here`];
  return [...wrongValues(new Model(object)), ...unknownFields(object, from)];
}

function wrongValues(model) {
  try {
    model.validate();
    return [];
  } catch (error) {
    return [error.message];
  }
}

/** The schemas leave unknown fields alone; the types that are made of them do not. */
function unknownFields(object, from) {
  const place = mkdtempSync(join(HERE, "typed-"));
  try {
    const path = join(place, "object.ts");
    writeFileSync(
      path,
      `import type { I${object.kind} } from "${from}";\nexport const object: I${object.kind} = ${JSON.stringify(object, null, 2)};\n`,
    );
    const program = ts.createProgram([path], {
      noEmit: true,
      strict: true,
      skipLibCheck: true,
      types: [],
      module: ts.ModuleKind.ESNext,
      moduleResolution: ts.ModuleResolutionKind.Bundler,
    });
    return ts.getPreEmitDiagnostics(program).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"));
  } finally {
    rmSync(place, { recursive: true });
  }
}
