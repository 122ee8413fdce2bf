import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { rolldown } from "rolldown";
import packageJson from "../package.json" with { type: "json" };

/**
 * Libraries that are bundled with everything they import: 800 small modules. To find, read and link them takes Node a
 * third of the time until `up` is ready, and half of the time of `explain`.
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
  // Half of an installation, of which only a little is needed; a production server is installed without it.
  "viem",
];

const { dependencies, optionalDependencies, peerDependencies } = packageJson;
const external = Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies }).filter(
  (name) => !bundled.includes(name),
);

/**
 * Modules that are merged into one file with their imports: what every command starts with, and what nearly every one
 * needs. Without this, `pay` reads 90 files instead of 55, many of them a few lines long, and takes a sixth more CPU.
 * Paths are relative to `dist`, whose folder may have any name.
 */
const groups = [
  { name: "main", files: /^cli\/main\.js$/, priority: 2 },
  { name: "base", files: /^(protocol|methods)\/(?!.*(on-chain|schema|openapi|explain))/, priority: 1 },
];

/** Returns true if an import stays an import of an installed package. */
export function isExternal(id: string): boolean {
  return external.some((name) => id === name || id.startsWith(`${name}/`));
}

/** Entry points of the library that web pages and other runtimes import too. They stay as compiled, for the bundlers there. */
const forPages = ["./protocol", "./networks", "./test-payers", "./test-keys", "./fixtures"];

/** The files in `dist` behind the package's exports: those that only Node runs, and the others. */
const { inNode = [], inPages = [] } = Object.groupBy(
  Object.entries(packageJson.exports).flatMap(([name, target]) =>
    typeof target === "string" ? [] : [{ name, file: target.default.replace(/^\.\/dist\//, "") }],
  ),
  ({ name }) => (forPages.includes(name) ? "inPages" : "inNode"),
);

/**
 * Bundles the command and the library's Node-only entry points, with shared modules in `bundle/`, so that few files are
 * read. Dynamic imports stay dynamic. Removes the modules that nothing imports afterwards, except for their types.
 */
export async function bundleForNode(dist: string): Promise<void> {
  const bundle = await rolldown({
    // Paths in the bundle's comments are relative to it, because the folder has a temporary name during the build.
    cwd: dist,
    input: Object.fromEntries(
      ["cli/bin.js", ...inNode.map(({ file }) => file)].map((file) => [
        file.replace(/\.js$/, ""),
        join(dist, file),
      ]),
    ),
    platform: "node",
    external: isExternal,
    // A module that one command loads late may be a static import of another.
    checks: { ineffectiveDynamicImport: false },
  });
  // Two folders deep, as in src, because files next to the code are found by relative paths.
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

/** The given files and everything they import. */
async function modulesOf(input: string[]): Promise<ReadonlySet<string>> {
  const bundle = await rolldown({ input, external: (id) => !/^[./]/.test(id), treeshake: false });
  const { output } = await bundle.generate();
  await bundle.close();
  return new Set(output.flatMap((part) => (part.type === "chunk" ? part.moduleIds : [])));
}

/** A bundled package's name, version and license. */
function describeLicense(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const texts = globSync("{LICENSE,LICENCE,License,license}*", { cwd: folder });
  return [
    `${name} ${version}: ${license}`,
    ...texts.map((file) => readFileSync(join(folder, file), "utf8").trim()),
    "",
  ].join("\n\n");
}
