import { z } from "zod";
import { variables } from "../../config/variables.ts";
import { networks } from "../../payer/local-networks.ts";
import { type Framework, renderVariables, shopVariables } from "../../payer/shop-variables.ts";
import { testKeys } from "../../payer/test-keys.ts";
import { testPayers } from "../../payer/test-payers.ts";
import { type File, readTemplates } from "./files.ts";

/** The shop's port in the templates. */
export const usualPort = 3_000;

/**
 * The files of a shop, a buyer and their test. A framework's own file replaces a common one.
 *
 * @param options.typescript true for the TypeScript source instead of the JavaScript that `npm run generate` makes of
 * it
 * @param options.url the URL of the `up` that they use
 * @param options.port the shop's port
 */
export function shopFiles(
  framework: Framework,
  {
    typescript = false,
    url = variables.X402_KIT_URL.default,
    port = usualPort,
  }: { typescript?: boolean; url?: string; port?: number } = {},
): readonly File[] {
  // Next has its own server; all others use Node's.
  const folders = [framework, "common", ...(framework === "next" ? [] : ["server"])];
  const files = typescript ? inTypeScript(folders) : inJavaScript(folders);
  return [
    ...files.map(({ path, text }) => ({
      path,
      text: text.replaceAll(`${usualPort}`, `${port}`).replace("../server/", "./"),
    })),
    { path: ".env", text: `${localEnv(url)}\n` },
    // npm does not include files with this name in a package.
    {
      path: ".gitignore",
      text: ["node_modules/", ".env", ...(typescript ? generated : [".next/"]), ""].join("\n"),
    },
  ];
}

/** Written by Next and the compiler. */
const generated = [".next/", "next-env.d.ts", "*.tsbuildinfo"];

const typescriptFile = /\.tsx?$/;

/** The files of several folders. For a path in more than one, the first wins. */
function readFolders(folders: readonly string[]): File[] {
  const files = folders.flatMap(readTemplates);
  return files.filter(({ path }, index) => files.findIndex((file) => file.path === path) === index);
}

function inJavaScript(folders: readonly string[]): File[] {
  const files = readFolders(folders);
  const paths = files.map(({ path }) => path);
  const isSource = (path: string) =>
    typescriptFile.test(path) && paths.includes(path.replace(typescriptFile, ".js"));
  return files.filter(({ path }) => path !== "tsconfig.json" && !isSource(path));
}

function inTypeScript(folders: readonly string[]): File[] {
  const files = readFolders([...folders, "typescript"]).filter(({ path }) => !path.endsWith(".js"));
  const [more] = readTemplates("typescript").filter(({ path }) => path === "package.json");
  return files.map(({ path, text }) => {
    const full = path === "package.json" && more !== undefined ? withTypes(text, more.text) : text;
    return { path, text: full.replaceAll(/\.js\b/g, ".ts") };
  });
}

const manifestSchema = z.looseObject({
  scripts: z.record(z.string(), z.string()),
  dependencies: z.record(z.string(), z.string()),
  devDependencies: z.record(z.string(), z.string()),
});

/** Reads the package.json of a template. */
export const readManifest = (text: string) => manifestSchema.parse(JSON.parse(text));

/** Merges additions into a package.json. Of the `@types` packages, only those for its dependencies are added. */
function withTypes(text: string, added: string): string {
  const manifest = readManifest(text);
  const { scripts, devDependencies } = readManifest(added);
  const needed = Object.entries(devDependencies).filter(([name]) => {
    const typed = name.replace(/^@types\//, "");
    return typed === name || typed === "node" || typed in manifest.dependencies;
  });
  const written = {
    ...JSON.parse(text),
    scripts: { ...manifest.scripts, ...scripts },
    devDependencies: { ...Object.fromEntries(needed), ...manifest.devDependencies },
  };
  return `${JSON.stringify(written, null, 2)}\n`;
}

function localEnv(url: string): string {
  return renderVariables(
    shopVariables({
      url: `${url}/v1`,
      apiKey: testKeys.local.apiKey,
      network: networks.base,
      payerKey: testPayers.funded.privateKey,
    }),
  );
}
