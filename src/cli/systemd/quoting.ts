// Words of a command as systemd's unit files write them.

/** What a word may have without quotes; `%` and `$` mean something to systemd in any word. */
const PLAIN = /^[\w@+=:,./~-]+$/;

/** `word` as one argument of `ExecStart=` that is exactly that word (systemd.service(5), "Command lines"). */
export function quoteWord(word: string): string {
  return quoteItem(word).replaceAll("$", "$$$$");
}

/** `item` as one of a list, as `ReadWritePaths=` has it. */
export function quoteItem(item: string): string {
  return PLAIN.test(item) ? item : `"${quoteValue(item.replaceAll(/[\\"]/g, "\\$&"))}"`;
}

/** `text` as the value of a setting that takes one: only specifiers need to be written otherwise. */
export function quoteValue(text: string): string {
  return text.replaceAll("%", "%%");
}
