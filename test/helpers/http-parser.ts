/** The version of Node's HTTP parser, as a number that has no patch: what it takes has changed. */
export const PARSER_VERSION = Number(process.versions["llhttp"]?.split(".", 2).join("."));
