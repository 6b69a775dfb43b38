/** What is wrong with an auth file; the message is one line, with the file and the line in it. */
export class AuthFileError extends Error {
  override readonly name = "AuthFileError";
}
