import { randomUUID } from "node:crypto";
import { type FileHandle, link, open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { type Hex, isBytes32 } from "../protocol/hex.ts";
import { KitError } from "../util/errors.ts";
import { parseJson } from "../util/json.ts";

/** The first line of an archive: what it is, and the moment before which its settlements are (ISO 8601). */
const headSchema = z.object({ kind: z.literal("x402-kit settlements archive"), before: z.iso.datetime() });

const keySchema = z.custom<Hex>((value) => isBytes32(value) && value === value.toLowerCase());
const lineSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("settlement"), row: z.object({ id: keySchema }) }),
  z.object({ kind: z.literal("attempt"), row: z.object({ hash: keySchema }) }),
]);

/** One row of the ledger in an archive: which table it is of, its key there, and its JSON as the ledger serialized it. */
export type ArchivedRow = { kind: "settlement" | "attempt"; key: Hex; serialized: string };

/** How the line of a row begins. */
const rowStart = (kind: ArchivedRow["kind"]) => `{"kind":"${kind}","row":`;

/** Characters that are written at a time. */
const chunkLength = 1 << 16;

/**
 * Writes an archive as JSON lines. It has its name once every line of it is on the disk, and not before: what was cut
 * short stays behind as `FILE.….part`.
 *
 * @throws {KitError} when it cannot be written, or there is a file of that name by then
 */
export async function writeArchive(
  file: string,
  before: number,
  rows: AsyncIterable<Omit<ArchivedRow, "key">>,
): Promise<void> {
  const part = `${file}.${randomUUID()}.part`;
  let handle: FileHandle | undefined;
  try {
    // Signatures are in it: for its owner alone.
    handle = await open(part, "wx", 0o600);
    const head = { kind: "x402-kit settlements archive", before: new Date(before).toISOString() };
    let chunk = `${JSON.stringify(head)}\n`;
    for await (const { kind, serialized } of rows) {
      chunk += `${rowStart(kind)}${serialized}}\n`;
      if (chunk.length < chunkLength) continue;
      await handle.appendFile(chunk);
      chunk = "";
    }
    await handle.appendFile(chunk);
    await handle.sync();
    await handle.close();
    // Unlike a renaming, a link replaces no archive that another process has written meanwhile.
    await link(part, file);
    await rm(part);
    await syncDirectory(dirname(file));
  } catch (cause) {
    await handle?.close().catch(() => undefined);
    await rm(part, { force: true }).catch(() => undefined);
    if (cause instanceof KitError) throw cause;
    throw new KitError(`The archive ${file} could not be written, and nothing was removed from the ledger`, {
      cause,
      hints: ["The folder must exist, be writable, and be of a file system that knows hard links."],
    });
  }
}

/** The name of a file is on the disk when its directory is. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/**
 * Opens an archive; null when there is no such file.
 *
 * @throws {KitError} when it is no archive, or cannot be read
 */
export async function openArchive(
  file: string,
): Promise<{ before: number; rows: AsyncIterable<ArchivedRow>; close(): Promise<void> } | null> {
  let handle: FileHandle;
  try {
    handle = await open(file, "r");
  } catch (cause) {
    if (isMissing(cause)) return null;
    throw new KitError(`The archive ${file} could not be read`, { cause });
  }
  const lines = handle.readLines()[Symbol.asyncIterator]();
  const close = async () => {
    await lines.return?.();
    await handle.close().catch(() => undefined);
  };
  try {
    const first = await lines.next();
    const head = headSchema.safeParse(parseJson(first.done === true ? "" : first.value));
    if (!head.success) {
      throw new KitError(`${file} exists, and is no archive of settlements`, {
        hints: ["Nothing was changed. Name a file that does not exist yet."],
      });
    }
    return { before: Date.parse(head.data.before), rows: readRows(file, lines), close };
  } catch (cause) {
    await close();
    if (cause instanceof KitError) throw cause;
    // A folder can be opened, and not be read.
    throw new KitError(`The archive ${file} could not be read`, { cause });
  }
}

async function* readRows(file: string, lines: AsyncIterator<string>): AsyncGenerator<ArchivedRow> {
  for (let number = 2; ; number++) {
    const { done, value } = await lines.next();
    if (done === true) return;
    const line = lineSchema.safeParse(parseJson(value));
    if (!line.success) {
      throw new KitError(`Line ${number} of the archive ${file} cannot be read`, {
        hints: ["What it and the lines behind it hold was left in the ledger."],
      });
    }
    const { kind } = line.data;
    const key = kind === "settlement" ? line.data.row.id : line.data.row.hash;
    // The row as it was written, since the order of its columns counts.
    yield { kind, key, serialized: value.slice(rowStart(kind).length, -1) };
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
