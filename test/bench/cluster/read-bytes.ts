/** What one read asks for. */
export const READ_BYTES = 1024 * 1024;
