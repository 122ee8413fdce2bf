import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { KitError } from "../../util/errors.ts";

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
  try {
    // The last byte read is the one too many.
    return await readText(createReadStream(file, { end: most }), { most, what, name: file });
  } catch (cause) {
    if (cause instanceof KitError) throw cause;
    throw new KitError(`${file} cannot be read`, { cause });
  }
}

/**
 * Reads a text from a stream, and ends it where that is longer than it may be.
 *
 * @param name of the stream, for the error
 * @throws {KitError} when it is longer
 */
export async function readText(
  stream: Readable,
  { most, what, name }: { most: number; what: string; name: string },
): Promise<string> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of stream) {
    parts.push(Buffer.from(part));
    length += part.length;
    if (length > most) {
      throw new KitError(`${name} is longer than ${what}: more than ${Math.floor(most / mebibyte)} MiB`);
    }
  }
  return Buffer.concat(parts).toString();
}
