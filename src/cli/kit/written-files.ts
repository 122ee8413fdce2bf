import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { KitError } from "../../util/errors.ts";
import { packageFile } from "../../util/self-command.ts";
import { renderRows } from "../../util/text.ts";

/** A file to write, by its path in the folder. */
export type File = { path: string; text: string };

/** What has come of a file: written, or there before, with the same text or another. */
export type Written = File & { is: "new" | "same" | "other" };

const root = packageFile("");
const isInstalled = root.split(sep).includes("node_modules");
/** How npm installs this package, and by which name. */
export const npmInstall = isInstalled
  ? "npm install"
  : // A link to the checkout would bring a second vitest along.
    "npm install --install-links";
export const kitSpecifier = isInstalled ? "x402-facilitator-kit" : `file:${root.replace(/[\\/]$/, "")}`;

/** The files of a folder of `templates`. Of a checkout, their manifests name the package that runs here. */
export function readTemplates(folder: string): File[] {
  const at = packageFile(`templates/${folder}`);
  return readdirSync(at, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => {
      const file = join(parentPath, name);
      const text = readFileSync(file, "utf8");
      const isOwn = name === "package.json" && !isInstalled;
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
    mkdirSync(dirname(at), { recursive: true });
    writeFileSync(at, text, { flag: "wx" });
  } catch (cause) {
    throw new KitError(`${at} cannot be written`, {
      cause,
      hints: ["What was written before it is left; this command goes on from there when it is called again."],
    });
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

/** How a shell enters a folder, before what else is on the line; nothing for the folder in which it is. */
export function entering(folder: string): string {
  return folder === "." ? "" : `cd ${/^[\w./-]+$/.test(folder) ? folder : JSON.stringify(folder)} && `;
}
