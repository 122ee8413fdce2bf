import { readOneOf, readWholeNumber } from "../../config/values.ts";
import { type Framework, frameworks } from "../../payer/shop-variables.ts";
import { isPackageFolder, self } from "../../util/self-command.ts";
import { defineCommand, flag, option, textOption } from "../kit/command.ts";
import { describeFiles, entering, kitSpecifier, npmInstall, type Written, writeFiles } from "../kit/files.ts";
import { readManifest, shopFiles, usualPort } from "../kit/shop-templates.ts";

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
    typescript: flag("write TypeScript, which Node runs as it is, and a tsconfig.json"),
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

  async run({ folder, framework, typescript = false, port, "dry-run": isDry }) {
    const files = writeFiles(folder, shopFiles(framework, { typescript, port }), isDry);
    const left = files.filter(({ is }) => is === "other");
    return {
      text: [
        describeFiles(files, isDry),
        ...left.flatMap((file) => ["", ...whatToAdd(file, { framework, typescript })]),
        "",
        "Next:",
        "",
        ...nextCommands(folder, left, typescript).map((command) => `  ${command}`),
        ...(isOwnManifest(left)
          ? ["", "By hand, each in a terminal: npm run facilitator, npm run shop, npm run buy"]
          : []),
      ].join("\n"),
      json: {
        folder,
        framework,
        typescript,
        port,
        files: files.map(({ path, is }) => ({ path, is })),
        toAdd: left.map((file) => whatToAdd(file, { framework, typescript }).join("\n")),
        next: nextCommands(folder, left, typescript),
      },
    };
  },
});

/** The lines to add to a file that was not overwritten. */
function whatToAdd(
  { path, text }: Written,
  { framework, typescript }: { framework: Framework; typescript: boolean },
): readonly string[] {
  if (path === ".env" || path === ".gitignore") return [`${path} needs these lines:`, "", text.trimEnd()];
  if (path !== "package.json") {
    const options = `--framework ${framework}${typescript ? " --typescript" : ""}`;
    return [`${path} stays yours; to see this one: ${self} init another-folder ${options}`];
  }
  const { dependencies, devDependencies } = readManifest(text);
  const others = Object.keys(devDependencies).filter((name) => name !== "x402-facilitator-kit");
  return [
    "package.json needs:",
    "",
    "  npm pkg set type=module",
    `  npm install ${Object.keys(dependencies).join(" ")}`,
    `  ${npmInstall} --save-dev ${[kitSpecifier, ...others].join(" ")}`,
  ];
}

/** The commands to run next. They use the scripts in package.json if it is the generated one. */
function nextCommands(folder: string, left: readonly Written[], typescript: boolean): readonly string[] {
  const enter = entering(folder);
  return isOwnManifest(left)
    ? [`${enter}${npmInstall}`, "npm test"]
    : [`${enter}npx vitest run shop.test.${typescript ? "ts" : "js"}`];
}

/** Returns true if package.json is the generated one. */
const isOwnManifest = (left: readonly Written[]) => left.every(({ path }) => path !== "package.json");
