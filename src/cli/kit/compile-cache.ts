// Not by name: a Node that is too old for them says which one is needed.
import node from "node:module";
import { KitError } from "../../util/errors.ts";
import { isPrivateFolder, openPrivateCacheFolder } from "../../util/private-folder.ts";

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
