import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import chromium, { inflate } from "@sparticuz/chromium";
import { type Browser, chromium as playwright } from "playwright-core";
import { repository } from "./cli.ts";

/** Not below /tmp, the package's own choice: whatever another user of the machine had put there would be run. */
const unpacked = join(repository, "node_modules/.cache/chromium");

/** Starts the Chromium installed by npm. It needs only glibc; other libraries (NSS, expat) are in the same package. */
export async function startBrowser(): Promise<Browser> {
  if (!existsSync(unpacked)) await unpack();
  const executablePath = join(unpacked, "chromium");
  const libraries = join(unpacked, "al2023/lib");
  try {
    return await playwright.launch({
      executablePath,
      args: ["--no-sandbox", "--disable-background-networking"],
      env: { ...process.env, LD_LIBRARY_PATH: libraries, FONTCONFIG_PATH: join(unpacked, "fonts") },
    });
  } catch (cause) {
    throw new Error(
      [
        `Chromium does not start from ${executablePath}`,
        `If it is of another version of the package, delete it: rm -rf ${unpacked}`,
        `If it lacks a library, this names it: LD_LIBRARY_PATH=${libraries} ldd ${executablePath}`,
      ].join("\n"),
      { cause },
    );
  }
}

async function unpack(): Promise<void> {
  await mkdir(dirname(unpacked), { recursive: true });
  const made = await mkdtemp(`${unpacked}-`);
  const { TMPDIR } = process.env;
  // The package unpacks to the folder for temporary files, and its font configuration names it too.
  process.env.TMPDIR = made;
  try {
    await chromium.executablePath();
    await inflate(
      join(dirname(fileURLToPath(import.meta.resolve("@sparticuz/chromium"))), "../bin/al2023.tar.br"),
    );
  } finally {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
  }
  const fonts = join(made, "fonts/fonts.conf");
  // Relative to that file, because the repository may be moved. Without any font, Chromium exits.
  const relative = '<dir prefix="relative">.</dir>';
  const text = (await readFile(fonts, "utf8")).replace("<dir>/tmp/fonts</dir>", relative);
  await writeFile(fonts, text.replaceAll(/\/tmp(?=\/)/g, unpacked));
  // Another process may have finished first, and be using its own.
  await rename(made, unpacked).catch(() => rm(made, { recursive: true }));
}
