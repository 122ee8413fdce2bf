import { existsSync, readFileSync, statSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { z } from "zod";
import { KitError } from "../../util/errors.ts";
import { parseJson } from "../../util/json.ts";
import { unpack } from "../../util/unpack.ts";
import type { SavedHarness, StartOptions } from "./running-harness.ts";

/** The settings that a saved state is bound to. */
type Setting = Pick<StartOptions, "networks" | "facilitatorContracts" | "assets">;

const row = z.record(z.string(), z.union([z.string(), z.number(), z.null()]));

const fileSchema = z.object({
  version: z.literal(1),
  setting: z.record(z.string(), z.string()),
  chains: z.record(z.string(), z.object({ state: z.string(), ahead: z.int().nonnegative() })),
  rows: z.record(z.string(), z.array(row)),
});

/** Ten thousand years. Nodes take longer times for milliseconds. */
const mostAhead = 300_000_000_000;

/**
 * The file of `up --state`: chains and ledger of one run, for the next.
 *
 * @throws {KitError} when it is none, is implausibly large unpacked, or was saved of other networks, contracts or tokens;
 *   from `save`, when the file cannot be written, or another process has written it meanwhile
 */
export function openStateFile(path: string, options: Setting): NonNullable<StartOptions["state"]> {
  const setting = settingOf(options);
  const opened = stampOf(path);
  return {
    saved: readState(path, setting),
    async save({ chains, rows }) {
      const text = JSON.stringify({ version: 1, setting, chains, rows });
      const bytes = await promisify(gzip)(text);
      try {
        // The old one stays whole until the new one is.
        await writeFile(`${path}.new`, bytes);
        requireUnchanged(path, opened);
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
    },
  };
}

/** A text that differs between versions of a file; undefined if it does not exist. */
function stampOf(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `${found.ino} ${found.mtimeNs} ${found.size}`;
}

/** @throws {KitError} when the file is another one than at the start, such as that of a second `up` */
function requireUnchanged(path: string, opened: string | undefined): void {
  const now = stampOf(path);
  if (now === undefined || now === opened) return;
  throw new KitError(`${path} was written by another process since this one started, and is left as it is`, {
    hints: [
      `The state of this one is in ${path}.new. Give each \`up\` that runs at the same time its own file.`,
    ],
  });
}

function readState(path: string, setting: Record<string, string>): SavedHarness | undefined {
  if (!existsSync(path)) return undefined;
  const file = { path, bytes: statSync(path).size };
  const value = parseJson(unpackIfWhole(() => readFileSync(path), file)?.toString() ?? "");
  const version: unknown = Reflect.get(Object(value), "version");
  if (typeof version === "number" && version > 1) {
    throw new KitError(`${path} is of format ${version}; this x402-kit reads 1`, {
      hints: ["Use the version of x402-facilitator-kit that saved it, or a newer one."],
    });
  }
  const { data } = fileSchema.safeParse(value);
  if (data === undefined) {
    throw new KitError(`${path} is no state that \`up --state\` has saved`, {
      hints: ["Name a file that does not exist yet, or move this one away."],
    });
  }
  // The nodes unpack these, without a limit.
  for (const { state } of Object.values(data.chains))
    unpackIfWhole(() => Buffer.from(state.slice(2), "hex"), file);
  for (const [network, { ahead }] of Object.entries(data.chains)) {
    if (ahead <= mostAhead) continue;
    throw new KitError(`${path} is damaged: its ${network} chain is ${ahead} seconds ahead of the clock`, {
      hints: [`More than ${mostAhead} is not plausible. Move the file away to start from the beginning.`],
    });
  }
  const names = [...new Set([...Object.keys(data.setting), ...Object.keys(setting)])];
  const others = names.filter((name) => data.setting[name] !== setting[name]);
  if (others.length === 0) return data;
  throw new KitError(`${path} was saved with other settings`, {
    hints: others.map(
      (name) =>
        `${name}: ${data.setting[name] ?? "not started"} there, ${setting[name] ?? "not started"} now`,
    ),
  });
}

/** The unpacked contents; undefined if they are unreadable or damaged, which the reader then reports. */
function unpackIfWhole(read: () => Uint8Array, file: { path: string; bytes: number }): Buffer | undefined {
  try {
    return unpack(read(), file);
  } catch (error) {
    if (error instanceof KitError) throw error;
    return undefined;
  }
}

/** By network, where contract and token stand. */
function settingOf({ networks, facilitatorContracts, assets = {} }: Setting): Record<string, string> {
  const { mainnet, testnet } = facilitatorContracts;
  return Object.fromEntries(
    networks.map((name) => [
      name,
      [`contracts ${mainnet} and ${testnet}`, assets[name] && `token ${assets[name].address}`]
        .filter((part) => part !== undefined)
        .join(", "),
    ]),
  );
}
