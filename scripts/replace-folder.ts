import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";

/**
 * Makes a folder anew. It is filled beside the old one and takes its place when it is whole: a run that fails or is
 * interrupted leaves the old one as it was, and what reads it meanwhile reads it whole.
 */
export async function replaceFolder(folder: string, fill: (made: string) => Promise<void>): Promise<void> {
  const [made, old] = [`${folder}-new`, `${folder}-old`];
  // Leftovers of an interrupted run.
  for (const left of [made, old]) rmSync(left, { recursive: true, force: true });
  mkdirSync(made);
  try {
    await fill(made);
  } catch (error) {
    rmSync(made, { recursive: true, force: true });
    throw error;
  }
  if (existsSync(folder)) renameSync(folder, old);
  renameSync(made, folder);
  rmSync(old, { recursive: true, force: true });
}
