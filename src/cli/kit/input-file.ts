import { createReadStream } from "node:fs";
import { buffer } from "node:stream/consumers";
import { KitError } from "../../errors.ts";

const mebibyte = 1_048_576;

/**
 * Reads a text file, and no more of it than it may hold: a file that is named by mistake may be of any size, and a device
 * never ends.
 *
 * @param what what such a file is, with its article: `a capture`
 * @throws {KitError} when it cannot be read, or is longer
 */
export async function readInputFile(
  file: string,
  { most, what }: { most: number; what: string },
): Promise<string> {
  let bytes: Buffer;
  try {
    // The last byte read is the one too many.
    bytes = await buffer(createReadStream(file, { end: most }));
  } catch (cause) {
    throw new KitError(`${file} cannot be read`, { cause });
  }
  if (bytes.length > most) {
    throw new KitError(`${file} is longer than ${what}: more than ${Math.floor(most / mebibyte)} MiB`);
  }
  return bytes.toString();
}
