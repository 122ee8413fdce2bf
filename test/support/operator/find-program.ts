import { accessSync, constants, globSync, realpathSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Folders for servers from packages, which are not on everyone's PATH. */
const packageFolders = ["/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"];

/** The path of a program on this machine, with links followed; undefined if it is not installed. */
export function findProgram(name: string): string | undefined {
  const onPath = (process.env.PATH ?? "").split(delimiter).filter(Boolean);
  const newestFirst = globSync("/usr/lib/postgresql/*/bin").sort().reverse();
  return [...onPath, ...packageFolders, ...newestFirst].flatMap((folder) => runnable(join(folder, name)))[0];
}

function runnable(file: string): string[] {
  try {
    accessSync(file, constants.X_OK);
    return [realpathSync(file)];
  } catch {
    return [];
  }
}
