import { InvalidValue } from "./values.ts";

export const defaultDatabaseUrl = "sqlite:./facilitator.db";

/** Reads where the database is. Its message never repeats the URL, which may hold a password. */
export function readDatabaseUrl(text: string): string {
  const isPostgres = /^postgres(?:ql)?:\/\//.test(text) && URL.canParse(text);
  if (!isPostgres && !text.startsWith("sqlite:")) {
    throw new InvalidValue("must begin with sqlite: or be a URL that begins with postgres://");
  }
  if (text.startsWith("sqlite::memory:")) {
    throw new InvalidValue("is a database in memory, which would forget the payments that are on their way");
  }
  return text;
}
