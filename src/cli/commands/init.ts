import { z } from "zod";
import { readOneOf, readWholeNumber } from "../../config/values.ts";
import { variables } from "../../config/variables.ts";
import { networks } from "../../payer/local-networks.ts";
import { type Framework, frameworks, renderVariables, shopVariables } from "../../payer/shop-variables.ts";
import { testKeys } from "../../payer/test-keys.ts";
import { testPayers } from "../../payer/test-payers.ts";
import { isPackageFolder, self } from "../../util/self-command.ts";
import { defineCommand, flag, option, textOption } from "../kit/command.ts";
import {
  describeFiles,
  entering,
  type File,
  kitSpecifier,
  npmInstall,
  readTemplates,
  type Written,
  writeFiles,
} from "../kit/files.ts";

/** The shop's port in the templates. */
const usualPort = 3_000;

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
    port: option("PORT", "where the shop listens", {
      read: readWholeNumber(1, 65_535),
      default: String(usualPort),
      example: "8080",
    }),
    "dry-run": flag("write nothing, and say what would be written"),
  },

  check({ folder = "." }) {
    if (folder.trim() === "") return [{ name: "FOLDER", problem: "is empty; leave it out for this folder" }];
    if (!isPackageFolder(folder)) return [];
    const problem = "is that of x402-facilitator-kit itself; name another one";
    return [{ name: "FOLDER", problem, example: "../my-shop" }];
  },

  async run({ folder, framework, port, "dry-run": isDry }) {
    const files = writeFiles(folder, shopFiles(framework, { port }), isDry);
    const left = files.filter(({ is }) => is === "other");
    return {
      text: [
        describeFiles(files, isDry),
        ...left.flatMap((file) => ["", ...whatToAdd(file, framework)]),
        "",
        "Next:",
        "",
        ...nextCommands(folder, left).map((command) => `  ${command}`),
        ...(isOwnManifest(left)
          ? ["", "By hand, each in a terminal: npm run facilitator, npm run shop, npm run buy"]
          : []),
      ].join("\n"),
      json: {
        ...{ folder, framework, port, files: files.map(({ path, is }) => ({ path, is })) },
        toAdd: left.map((file) => whatToAdd(file, framework).join("\n")),
        next: nextCommands(folder, left),
      },
    };
  },
});

/**
 * The files of a shop, a buyer and their test: a framework's own in the place of a common one.
 *
 * @param options.url of the `up` that they use
 * @param options.port where the shop listens
 */
export function shopFiles(
  framework: Framework,
  { url = variables.X402_KIT_URL.default, port = usualPort }: { url?: string; port?: number } = {},
): readonly File[] {
  const own = readTemplates(framework);
  // Next has a server of its own, and all others that of Node.
  const shared = [...readTemplates("common"), ...(framework === "next" ? [] : readTemplates("server"))];
  const written = [...own, ...shared.filter(({ path }) => own.every((file) => file.path !== path))];
  return [
    ...written.map(({ path, text }) => ({
      path,
      text: text.replaceAll(`${usualPort}`, `${port}`).replace("../server/", "./"),
    })),
    { path: ".env", text: `${localEnv(url)}\n` },
    // npm leaves files of this name out of a package.
    { path: ".gitignore", text: "node_modules/\n.env\n.next/\n" },
  ];
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

const manifestSchema = z.object({
  dependencies: z.record(z.string(), z.string()),
  devDependencies: z.record(z.string(), z.string()),
});

/** Lines that a file which was not overwritten may lack. */
function whatToAdd({ path, text }: Written, framework: Framework): readonly string[] {
  if (path === ".env" || path === ".gitignore") return [`${path} needs these lines:`, "", text.trimEnd()];
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

/** The commands to run next: with a package.json of its own by the scripts that it has. */
function nextCommands(folder: string, left: readonly Written[]): readonly string[] {
  const enter = entering(folder);
  return isOwnManifest(left)
    ? [`${enter}${npmInstall}`, "npm test"]
    : [`${enter}npx vitest run shop.test.js`];
}

/** Returns true if the package.json is the one that was written. */
const isOwnManifest = (left: readonly Written[]) => left.every(({ path }) => path !== "package.json");
