import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { rolldown } from "rolldown";
import packageJson from "../package.json" with { type: "json" };

/**
 * Libraries that are put into the bundle with what they import: 800 small modules, of which finding, reading and linking
 * each takes Node a third of what `up` takes to be ready, and half of what `explain` takes.
 */
const bundled = [
  "zod",
  "kysely",
  "@noble/hashes",
  "@noble/curves",
  "fastify",
  "fastify-plugin",
  "pino",
  "@viem/anvil",
  // Half of an installation, and of it only a little is needed: a production server is installed without it.
  "viem",
];

const { dependencies, optionalDependencies, peerDependencies } = packageJson;
const external = Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies }).filter(
  (name) => !bundled.includes(name),
);

/**
 * What is put together, with all that it imports: what every command begins with, and what nearly every one needs. Without it
 * `pay` reads 90 files instead of 55, many of them of a few lines, and takes a sixth more CPU. Paths are those in `dist`:
 * the folder that it is in may have any name.
 */
const groups = [
  { name: "main", files: /^cli\/main\.js$/, priority: 2 },
  { name: "base", files: /^(protocol|methods)\/(?!.*(on-chain|schema|openapi|explain))/, priority: 1 },
];

/** Returns true if an import stays one of a package that is installed. */
export function isExternal(id: string): boolean {
  return external.some((name) => id === name || id.startsWith(`${name}/`));
}

/**
 * Entry points of the library that web pages and other runtimes import too: left as they are compiled, for the bundlers
 * of those.
 */
const forPages = ["./protocol", "./networks", "./test-payers", "./test-keys", "./fixtures"];

/** The files in `dist` that exports of the package lead to: those that only Node runs, and the others. */
const { inNode = [], inPages = [] } = Object.groupBy(
  Object.entries(packageJson.exports).flatMap(([name, target]) =>
    typeof target === "string" ? [] : [{ name, file: target.default.replace(/^\.\/dist\//, "") }],
  ),
  ({ name }) => (forPages.includes(name) ? "inPages" : "inNode"),
);

/**
 * Replaces the command and the library's entry points that only Node runs by ones that read few files, with what they
 * import in `bundle/`; what is imported only when it is needed stays so. Removes what is then imported by nothing, but
 * for its types.
 */
export async function bundleForNode(dist: string): Promise<void> {
  const bundle = await rolldown({
    // Paths in the bundle's comments are relative to it: the folder has another name while it is made.
    cwd: dist,
    input: Object.fromEntries(
      ["cli/bin.js", ...inNode.map(({ file }) => file)].map((file) => [
        file.replace(/\.js$/, ""),
        join(dist, file),
      ]),
    ),
    platform: "node",
    external: isExternal,
    // What a command loads late, others may load at once.
    checks: { ineffectiveDynamicImport: false },
  });
  // Two folders deep, as in src, because files beside the code are found by relative paths.
  const { output } = await bundle.generate({
    entryFileNames: "[name].js",
    chunkFileNames: "bundle/[name].js",
    codeSplitting: {
      groups: groups.map(({ files, ...group }) => ({
        ...group,
        test: (id) => files.test(relative(dist, id)),
      })),
    },
  });
  await bundle.close();
  const chunks = output.filter((part) => part.type === "chunk");
  const kept = await modulesOf(inPages.map(({ file }) => join(dist, file)));
  for (const path of globSync("**/*.js", { cwd: dist, exclude: ["studio-page/**"] })) {
    if (!kept.has(join(dist, path))) rmSync(join(dist, path));
  }
  mkdirSync(join(dist, "bundle"));
  for (const { fileName, code } of chunks) writeFileSync(join(dist, fileName), code);
  const folders = chunks.flatMap(({ moduleIds }) =>
    moduleIds.flatMap((id) => /^.*\/node_modules\/(@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []),
  );
  const licenses = [...new Set(folders)].sort().map(describeLicense);
  writeFileSync(join(dist, "bundle/LICENSES.txt"), licenses.join("\n---\n\n"));
}

/** The files that these import, and these. */
async function modulesOf(input: string[]): Promise<ReadonlySet<string>> {
  const bundle = await rolldown({ input, external: (id) => !/^[./]/.test(id), treeshake: false });
  const { output } = await bundle.generate();
  await bundle.close();
  return new Set(output.flatMap((part) => (part.type === "chunk" ? part.moduleIds : [])));
}

/** A package that is in the bundle: its name, its version and its license. */
function describeLicense(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const texts = globSync("{LICENSE,LICENCE,License,license}*", { cwd: folder });
  return [
    `${name} ${version}: ${license}`,
    ...texts.map((file) => readFileSync(join(folder, file), "utf8").trim()),
    "",
  ].join("\n\n");
}
