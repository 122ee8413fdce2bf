import { writeFile } from "node:fs/promises";
import { KitError } from "../../errors.ts";

/**
 * Writes a report to a file, where one is named.
 *
 * @throws {KitError} when it cannot be written
 */
export async function writeReport(file: string | undefined, render: () => string): Promise<void> {
  if (file === undefined) return;
  try {
    await writeFile(file, render());
  } catch (cause) {
    throw new KitError(`The report could not be written to ${file}`, { cause });
  }
}
