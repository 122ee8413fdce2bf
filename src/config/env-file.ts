import { readFileSync, statSync } from "node:fs";
import { parseEnv } from "node:util";
import { type ConfigurationProblem, KitError } from "../util/errors.ts";

/** The mode bits with which other users of the machine may read a file. */
const readableByOthers = 0o004;

/**
 * Reads the file `.env` of the working directory into an environment, if there is one, as `node --env-file` does:
 * variables that are set already stay as they are. A byte order mark, as some editors write it, is not part of the
 * first name.
 *
 * @returns warnings about the file, whose variables are used nonetheless
 * @throws KitError when it is there and cannot be read
 */
export function loadEnvFile(env: Record<string, string | undefined>, path = ".env"): ConfigurationProblem[] {
  let text: string;
  let mode: number;
  try {
    mode = statSync(path).mode;
    text = readFileSync(path, "utf8");
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return [];
    throw new KitError("The file .env cannot be read", { cause });
  }
  for (const [name, value] of Object.entries(parseEnv(text.replace(/^\uFEFF/, "")))) env[name] ??= value;
  // Windows has no such bits, and reports what it likes.
  if (process.platform === "win32" || (mode & readableByOthers) === 0) return [];
  return [{ name: ".env", problem: "can be read by every user of this machine; run: chmod 600 .env" }];
}
