import {
  accessSync,
  constants,
  createReadStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import type { Readable } from "node:stream";
import { ConfigurationError, type ConfigurationProblem, KitError } from "../../util/errors.ts";
import { membersOf, parseJson } from "../../util/json.ts";
import { inShell, packageFile, self, shownPackageFile } from "../../util/self-command.ts";
import { renderRows } from "../../util/text.ts";

const mebibyte = 1_048_576;

/**
 * Reads a text file, and no more of it than it may hold: a file that is named by mistake may be of any size, and a device
 * never ends.
 *
 * @param what what such a file is, with its article: `a header`
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

/**
 * Requires that files can be written, before the work whose outcome goes there.
 *
 * @param files by the options that name them, without dashes
 * @throws {ConfigurationError} with each file that cannot be
 */
export function requireWritable(files: Readonly<Record<string, string | undefined>>): void {
  const problems = Object.entries(files).flatMap(([option, file]): ConfigurationProblem[] => {
    const problem = file === undefined ? undefined : whyNotWritable(file);
    return problem === undefined ? [] : [{ name: `--${option}`, problem }];
  });
  if (problems.length > 0) throw new ConfigurationError(problems);
}

/**
 * Writes the outcome of a command to a file, where one is named.
 *
 * @throws {KitError} when it cannot be written
 */
export async function writeOutput(file: string | undefined, render: () => string): Promise<void> {
  if (file === undefined) return;
  await orExplain(file, () => writeFile(file, render()));
}

const ownerOnly = 0o600;

async function orExplain(file: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (cause) {
    throw new KitError(`${file} could not be written`, { cause });
  }
}

function whyNotWritable(file: string): string | undefined {
  const folder = dirname(file);
  try {
    if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) {
      return `there is no folder ${folder}`;
    }
    const found = statSync(file, { throwIfNoEntry: false });
    if (found?.isDirectory() === true) return `${file} is a folder`;
    accessSync(found === undefined ? folder : file, constants.W_OK);
    return undefined;
  } catch {
    // Also a name that is too long, and a folder that may not be looked into.
    return `${file} cannot be written`;
  }
}

/** A file to write, by its path in the folder. */
export type File = { path: string; text: string };

/** The fate of a file: written, or there before, with the same text or another. */
export type Written = File & { is: "new" | "same" | "other" };

const root = packageFile("");
const isInstalled = root.split(sep).includes("node_modules");
/** How npm installs this package, and by which name. */
export const npmInstall = isInstalled
  ? "npm install"
  : // A link to the checkout would bring a second vitest along.
    "npm install --install-links";
export const kitSpecifier = isInstalled
  ? (installedFile() ?? "x402-facilitator-kit")
  : `file:${root.replace(/[\\/]$/, "")}`;

/** The file that npm has installed this package from, as a specifier; undefined if it came from a registry. */
function installedFile(): string | undefined {
  const project = join(root, "../..");
  const manifest = membersOf(parseJson(readTextOf(join(project, "package.json")) ?? ""));
  for (const field of ["devDependencies", "dependencies"]) {
    const specifier = membersOf(manifest[field])["x402-facilitator-kit"];
    const [, file] = /^file:(.+)/.exec(`${specifier}`) ?? [];
    if (file !== undefined) return `file:${resolve(project, file)}`;
  }
  return undefined;
}

/** The files of a folder of `templates`. Their manifests name the package that runs here, if no registry has it. */
export function readTemplates(folder: string): File[] {
  const at = packageFile(`templates/${folder}`);
  return readdirSync(at, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => {
      const file = join(parentPath, name);
      const text = readFileSync(file, "utf8");
      const isOwn = name === "package.json" && kitSpecifier.startsWith("file:");
      return {
        path: relative(at, file).replaceAll(sep, "/"),
        text: isOwn
          ? text.replace(/("x402-facilitator-kit": )"[^"]*"/, `$1${JSON.stringify(kitSpecifier)}`)
          : text,
      };
    });
}

/**
 * Writes the files that are not there yet, and never over another.
 *
 * @param isDry writes nothing, and finds out what would be written
 * @throws {KitError} when a file cannot be written
 */
export function writeFiles(folder: string, files: readonly File[], isDry: boolean): readonly Written[] {
  const compared = files.map((file) => compare(folder, file));
  if (!isDry) for (const file of compared.filter(({ is }) => is === "new")) write(folder, file);
  return compared;
}

function compare(folder: string, file: File): Written {
  const at = join(folder, file.path);
  if (!existsSync(at)) return { ...file, is: "new" };
  return { ...file, is: readTextOf(at) === file.text ? "same" : "other" };
}

/** Undefined of a folder, and of what may not be read. */
function readTextOf(at: string): string | undefined {
  try {
    return readFileSync(at, "utf8");
  } catch {
    return undefined;
  }
}

/** Never over a file that has come since. */
function write(folder: string, { path, text }: File): void {
  const at = join(folder, path);
  try {
    makeFolders(dirname(at));
    // Keys are in it: whoever reads it is warned where others can.
    const mode = basename(at) === ".env" ? ownerOnly : 0o666;
    writeFileSync(at, text, { flag: "wx", mode });
  } catch (cause) {
    throw new KitError(`${at} cannot be written`, {
      cause,
      hints: ["What was written before it is left; this command goes on from there when it is called again."],
    });
  }
}

/** Makes a folder, and those that it is in. Of itself Node never ends where a system refuses that as /proc does: with ENOENT. */
export function makeFolders(path: string, mode?: number): void {
  if (existsSync(path)) return;
  makeFolders(dirname(path), mode);
  try {
    mkdirSync(path, mode);
  } catch (error) {
    // Another process may have been quicker.
    if (!existsSync(path)) throw error;
  }
}

/** A line for each file. */
export function describeFiles(files: readonly Written[], isDry: boolean): string {
  const told = {
    new: isDry ? "would be written" : "written",
    same: "is there already",
    other: "is there already, with another text, and stays as it is",
  };
  return renderRows(files.map(({ path, is }) => [path, told[is]]));
}

/** The advice if the configuration of `serve` lacks something. */
export function adviseOnSetUp(): string {
  const guide = "docs/guides/operators.md";
  return `How it is set up, step by step: ${shownPackageFile(guide) ?? guide}; the contract is deployed by ${self} deploy`;
}

/** How a shell enters a folder, before what else is on the line; nothing for the folder in which it is. */
export function entering(folder: string): string {
  return folder === "." ? "" : `cd ${inShell(folder)} && `;
}
