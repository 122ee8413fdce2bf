import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type OutputAsset, type OutputChunk, type Plugin, rolldown } from "rolldown";
import type { TestProject } from "vitest/node";
import { isExternal } from "../../scripts/bundle.ts";
import { programs, programsVariable } from "./programs.ts";

/*
 * Bundles the programs that tests start, with the same libraries as the package's command. Unbundled, from hundreds of
 * files, each start would take more than twice the CPU, and a run has some hundred starts.
 */

const repository = fileURLToPath(new URL("../..", import.meta.url));
const cache = join(repository, "node_modules/.cache/test-programs");

/** Files next to the code are still found relative to it. */
const keepLocations: Plugin = {
  name: "keep-locations",
  transform: {
    filter: { code: /import\.meta\.(url|dirname)/ },
    handler: (code, id) =>
      code
        .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(id).href))
        .replaceAll("import.meta.dirname", JSON.stringify(dirname(id))),
  },
};

/** Returns the folder of the bundled programs; the same for the same sources, so that Node's compile cache can be used. */
async function bundlePrograms(): Promise<string> {
  const bundle = await rolldown({
    input: Object.fromEntries(programs.map((path) => [path.replace(/\.ts$/, ""), join(repository, path)])),
    platform: "node",
    external: isExternal,
    plugins: [keepLocations],
  });
  const { output } = await bundle.generate({
    entryFileNames: "[name].js",
    chunkFileNames: "[name]-[hash].js",
  });
  await bundle.close();
  const contentOf = (file: OutputAsset | OutputChunk) => (file.type === "chunk" ? file.code : file.source);
  const hash = createHash("sha256");
  for (const file of output) hash.update(file.fileName).update(contentOf(file));
  const folder = join(cache, hash.digest("hex").slice(0, 16));
  await mkdir(cache, { recursive: true });
  const made = await mkdtemp(join(cache, "made-"));
  for (const file of output) {
    await mkdir(dirname(join(made, file.fileName)), { recursive: true });
    await writeFile(join(made, file.fileName), contentOf(file));
  }
  await writeFile(join(made, "package.json"), '{"type":"module"}');
  // Another run may have made this folder, and be using it.
  await rename(made, folder).catch(() => rm(made, { recursive: true }));
  const now = new Date();
  await utimes(folder, now, now);
  await removeUnused();
  return folder;
}

/** Removes bundles of earlier sources that no run has used in the last day. */
async function removeUnused(): Promise<void> {
  for (const name of await readdir(cache)) {
    // Another run may be removing it too.
    const used = await stat(join(cache, name)).catch(() => undefined);
    if (used !== undefined && Date.now() - used.mtimeMs > 86_400_000)
      await rm(join(cache, name), { recursive: true, force: true });
  }
}

/** Runs once for all projects in a run, and again when files have changed. */
export default async function setup(project: TestProject): Promise<void> {
  process.env[programsVariable] ??= await bundlePrograms();
  project.onTestsRerun(async () => {
    process.env[programsVariable] = await bundlePrograms();
  });
}
