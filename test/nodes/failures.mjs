/** A reporter of the tests that fail, with why, and of how many did not. */
export default async function* failures(events) {
  let passed = 0;
  for await (const { type, data } of events) {
    if (type === "test:pass") passed += 1;
    if (type !== "test:fail") continue;
    const { error } = data.details;
    yield `\nFAILED ${data.file ?? ""}:${data.line ?? ""} ${data.name}\n${error.cause?.stack ?? error.stack}\n`;
  }
  yield `${passed} passed\n`;
}
