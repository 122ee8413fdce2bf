import { existsSync } from "node:fs";
import { resolve } from "node:path";

/** Whether a URL names an SQLite file that does not exist: opening it would create it, with nothing in it. */
export function isMissingFile(url: string): boolean {
  if (!url.startsWith("sqlite:")) return false;
  const file = url.slice("sqlite:".length);
  return file !== ":memory:" && !existsSync(resolve(file));
}
