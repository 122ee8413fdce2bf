import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import chromium, { inflate } from "@sparticuz/chromium";
import { type Browser, chromium as playwright } from "playwright-core";

/** Starts the Chromium installed by npm. It needs only glibc: other libraries (NSS, expat) are in the same package. */
export async function startBrowser(): Promise<Browser> {
  const executablePath = await chromium.executablePath();
  const archives = join(dirname(fileURLToPath(import.meta.resolve("@sparticuz/chromium"))), "../bin");
  const libraries = join(await inflate(join(archives, "al2023.tar.br")), "lib");
  const temporary = dirname(executablePath);
  try {
    return await playwright.launch({
      executablePath,
      args: ["--no-sandbox", "--disable-background-networking"],
      env: { ...process.env, LD_LIBRARY_PATH: libraries, FONTCONFIG_PATH: join(temporary, "fonts") },
    });
  } catch (cause) {
    throw new Error(
      [
        `Chromium does not start from ${executablePath}`,
        `If it was unpacked in part, by a run that was cut short, delete it: rm -rf ${executablePath} ${dirname(libraries)}`,
        `If it lacks a library, this names it: LD_LIBRARY_PATH=${libraries} ldd ${executablePath}`,
      ].join("\n"),
      { cause },
    );
  }
}
