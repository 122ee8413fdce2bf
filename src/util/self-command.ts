import { existsSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { KitError } from "./errors.ts";
import { membersOf } from "./json.ts";

const {
  npm_lifecycle_event: npmEvent = "",
  npm_lifecycle_script: npmScript = "",
  npm_package_name: npmPackage,
  INIT_CWD: callersFolder,
} = process.env;

/** True if npm runs this command as a script of the checkout: `npm start`, or `npm run x402-kit`. */
const isScriptOfCheckout = ["start", "x402-kit"].includes(npmEvent) && npmPackage === "x402-facilitator-kit";

/**
 * True if npm runs only this command: by `npx`, by a script of the checkout, or by a script of the user such as
 * `"serve": "x402-kit serve"`. Not if the script leaves it running in the background.
 */
export const isRunByNpm =
  isScriptOfCheckout || npmEvent === "npx" || (/\bx402-kit\b/.test(npmScript) && !npmScript.includes("&"));

const rootFolder = () => resolve(packageFile(""));

/** Set this on the day of publication, and follow docs/publishing.md: until then npm has no package of this name. */
export const isPublished: boolean = false;

/** The words of the command that starts this program again from the caller's folder. */
export const selfWords: readonly string[] = isScriptOfCheckout
  ? ["npm", ...prefixOption(), "run", "-s", "x402-kit", "--"]
  : commandOf(process.argv[1]);

/** {@link selfWords} as a command line. */
export const self = selfWords.map(inShell).join(" ");

/**
 * The command for a program that was started from `file`, the second word of its command line. `npx --no-install` runs
 * an installed package and never downloads one.
 */
export function commandOf(file = ""): string[] {
  const isInstalled = /[\\/]node_modules[\\/]/.test(file);
  if (!isInstalled && basename(file) === "x402-kit") return ["x402-kit"];
  if (!isInstalled && /[\\/]cli[\\/]bin\.[jt]s$/.test(file)) return ["node", fromWorkingDirectory(file)];
  return isPublished ? ["npx", "x402-facilitator-kit"] : ["npx", "--no-install", "x402-kit"];
}

/** The options by which npm finds the checkout from the user's folder. */
function prefixOption(): string[] {
  const root = rootFolder();
  return callersFolder === undefined || callersFolder === root ? [] : ["--prefix", root];
}

/**
 * Changes back to the user's folder: npm runs a script of the checkout in the checkout, even for `npm --prefix ../kit run …`.
 */
export function enterCallersFolder(): void {
  if (isScriptOfCheckout && callersFolder !== undefined && process.cwd() === rootFolder())
    process.chdir(callersFolder);
}

export function isPackageFolder(folder: string): boolean {
  const found = statSync(folder, { bigint: true, throwIfNoEntry: false });
  const own = statSync(rootFolder(), { bigint: true });
  return found?.ino === own.ino && found.dev === own.dev;
}

/** A path as a word of a shell command. */
export function inShell(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : JSON.stringify(path);
}

/** The absolute path of a file in this package. The code is two folders deep, compiled or not. */
export function packageFile(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url));
}

/**
 * The path of such a file as shown to the user: relative if it is below the working directory, otherwise absolute.
 * Undefined if it does not exist, as when the code was bundled into another program.
 */
export function shownPackageFile(path: string): string | undefined {
  const file = packageFile(path);
  return existsSync(file) ? fromWorkingDirectory(file) : undefined;
}

/** The shorter form of an absolute path: relative if the file is below the working directory. */
function fromWorkingDirectory(file: string): string {
  try {
    const near = relative(process.cwd(), file);
    return near.startsWith("..") ? file : near;
  } catch {
    // The working directory was removed.
    return file;
  }
}

/** The version of this package, from its manifest. */
export function kitVersion(): string {
  const manifest: unknown = createRequire(import.meta.url)("../../package.json");
  return String(membersOf(manifest).version ?? "unknown");
}

/**
 * Checks the version of Node, before an older one fails for a missing feature.
 *
 * @throws {KitError} below Node 22.18
 */
export function requireNode(version = process.versions.node): void {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major > 22 || (major === 22 && minor >= 18)) return;
  throw new KitError(`x402-facilitator-kit needs Node 22.18 or newer, and this is ${version}`, {
    hints: ["The npm package `node` brings one for npm scripts: npm install --save-dev node@24"],
  });
}
