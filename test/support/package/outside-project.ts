import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/*
 * Projects outside this one that have installed the packed package. Nothing is downloaded: only the declared
 * dependencies of the package and the project are linked from here, so an undeclared import fails.
 */

const repository = fileURLToPath(new URL("../../..", import.meta.url));
const run = promisify(execFile);

/** The members of package.json that are used here. */
export type Manifest = Record<"name" | "version", string> & {
  exports: Record<string, string | { types: string; default: string }>;
  bin: Record<string, string>;
  scripts: Record<string, string>;
  peerDependenciesMeta?: Record<string, { optional?: boolean }>;
} & Partial<Record<(typeof dependencyFields)[number], Record<string, string>>>;

/** The fields with the packages that npm installs along with a package. */
const dependencyFields = ["dependencies", "optionalDependencies", "peerDependencies"] as const;

/** The package as it would be published, in a separate folder. */
export type PackedPackage = AsyncDisposable & { tarball: string; directory: string };

/** Builds this package if it is out of date, and packs it. */
export async function packPackage(): Promise<PackedPackage> {
  const directory = await mkdtemp(join(tmpdir(), "x402-kit-package-"));
  await run("npm", ["run", "build", "--", "--if-changed"], { cwd: repository });
  const options = ["--ignore-scripts", "--pack-destination", directory, "--loglevel", "error"];
  const { stdout } = await run("npm", ["pack", ...options], { cwd: repository });
  return {
    tarball: join(directory, stdout.trim()),
    directory,
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true }),
  };
}

/**
 * Creates a project that has installed the tarball.
 *
 * @param source a folder with the project's files and its package.json; undefined for an empty project
 */
export async function createOutsideProject(
  { tarball, directory }: PackedPackage,
  name: string,
  source?: string,
): Promise<{ root: string; manifest: Manifest }> {
  const root = join(directory, name);
  const installed = join(root, "node_modules", "x402-facilitator-kit");
  await mkdir(installed, { recursive: true });
  await run("tar", ["-xzf", tarball, "--strip-components=1", "-C", installed]);
  const manifest = await readManifest(installed);
  const needed = new Set(dependencyFields.flatMap((field) => Object.keys(manifest[field] ?? {})));
  if (source !== undefined) {
    await cp(source, root, { recursive: true });
    const own: Record<"dependencies" | "devDependencies", Record<string, string>> = JSON.parse(
      await readFile(join(root, "package.json"), "utf8"),
    );
    for (const field of ["dependencies", "devDependencies"] as const) {
      for (const dependency of Object.keys(own[field] ?? {})) needed.add(dependency);
    }
  }
  needed.delete(manifest.name);
  for (const dependency of needed) await link(root, dependency);
  return { root, manifest };
}

/** Installs a package from this repository's node_modules in a project; replaces another version of it. */
export async function link(root: string, dependency: string, installed = dependency): Promise<void> {
  const target = join(root, "node_modules", dependency);
  await mkdir(dirname(target), { recursive: true });
  await rm(target, { force: true });
  await symlink(join(repository, "node_modules", installed), target, "junction");
}

export async function readManifest(directory: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(directory, "package.json"), "utf8"));
}
