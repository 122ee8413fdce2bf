import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rolldown } from "rolldown";

/**
 * Libraries that are put into the bundle: 350 small modules, of which finding, reading and linking each takes Node a
 * quarter of what `up` takes to be ready. Their versions are pinned in package.json, so it is the code that npm installs.
 */
const bundled = ["zod", "kysely", "@noble/hashes", "@noble/curves"];

/**
 * Replaces `cli/bin.js` of the compiled package by one that reads few files, with what it imports in `bundle/`; what is
 * imported only when it is needed stays so. The library's doors stay as they were compiled, with their types.
 */
export async function bundleCommand(dist: string): Promise<void> {
  const bundle = await rolldown({
    input: { "cli/bin": join(dist, "cli/bin.js") },
    platform: "node",
    external: (id) => !/^[./]/.test(id) && !bundled.some((name) => id === name || id.startsWith(`${name}/`)),
  });
  // Two folders deep, as in src: what is read beside the code is found by its way from there.
  await bundle.write({ dir: dist, entryFileNames: "[name].js", chunkFileNames: "bundle/[name].js" });
  await bundle.close();
  const licenses = bundled.map((name) => {
    const text = readFileSync(join(dist, "../node_modules", name, "LICENSE"), "utf8");
    return `${name}\n\n${text.trim()}\n`;
  });
  writeFileSync(join(dist, "bundle/LICENSES.txt"), licenses.join("\n---\n\n"));
}
