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
 * Reads a text file up to a limit: a file named by mistake may have any size, and a device never ends.
 *
 * @param what the kind of file with its article, such as `a header`
 * @throws {KitError} if it cannot be read or is longer than `most` bytes
 */
export async function readInputFile(
  file: string,
  { most, what }: { most: number; what: string },
): Promise<string> {
  try {
    // `end` is inclusive, so this reads one byte more than the limit.
    return await readText(createReadStream(file, { end: most }), { most, what, name: file });
  } catch (cause) {
    if (cause instanceof KitError) throw cause;
    throw new KitError(`${file} cannot be read`, { cause });
  }
}

/**
 * Reads text from a stream, and stops if it exceeds the limit.
 *
 * @param name the stream's name for the error
 * @throws {KitError} if it is longer than `most` bytes
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
 * Requires that files can be written, before the work whose result goes there.
 *
 * @param files the files by the options that name them, without dashes
 * @throws {ConfigurationError} with each file that cannot be written
 */
export function requireWritable(files: Readonly<Record<string, string | undefined>>): void {
  const problems = Object.entries(files).flatMap(([option, file]): ConfigurationProblem[] => {
    const problem = file === undefined ? undefined : whyNotWritable(file);
    return problem === undefined ? [] : [{ name: `--${option}`, problem }];
  });
  if (problems.length > 0) throw new ConfigurationError(problems);
}

/**
 * Writes the result of a command to a file, if one is named.
 *
 * @throws {KitError} if it cannot be written
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
    // For example, the name is too long, or the folder may not be accessed.
    return `${file} cannot be written`;
  }
}

/** A file to write, with its path in the folder. */
export type File = { path: string; text: string };

/** The result for a file: `new` if it was not there, otherwise whether the existing text is the `same`. */
export type Written = File & { is: "new" | "same" | "other" };

const root = packageFile("");
const isInstalled = root.split(sep).includes("node_modules");
/** The command that installs this package, and the specifier to install. */
export const npmInstall = isInstalled
  ? "npm install"
  : // A link to the checkout would bring in a second vitest.
    "npm install --install-links";
export const kitSpecifier = isInstalled
  ? (installedFile() ?? "x402-facilitator-kit")
  : `file:${root.replace(/[\\/]$/, "")}`;

/** The file that npm installed this package from, as a specifier; undefined if it came from a registry. */
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

/** The files in a folder of `templates`. Their manifests name the copy that runs here, unless it came from a registry. */
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
 * Writes the files that do not exist yet; never overwrites one.
 *
 * @param isDry if true, only finds out what would be written
 * @throws {KitError} if a file cannot be written
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

/** Undefined for a folder, and for a file that may not be read. */
function readTextOf(at: string): string | undefined {
  try {
    return readFileSync(at, "utf8");
  } catch {
    return undefined;
  }
}

/** Writes a new file; fails if it was created in the meantime. */
function write(folder: string, { path, text }: File): void {
  const at = join(folder, path);
  try {
    makeFolders(dirname(at));
    // `.env` contains keys, and its reader warns if other users can read it.
    const mode = basename(at) === ".env" ? ownerOnly : 0o666;
    writeFileSync(at, text, { flag: "wx", mode });
  } catch (cause) {
    throw new KitError(`${at} cannot be written`, {
      cause,
      hints: ["What was written before it is left; this command goes on from there when it is called again."],
    });
  }
}

/** Creates a folder and its parents. Node's own recursive mode never returns if a file system refuses with ENOENT (/proc). */
export function makeFolders(path: string, mode?: number): void {
  if (existsSync(path)) return;
  makeFolders(dirname(path), mode);
  try {
    mkdirSync(path, mode);
  } catch (error) {
    // Another process may have created it first.
    if (!existsSync(path)) throw error;
  }
}

/** One line per file. */
export function describeFiles(files: readonly Written[], isDry: boolean): string {
  const told = {
    new: isDry ? "would be written" : "written",
    same: "is there already",
    other: "is there already, with another text, and stays as it is",
  };
  return renderRows(files.map(({ path, is }) => [path, told[is]]));
}

/** The advice if the configuration of `serve` is incomplete. */
export function adviseOnSetUp(): string {
  const guide = "docs/guides/operators.md";
  return `How it is set up, step by step: ${shownPackageFile(guide) ?? guide}; the contract is deployed by ${self} deploy`;
}

/** The shell command that enters a folder, as a prefix of a line; empty for the current folder. */
export function entering(folder: string): string {
  return folder === "." ? "" : `cd ${inShell(folder)} && `;
}
