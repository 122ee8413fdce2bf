// Not by name: a Node that is too old for them says which one is needed.

import { lstatSync, realpathSync, type Stats } from "node:fs";
import node from "node:module";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { KitError } from "../../util/errors.ts";
import { makeFolders } from "./files.ts";

/*
 * Node runs what it finds in its compile cache as it is, so whoever can write there has their code run here. Node's own
 * place for it is below /tmp, where any user of the machine may have created it first.
 */

/**
 * Has Node keep what it compiles, in a folder of this user alone; where there is none, nothing is kept. A folder that
 * NODE_COMPILE_CACHE names stays in use.
 */
export function useCompileCache(env: NodeJS.ProcessEnv): void {
  if (node.getCompileCacheDir() !== undefined) return;
  const folder = openPrivateCacheFolder(env);
  if (folder !== undefined) node.enableCompileCache(folder);
}

/**
 * Checks the folder of NODE_COMPILE_CACHE, which Node uses from its start, before any code of this package.
 *
 * @throws KitError when others may write to it
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

/** Permission to write for the group or for everybody. */
const writableByOthers = 0o022;
const anyAccessOfOthers = 0o077;
/** In a folder with it, such as /tmp, others cannot rename or remove what is not theirs. */
const sticky = 0o1000;
const root = 0;

/** Where a user's caches are: on Linux by the XDG specification, which asks for an absolute path. */
function cacheHome(env: NodeJS.ProcessEnv): string {
  const { XDG_CACHE_HOME = "", LOCALAPPDATA = "" } = env;
  if (process.platform === "win32") return LOCALAPPDATA;
  if (isAbsolute(XDG_CACHE_HOME)) return XDG_CACHE_HOME;
  return join(homedir(), process.platform === "darwin" ? "Library/Caches" : ".cache");
}

/**
 * The folder of this package below the caches of the user, which is created if it is missing, with links resolved.
 *
 * @returns undefined where nobody but the user can be sure of it: it cannot be created, is a link, belongs to somebody
 * else, or others may write to it or replace it
 */
export function openPrivateCacheFolder(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const home = cacheHome(env);
  if (!isAbsolute(home)) return undefined;
  const folder = join(home, "x402-kit");
  try {
    makeFolders(folder, 0o700);
    const stats = lstatSync(folder);
    // A link is no directory here.
    if (!stats.isDirectory() || !isOwn(stats) || isWritableByOthers(stats)) return undefined;
    return isPrivateFolder(folder) ? realpathSync(folder) : undefined;
  } catch {
    // It cannot be created, or a file has its name.
    return undefined;
  }
}

/**
 * Returns true if no other user but root can put anything in a folder, or another in its place. On Windows always, since
 * the folders of a user are not accessible to others there.
 *
 * @throws Error when there is no such folder
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
    // Nobody else reaches what is below.
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
