import { readFileSync, statSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { KitError } from "../../util/errors.ts";
import { parseJson } from "../../util/json.ts";
import { mostUnpacked, unpack } from "../../util/unpack.ts";
import type { StartOptions } from "./running-harness.ts";
import { type Session, sessionSchema } from "./session.ts";
import { placesOf } from "./session-settings.ts";

/** About ten thousand years, in seconds. Nodes interpret larger times as milliseconds. */
const mostAhead = 300_000_000_000;

/** The maximum number of values in a session. A payment has about 70, and a value takes up to 300 bytes of memory. */
const mostValues = 5_000_000;

/**
 * Opens the file of `up --state`, which carries the session of one run over to the next.
 *
 * @throws {KitError} if it is not a state file, or is implausibly large; from `save`, if the file cannot be written, or
 *   another process has written it meanwhile
 */
export function openStateFile(path: string): NonNullable<StartOptions["state"]> {
  const opened = stampOf(path);
  return {
    saved: readState(path),
    save: (session) => writeState(path, session, () => requireUnchanged(path, opened)),
  };
}

/**
 * Writes a session to a file that only its owner may read, because it contains payers' signatures. The old file stays intact
 * until the new one is complete.
 *
 * @param check checks the old file just before it is replaced; throws to keep it
 * @throws {KitError} if it cannot be written
 */
export async function writeState(path: string, session: Session, check = () => {}): Promise<void> {
  const text = Buffer.from(JSON.stringify(session));
  if (countValues(text) > mostValues) {
    throw new KitError(`The session is too large for ${path}: it has more than ${mostValues} values`, {
      hints: ["Reset the harness now and then. What was saved before is as it was."],
    });
  }
  const bytes = await promisify(gzip)(text);
  try {
    await writeFile(`${path}.new`, bytes, { mode: 0o600 });
    check();
    await rename(`${path}.new`, path);
  } catch (cause) {
    if (cause instanceof KitError) throw cause;
    throw new KitError(`${path} could not be written`, {
      cause,
      hints: [
        "Its folder must be there, with room, and may be written to. What was saved before is as it was.",
      ],
    });
  }
}

/** A text that differs between versions of a file; undefined if it does not exist. */
function stampOf(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `${found.ino} ${found.mtimeNs} ${found.size}`;
}

/** @throws {KitError} if the file has changed since the start, for instance because a second `up` wrote it */
function requireUnchanged(path: string, opened: string | undefined): void {
  const now = stampOf(path);
  if (now === undefined || now === opened) return;
  throw new KitError(`${path} was written by another process since this one started, and is left as it is`, {
    hints: [
      `The state of this one is in ${path}.new. Give each \`up\` that runs at the same time its own file.`,
    ],
  });
}

function readState(path: string): Session | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  const file = { path, bytes: found.size };
  const noState = () =>
    new KitError(`${path} is no state that \`up --state\` has saved`, {
      hints: ["Name a file that does not exist yet, or move this one away."],
    });
  // Reading a device might never end.
  if (!found.isFile()) throw noState();
  if (file.bytes > mostUnpacked) throw tooLarge(path, `${mostUnpacked >> 20} MiB`);
  const unpacked = unpackIfWhole(() => readFileSync(path), file);
  if (unpacked !== undefined && countValues(unpacked) > mostValues) {
    throw tooLarge(path, `${mostValues} values`);
  }
  const value = parseJson(unpacked?.toString() ?? "");
  const version: unknown = Reflect.get(Object(value), "version");
  if (typeof version === "number" && version > 1) {
    throw new KitError(`${path} is of format ${version}; this x402-kit reads 1`, {
      hints: ["Use the version of x402-facilitator-kit that saved it, or a newer one."],
    });
  }
  const data = readSession(value);
  if (data === undefined) throw noState();
  // Checked here, because the nodes unpack these without a limit.
  for (const { state } of Object.values(data.chains))
    unpackIfWhole(() => Buffer.from(state.slice(2), "hex"), file);
  for (const [network, { ahead }] of Object.entries(data.chains)) {
    if (ahead <= mostAhead) continue;
    throw new KitError(`${path} is damaged: its ${network} chain is ${ahead} seconds ahead of the clock`, {
      hints: [`More than ${mostAhead} is not plausible. Move the file away to start from the beginning.`],
    });
  }
  return data;
}

function readSession(value: unknown): Session | undefined {
  try {
    return sessionSchema.safeParse(value).data;
  } catch (error) {
    // There are more problems than zod can list.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function tooLarge(path: string, most: string): KitError {
  return new KitError(`${path} holds more than ${most}`, {
    hints: ["No session has so much that x402-kit has saved: do not use it."],
  });
}

/** Counts the commas and opening brackets of a JSON text. Each of its values but the first follows one. */
function countValues(text: Uint8Array): number {
  let count = 0;
  for (const byte of text) if (byte === comma || byte === bracket || byte === brace) count++;
  return count;
}

const [comma, bracket, brace] = Buffer.from(",[{");

/**
 * Requires that a session has the same networks, contracts and tokens.
 *
 * @throws {KitError} listing those that differ
 */
export function requireSamePlaces(
  path: string,
  { setting }: Session,
  options: Parameters<typeof placesOf>[0],
): void {
  const now = placesOf(options);
  const names = [...new Set([...Object.keys(setting), ...Object.keys(now)])];
  const others = names.filter((name) => setting[name] !== now[name]);
  if (others.length === 0) return;
  throw new KitError(`${path} was saved with other settings`, {
    hints: others.map(
      (name) => `${name}: ${setting[name] ?? "not started"} there, ${now[name] ?? "not started"} now`,
    ),
  });
}

/**
 * Returns the unpacked contents; undefined if they are unreadable or damaged.
 *
 * @throws {KitError} if they are too large
 */
function unpackIfWhole(read: () => Uint8Array, file: { path: string; bytes: number }): Buffer | undefined {
  try {
    return unpack(read(), file);
  } catch (error) {
    if (error instanceof KitError) throw error;
    return undefined;
  }
}
