import { KitError } from "../../errors.ts";

/**
 * Reads the file `.env` of the working directory into the environment, if there is one, as `node --env-file` does:
 * variables that are set already stay as they are.
 *
 * @throws KitError when it is there and cannot be read
 */
export function loadEnvFile(): void {
  try {
    process.loadEnvFile();
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return;
    throw new KitError("The file .env cannot be read", { cause });
  }
}
