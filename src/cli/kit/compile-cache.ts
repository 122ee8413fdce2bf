// No named imports from `node:module`: an older Node that lacks them must still be able to say which version is needed.

import { lstatSync, realpathSync, type Stats } from "node:fs";
import node from "node:module";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { KitError } from "../../util/errors.ts";
import { makeFolders } from "./files.ts";

/*
 * Node runs whatever it finds in its compile cache, so anyone who can write there runs code in this process. Node's
 * default cache is below /tmp, where any user of the machine may have created it first.
 */

/**
 * Enables Node's compile cache in a folder that belongs to this user alone; without such a folder, nothing is cached. A
 * folder named by NODE_COMPILE_CACHE stays in use.
 */
export function useCompileCache(env: NodeJS.ProcessEnv): void {
  if (node.getCompileCacheDir() !== undefined) return;
  const folder = openPrivateCacheFolder(env);
  if (folder !== undefined) node.enableCompileCache(folder);
}

/**
 * Checks the folder of NODE_COMPILE_CACHE, which Node uses from its start, before any code of this package runs.
 *
 * @throws KitError if others may write to it
 */
export function requirePrivateCompileCache(): void {
  const folder = node.getCompileCacheDir();
  if (folder === undefined || isPrivateFolder(folder)) return;
  throw new KitError(
    `NODE_COMPILE_CACHE makes Node run code from ${folder}, which other users of this machine can replace`,
    {
      hints: [
        "This command may use private keys: unset NODE_COMPILE_CACHE, or set it to a folder of mode 0700",
      ],
    },
  );
}

/** Write permission for the group or for everyone. */
const writableByOthers = 0o022;
const anyAccessOfOthers = 0o077;
/** In a folder with this bit, such as /tmp, users cannot rename or remove files of others. */
const sticky = 0o1000;
const root = 0;

/** The user's cache folder. On Linux it follows the XDG specification, which requires an absolute path. */
function cacheHome(env: NodeJS.ProcessEnv): string {
  const { XDG_CACHE_HOME = "", LOCALAPPDATA = "" } = env;
  if (process.platform === "win32") return LOCALAPPDATA;
  if (isAbsolute(XDG_CACHE_HOME)) return XDG_CACHE_HOME;
  return join(homedir(), process.platform === "darwin" ? "Library/Caches" : ".cache");
}

/**
 * This package's folder in the user's cache folder, with links resolved. It is created if missing.
 *
 * @returns undefined if the folder is not safely the user's own: it cannot be created, is a link, belongs to another
 * user, or others may write to it or replace it
 */
export function openPrivateCacheFolder(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const home = cacheHome(env);
  if (!isAbsolute(home)) return undefined;
  const folder = join(home, "x402-kit");
  try {
    makeFolders(folder, 0o700);
    const stats = lstatSync(folder);
    // For `lstat`, a link is not a directory.
    if (!stats.isDirectory() || !isOwn(stats) || isWritableByOthers(stats)) return undefined;
    return isPrivateFolder(folder) ? realpathSync(folder) : undefined;
  } catch {
    // It cannot be created, or a file has its name.
    return undefined;
  }
}

/**
 * Returns true if no other user but root can write to a folder or replace it. Always true on Windows, where other users
 * cannot access a user's folders.
 *
 * @throws Error if there is no such folder
 */
export function isPrivateFolder(path: string): boolean {
  if (process.getuid === undefined) return true;
  const chain = [realpathSync(path)];
  for (let at = chain[0] ?? ""; dirname(at) !== at; at = dirname(at)) chain.unshift(dirname(at));
  for (const [index, folder] of chain.entries()) {
    const stats = lstatSync(folder);
    if (!isOwn(stats) && stats.uid !== root) return false;
    const holdsOnlyOwn = index < chain.length - 1 && (stats.mode & sticky) !== 0;
    if (isWritableByOthers(stats) && !holdsOnlyOwn) return false;
    // Others cannot reach anything below this folder.
    if (isOwn(stats) && (stats.mode & anyAccessOfOthers) === 0) return true;
  }
  return true;
}

function isOwn({ uid }: Stats): boolean {
  return process.getuid === undefined || uid === process.getuid();
}

function isWritableByOthers({ mode }: Stats): boolean {
  return process.getuid !== undefined && (mode & writableByOthers) !== 0;
}
