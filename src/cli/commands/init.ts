import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { z } from "zod";
import { readOneOf } from "../../config/values.ts";
import { variables } from "../../config/variables.ts";
import { networks } from "../../published/local-networks.ts";
import { renderVariables, shopVariables } from "../../published/shop-variables.ts";
import { testKeys } from "../../published/test-keys.ts";
import { testPayers } from "../../published/test-payers.ts";
import { KitError } from "../../util/errors.ts";
import { packageFile, self } from "../../util/self-command.ts";
import { renderRows } from "../../util/table.ts";
import { defineCommand, flag, jsonFlag, option, textOption } from "../kit/command.ts";

const frameworks = ["express", "hono", "fastify", "next"] as const;
type Framework = (typeof frameworks)[number];

/** A file to write, by its path in the folder. */
type File = { path: string; text: string };

/** What has come of a file: written, or there before, with the same text or another. */
type Written = File & { is: "new" | "same" | "other" };

export const init = defineCommand({
  options: {
    folder: textOption("FOLDER", "where to write; a new folder, or an existing project", {
      positional: true,
      default: ".",
      example: "my-shop",
    }),
    framework: option("NAME", `what the shop is made with: ${frameworks.join(", ")}`, {
      read: readOneOf(frameworks),
      default: "express",
      example: "hono",
    }),
    "dry-run": flag("write nothing, and say what would be written"),
    json: jsonFlag,
  },

  async run({ folder, framework, "dry-run": isDry }) {
    const files = filesOf(framework).map((file) => compare(folder, file));
    if (!isDry) for (const file of files.filter(({ is }) => is === "new")) write(folder, file);
    const left = files.filter(({ is }) => is === "other");
    return {
      text: [
        ...describeFiles(files, isDry),
        ...left.flatMap((file) => ["", ...whatToAdd(file, framework)]),
        "",
        ...nextCommands(folder, left),
      ].join("\n"),
      json: { folder, framework, files: files.map(({ path, is }) => ({ path, is })) },
    };
  },
});

/** The files of a shop, a buyer and their test. */
function filesOf(framework: Framework): readonly File[] {
  const read = (root: string): File[] =>
    readdirSync(packageFile(`templates/${root}`), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => {
        const file = join(parentPath, name);
        const path = relative(packageFile(`templates/${root}`), file).replaceAll(sep, "/");
        return { path, text: adapt(path, readFileSync(file, "utf8"), framework) };
      });
  return [...read(framework), ...read("common"), { path: ".env", text: `${localEnv()}\n` }];
}

/** What starts a Next app, for Node. */
const nextCommand = '["node_modules/next/dist/bin/next", "dev", "--hostname", "127.0.0.1"]';

function adapt(path: string, text: string, framework: Framework): string {
  if (path === "open-shop.js" && framework === "next") return text.replace('["shop.js"]', nextCommand);
  if (path !== "package.json" || isInstalled) return text;
  // Of a checkout: the package that runs here, whatever the registry has.
  return text.replace(/("x402-facilitator-kit": )"[^"]*"/, `$1${JSON.stringify(kitSpecifier)}`);
}

const root = packageFile("");
const isInstalled = root.split(sep).includes("node_modules");
/** How npm installs this package, and by which name. */
const npmInstall = isInstalled
  ? "npm install"
  : // A link to the checkout would bring a second vitest along.
    "npm install --install-links";
const kitSpecifier = isInstalled ? "x402-facilitator-kit" : `file:${root.replace(/[\\/]$/, "")}`;

/** The variables of an `up` at its usual address. */
function localEnv(): string {
  return renderVariables(
    shopVariables({
      url: `${variables.X402_KIT_URL.default}/v1`,
      apiKey: testKeys.local.apiKey,
      network: networks.base,
      payerKey: testPayers.funded.privateKey,
    }),
  );
}

function compare(folder: string, file: File): Written {
  const at = join(folder, file.path);
  if (!existsSync(at)) return { ...file, is: "new" };
  return { ...file, is: readTextOf(at) === file.text ? "same" : "other" };
}

/** Undefined of a folder, and of what may not be read. */
function readTextOf(at: string): string | undefined {
  try {
    return readFileSync(at, "utf8");
  } catch {
    return undefined;
  }
}

/** Never over a file that has come since. */
function write(folder: string, { path, text }: File): void {
  const at = join(folder, path);
  try {
    mkdirSync(dirname(at), { recursive: true });
    writeFileSync(at, text, { flag: "wx" });
  } catch (cause) {
    throw new KitError(`${at} cannot be written`, {
      cause,
      hints: ["What was written before it is left; this command goes on from there when it is called again."],
    });
  }
}

function describeFiles(files: readonly Written[], isDry: boolean): readonly string[] {
  const told = {
    new: isDry ? "would be written" : "written",
    same: "is there already",
    other: "is there already, with another text, and stays as it is",
  };
  return [renderRows(files.map(({ path, is }) => [path, told[is]]))];
}

const manifestSchema = z.object({
  dependencies: z.record(z.string(), z.string()),
  devDependencies: z.record(z.string(), z.string()),
});

/** What a file that was left as it is lacks, perhaps. */
function whatToAdd({ path, text }: Written, framework: Framework): readonly string[] {
  if (path === ".env") return [".env needs these lines:", "", text.trimEnd()];
  if (path !== "package.json") {
    return [`${path} stays yours; to see this one: ${self} init another-folder --framework ${framework}`];
  }
  const { dependencies, devDependencies } = manifestSchema.parse(JSON.parse(text));
  const others = Object.keys(devDependencies).filter((name) => name !== "x402-facilitator-kit");
  return [
    "package.json needs:",
    "",
    "  npm pkg set type=module",
    `  npm install ${Object.keys(dependencies).join(" ")}`,
    `  ${npmInstall} --save-dev ${[kitSpecifier, ...others].join(" ")}`,
  ];
}

/** What to run now: with a package.json of its own by the scripts that it has. */
function nextCommands(folder: string, left: readonly Written[]): readonly string[] {
  const isOwn = left.every(({ path }) => path !== "package.json");
  const enter = folder === "." ? "" : `cd ${/^[\w./-]+$/.test(folder) ? folder : JSON.stringify(folder)} && `;
  const test = isOwn ? "npm test" : "npx vitest run shop.test.js";
  const install = isOwn ? [`${enter}${npmInstall}`, test] : [`${enter}${test}`];
  return [
    "Next:",
    "",
    ...install.map((command) => `  ${command}`),
    ...(isOwn ? ["", "By hand, each in a terminal: npm run facilitator, npm run shop, npm run buy"] : []),
  ];
}
