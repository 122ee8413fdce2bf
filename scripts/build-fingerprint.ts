import { createHash } from "node:crypto";
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const sources = [
  "src/**/*.*",
  "scripts/{build,bundle,replace}*.ts",
  "{package,package-lock,tsconfig,tsconfig.build}.json",
];
/** Where it stands which sources dist/ was built from: with the libraries, so that other ones are another build. */
const file = join(root, "node_modules/.cache/build-fingerprint");

/** A hash of all that dist/ is built from. */
export function fingerprintSources(): string {
  const hash = createHash("sha256");
  for (const path of globSync(sources, { cwd: root }).sort()) {
    if (!/\.test\.ts$/.test(path)) hash.update(`${path}\n`).update(readFileSync(join(root, path)));
  }
  return hash.digest("hex");
}

/** The hash of the sources that dist/ was built from; undefined when that is not known. */
export function readBuild(): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

export function forgetBuild(): void {
  rmSync(file, { force: true });
}

export function rememberBuild(fingerprint: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, fingerprint);
}
