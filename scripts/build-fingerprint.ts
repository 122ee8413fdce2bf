import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { lookAt } from "./is-built.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const sources = [
  "src/**/*.*",
  "templates/**/*.{js,json}",
  "scripts/{build,bundle,replace}*.ts",
  "{package,package-lock,tsconfig,tsconfig.build}.json",
];
/** Holds the hash of dist/'s sources. It is in node_modules, so a fresh installation causes a new build. */
const file = join(root, "node_modules/.cache/build-fingerprint");
/** Holds the state of the sources, their folders and the command at build time, which `npm start` compares. */
const filesFile = join(root, "node_modules/.cache/build-files.json");
/** npm's record of the installed packages. */
const installed = "node_modules/.package-lock.json";
const command = "dist/cli/bin.js";

type Seen = readonly (readonly [path: string, ...ReturnType<typeof lookAt>])[];

/** A hash of everything that dist/ is built from. */
export function fingerprintSources(): string {
  const hash = createHash("sha256");
  for (const path of globSync(sources, { cwd: root }).sort()) {
    if (!/\.test\.ts$/.test(path)) hash.update(`${path}\n`).update(readFileSync(join(root, path)));
  }
  return hash.digest("hex");
}

/** Records the state of the sources, so that a change can be noticed later without reading them. */
export function lookAtSources(): Seen {
  const folders = globSync("{src,templates}/**/", { cwd: root });
  return look([...globSync(sources, { cwd: root }), ...folders, installed]);
}

const look = (paths: readonly string[]): Seen =>
  paths.filter((path) => existsSync(join(root, path))).map((path) => [path, ...lookAt(join(root, path))]);

/** The hash of the sources that dist/ was built from; undefined if it is unknown, or the command is gone. */
export function readBuild(): string | undefined {
  if (!existsSync(join(root, command))) return undefined;
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

export function forgetBuild(): void {
  for (const one of [file, filesFile]) rmSync(one, { force: true });
}

/** @param seen the state of the sources before they were read */
export function rememberBuild(fingerprint: string, seen: Seen): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(filesFile, JSON.stringify([...seen, ...look([command])]));
  writeFileSync(file, fingerprint);
}
