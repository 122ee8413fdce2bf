import { existsSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { KitError } from "./errors.ts";
import { membersOf } from "./json.ts";

const {
  npm_lifecycle_event: npmEvent = "",
  npm_lifecycle_script: npmScript = "",
  npm_package_name: npmPackage,
  INIT_CWD: callersFolder,
} = process.env;

/** Whether npm runs this command as a script of the checkout: `npm start`, or `npm run x402-kit`. */
const isScriptOfCheckout = ["start", "x402-kit"].includes(npmEvent) && npmPackage === "x402-facilitator-kit";

/**
 * Whether npm runs this command and nothing else: by `npx`, by a script of the checkout, or by one of the user's own,
 * `"serve": "x402-kit serve"`. Not by a script that leaves it running in the background.
 */
export const isRunByNpm =
  isScriptOfCheckout || npmEvent === "npx" || (/\bx402-kit\b/.test(npmScript) && !npmScript.includes("&"));

/** The folder of this package. */
const rootFolder = () => resolve(packageFile(""));

/**
 * How this command is called again from where it was called. In a checkout `npx x402-facilitator-kit` would first install the
 * checkout somewhere, for half a minute.
 */
export const self = isScriptOfCheckout
  ? `npm ${prefixOption()}run -s x402-kit --`
  : "npx x402-facilitator-kit";

/** With which npm finds the checkout from where the user is. */
function prefixOption(): string {
  const root = rootFolder();
  return callersFolder === undefined || callersFolder === root ? "" : `--prefix ${inShell(root)} `;
}

/** Goes back to where the user is: npm runs a script of the checkout in the checkout, also for `npm --prefix ../kit run …`. */
export function enterCallersFolder(): void {
  if (isScriptOfCheckout && callersFolder !== undefined && process.cwd() === rootFolder())
    process.chdir(callersFolder);
}

/** Whether it is the folder of this package. */
export function isPackageFolder(folder: string): boolean {
  const found = statSync(folder, { bigint: true, throwIfNoEntry: false });
  const own = statSync(rootFolder(), { bigint: true });
  return found?.ino === own.ino && found.dev === own.dev;
}

/** A path as a word of a command line. */
export function inShell(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : JSON.stringify(path);
}

/** Where a file of this package is, by its path in it; the code stands two folders deep, compiled and not. */
export function packageFile(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url));
}

/**
 * How such a file is named from the working directory, for who is to read it: whole where it is not below that. Undefined where it
 * is not there, as where the code was bundled into another program.
 */
export function shownPackageFile(path: string): string | undefined {
  const file = packageFile(path);
  if (!existsSync(file)) return undefined;
  try {
    const near = relative(process.cwd(), file);
    return near.startsWith("..") ? file : near;
  } catch {
    // The working directory was removed.
    return file;
  }
}

/** The version of this package, as its manifest says. */
export function kitVersion(): string {
  const manifest: unknown = createRequire(import.meta.url)("../../package.json");
  return String(membersOf(manifest).version ?? "unknown");
}

/**
 * Says which Node is needed, before something is missing from an older one.
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
