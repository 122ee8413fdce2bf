import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { KitError } from "../../util/errors.ts";
import { defineCommand, flag, textOption } from "../kit/command.ts";
import { describeFiles, entering, readTemplates, type Written, writeFiles } from "../kit/files.ts";

/** The commit of the x402 project whose suite the files were tested with, and its public repository. */
const tried = {
  commit: "dd927a26cfefc98c24b3ec38b3a8f204dad0c60d",
  repository: "https://github.com/coinbase/x402",
};

/** The folder below `e2e` in which the suite looks for facilitators from outside the project; git ignores it. */
const place = "facilitators/external-proxies/x402-kit";

/** The commands to run in the folder `e2e` once the files are there; the guide has the same lines. */
const steps = [
  // For 69 packages, the lockfile at that commit names a registry that only its authors can reach.
  "sed -i.bak 's|, tarball: https://artifactory[^}]*||' pnpm-lock.yaml",
  "pnpm install",
  // The suite uses the built packages of the workspace, but does not build them.
  'pnpm --filter "@x402/express-e2e^..." --filter "@x402/fetch-e2e^..." run build',
  `cd ${place}`,
  "bash install.sh",
  "bash suite.sh --servers=express --clients=fetch",
];

export const upstreamE2e = defineCommand({
  options: {
    folder: textOption("DIR", "a checkout of the x402 project", {
      positional: true,
      default: ".",
      example: "x402",
    }),
    commit: flag("write nothing, and print the commit that the files were tried with"),
    "dry-run": flag("write nothing, and say what would be written"),
  },

  async run({ folder, commit, "dry-run": isDry }) {
    if (commit) return { text: tried.commit, json: tried };
    if (!existsSync(join(folder, "e2e/facilitators"))) {
      throw new KitError(`${folder} is no checkout of the x402 project: it has no e2e/facilitators`, {
        hints: [`Get one: git clone ${tried.repository} x402`],
      });
    }
    const files = writeFiles(join(folder, "e2e", place), readTemplates("upstream-e2e"), isDry);
    const found = await readCommit(folder);
    return {
      text: [
        `In ${join(folder, "e2e", place)}:`,
        describeFiles(files, isDry),
        "",
        describeCommit(found),
        "",
        ...keepsOthers(files),
        "Next, with pnpm 10:",
        "",
        ...nextCommands(folder).map((command) => `  ${command}`),
      ].join("\n"),
      json: {
        folder: join(folder, "e2e", place),
        files: files.map(({ path, is }) => ({ path, is })),
        tried: tried.commit,
        found: found ?? null,
        next: nextCommands(folder),
      },
    };
  },
});

/** The checked-out commit; undefined if git cannot tell. */
async function readCommit(folder: string): Promise<string | undefined> {
  // In a folder that is not a repository itself, git would name the commit of an enclosing one.
  if (!existsSync(join(folder, ".git"))) return undefined;
  const asked = promisify(execFile)("git", ["-C", folder, "rev-parse", "HEAD"]);
  return asked.then(
    ({ stdout }) => stdout.trim(),
    () => undefined,
  );
}

function describeCommit(found: string | undefined): string {
  if (found === tried.commit) return `This is the commit that they were tried with: ${found}`;
  const here = found === undefined ? "git cannot tell which commit this is" : `this is ${found}`;
  return `Warning: they were tried with commit ${tried.commit} of ${tried.repository}; ${here}. The suite may expect something else of a facilitator by now.`;
}

/** Says how to get the files that were not overwritten, since the existing ones may behave differently. */
function keepsOthers(files: readonly Written[]): readonly string[] {
  const left = files.filter(({ is }) => is === "other").map(({ path }) => path);
  return left.length === 0
    ? []
    : [`To have this version's ${left.join(", ")}: remove yours, and call this again.`, ""];
}

function nextCommands(folder: string): readonly string[] {
  const [first, ...others] = steps;
  return [`${entering(join(folder, "e2e"))}${first}`, ...others];
}
