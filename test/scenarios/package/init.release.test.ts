import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { access, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { frameworks } from "../../../src/payer/shop-variables.ts";
import { childEnvironment } from "../../support/child-environment.ts";
import { judge } from "../../support/judge/judge.ts";
import {
  createOutsideProject,
  type PackedPackage,
  packPackage,
  readManifest,
} from "../../support/package/outside-project.ts";
import { runToItsEnd } from "../../support/package/run-to-its-end.ts";
import { findFreePort } from "../../support/postgres.ts";
import { runHere } from "../../support/run-here.ts";
import { startTestHarness } from "../../support/service.ts";

/* What `x402-kit init` writes is run as it is, with every framework that it knows. */

const run = promisify(execFile);

let packed: PackedPackage;
let kit: string;
beforeAll(async () => {
  packed = await packPackage();
  const { root } = await createOutsideProject(packed, "kit");
  kit = join(root, "node_modules/x402-facilitator-kit/dist/cli/bin.js");
}, 120_000);
afterAll(() => packed?.[Symbol.asyncDispose]());

/** Each framework in both languages, by the end of a file's name. */
const shops = frameworks.flatMap((framework) => [[framework, "js"] as const, [framework, "ts"] as const]);

/** The files that the packed package writes for a framework, with its dependencies. */
async function createShop(framework: string, language: string): Promise<string> {
  const name = `${framework}-${language}`;
  const source = join(packed.directory, `written-${name}`);
  const options = ["--framework", framework, ...(language === "ts" ? ["--typescript"] : [])];
  const { stdout } = await run(process.execPath, [kit, "init", source, ...options]);
  expect(stdout).toContain(`cd ${source} && npm install\n  npm test\n`);
  const { root } = await createOutsideProject(packed, name, source);
  // Turbopack reads nothing outside of its root, and the packages here are links to folders elsewhere.
  if (framework === "next") {
    await writeFile(join(root, "next.config.mjs"), 'export default { turbopack: { root: "/" } };\n');
  }
  return root;
}

/** The script `shop` of a project, run by Node at a port. */
async function shopCommand(project: string, port: string): Promise<readonly string[]> {
  const { scripts } = await readManifest(project);
  const [program, ...args] = (scripts.shop ?? "").split(" ");
  return program === "node"
    ? args
    : ["node_modules/next/dist/bin/next", ...args.map((word) => word.replace("3000", port))];
}

describe.for(shops)("a shop with %s in %s", ([framework, language]) => {
  let project: string;
  beforeAll(async () => {
    project = await createShop(framework, language);
  });

  test("passes its own tests", { timeout: 120_000 }, async () => {
    const { scripts } = await readManifest(project);
    expect(scripts.test).toBe(language === "ts" ? "tsc && vitest run" : "vitest run");
    // It prints what is wrong on stdout.
    const types = language === "ts" ? ["node_modules/typescript/bin/tsc"] : ["--version"];
    expect(await runToItsEnd(project, types)).toMatchObject({ code: 0 });
    const { code, output, left } = await runToItsEnd(project, ["node_modules/vitest/vitest.mjs", "run"]);
    expect(output).toMatch(/Tests +3 passed \(3\)/);
    expect([code, left]).toEqual([0, []]);
  });

  test("is paid by its buyer, both with the variables of its .env", async () => {
    await using up = await startTestHarness({ networks: ["base"] });
    const { facilitator, organization, networks } = up.description;
    // Its .env is that of an `up` at the usual port, which another may have here.
    const env = { ...childEnvironment(), X402_FACILITATOR_URL: facilitator.url };
    const file = await readFile(join(project, ".env"), "utf8");
    expect(file).toContain(`X402_API_KEY=${organization.apiKey}\n`);
    expect(file).toContain(`X402_PAY_TO=${networks.base?.payTo}\n`);
    const port = String(await findFreePort());
    const shop = spawn(process.execPath, await shopCommand(project, port), {
      cwd: project,
      env: { ...env, PORT: port, NEXT_TELEMETRY_DISABLED: "1" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ended = once(shop, "close");
    try {
      const url = `http://127.0.0.1:${port}`;
      let printed = "";
      shop.stdout.on("data", (text) => (printed += text));
      await expect.poll(() => printed).toContain(framework === "next" ? url : `${url}/report\n`);
      const { stdout } = await run(process.execPath, ["--env-file=.env", `buyer.${language}`], {
        cwd: project,
        env: { ...env, X402_URL: `${url}/report` },
      });
      expect(JSON.parse(stdout)).toEqual({ report: "all is well" });
      const origin = new URL(facilitator.url).origin;
      const bought = await runHere(["buy", `${url}/report`, "--url", origin, "--json"], {});
      expect([bought.code, JSON.parse(bought.stdout).findings]).toEqual([0, []]);
      const checked = await runHere(["check", `${url}/report`, "--facilitator", origin, "--json"], {});
      const { findings }: { findings: { name: string; level: string }[] } = JSON.parse(checked.stdout);
      expect(findings.filter(({ level }) => level === "wrong")).toEqual([]);
      expect(checked.code).toBe(0);
    } finally {
      shop.kill();
      await ended;
    }
  });
});

/** Those that Node runs; Next reads its `.env` itself. */
const programs = shops.filter(([framework]) => framework !== "next");

// Without a URL the public packages ask a facilitator on the internet.
test.for(programs)(
  "a shop with %s in %s does not start without its settings, nor does its buyer",
  async ([framework, language]) => {
    const project = await createShop(framework, language);
    for (const file of [`shop.${language}`, `buyer.${language}`]) {
      const { code, output } = await runToItsEnd(project, [file]);
      expect([code, output]).toEqual([1, expect.stringContaining(`node --env-file=.env ${file}`)]);
    }
  },
);

test.for(programs)(
  "a shop with %s in %s delivers what it has settled, once",
  { timeout: 120_000 },
  async ([framework, language]) => {
    const project = await createShop(framework, language);
    const cases = "buyer-gone,same-twice,settle-answer-lost,malformed,free-with-head";
    const options = ["--network", "base", "--cases", cases];
    const { bad, verdicts } = await judge(
      "shop",
      [process.execPath, join(project, `shop.${language}`)],
      ...options,
    );
    expect(bad).toEqual({});
    expect(verdicts).toMatchObject({ plain: "good", "buyer-gone": "good", "same-twice": "good" });
  },
);

describe("in a folder", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "x402-kit-test-"));
    return () => rm(folder, { recursive: true });
  });

  const init = async (...args: string[]) => (await runHere(["init", folder, ...args], {})).stdout;

  test.for([
    ["express", ["shop.js", "redeliver.js"]],
    ["hono", ["shop.js", "redeliver.js"]],
    ["fastify", ["shop.js", "redeliver.js", "payments.js"]],
    // The name that Next looks for, of a route that is paid once its answer is good.
    ["next", ["app/report/route.js", "app/layout.js"]],
  ] as const)("the files of %s", async ([framework, own]) => {
    const common = [
      ...["package.json", "buyer.js", "shop.test.js", "open-shop.js", "shop-command.js"],
      ...["vitest.config.ts", ".env", ".gitignore", "AGENTS.md", "README.md"],
    ];
    const { files } = JSON.parse(await init("--framework", framework, "--json"));
    const paths = files.map(({ path }: { path: string }) => path);
    expect(paths.sort()).toEqual([...own, ...common].sort());
    const { dependencies, scripts } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    expect(Object.keys(dependencies)).toContain(framework);
    expect(scripts.shop).toContain(framework === "next" ? "next dev" : "node --env-file=.env shop.js");
  });

  test("in TypeScript no file is JavaScript, and none names one", async () => {
    const { files } = JSON.parse(await init("--typescript", "--framework", "fastify", "--json"));
    const paths = files.map(({ path }: { path: string }) => path);
    expect(paths).toEqual(
      expect.arrayContaining(["tsconfig.json", "shop.ts", "payments.ts", "redeliver.ts"]),
    );
    for (const path of paths) {
      expect(path).not.toMatch(/\.js$/);
      expect(await readFile(join(folder, path), "utf8"), path).not.toMatch(/\.js\b/);
    }
    const { scripts, devDependencies } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    expect(scripts).toMatchObject({
      shop: "node --env-file=.env shop.ts",
      buy: "node --env-file=.env buyer.ts",
    });
    expect(Object.keys(devDependencies)).not.toContain("@types/express");
  });

  test("a package that was installed from a file is installed from it again", async () => {
    const file = relative(join(packed.directory, "kit"), packed.tarball);
    const manifest = join(packed.directory, "kit/package.json");
    await writeFile(
      manifest,
      JSON.stringify({ devDependencies: { "x402-facilitator-kit": `file:${file}` } }),
    );
    onTestFinished(() => rm(manifest));
    await run(process.execPath, [kit, "init", folder]);
    const { devDependencies } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    expect(devDependencies["x402-facilitator-kit"]).toBe(`file:${packed.tarball}`);
  });

  test("a new project is told its next commands", async () => {
    const text = await init();
    // From this checkout: a copy of it, since a link would bring a second vitest along.
    expect(text).toContain(`cd ${folder} && npm install --install-links\n  npm test\n`);
    // Twice is as once.
    expect(await init()).toMatch(/shop\.js +is there already$/m);
  });

  test("the keys of the .env are not for git, and a port is used wherever the shop's is named", async () => {
    await init("--port", "8080");
    expect(await readFile(join(folder, ".gitignore"), "utf8")).toMatch(/^\.env$/m);
    expect(await readFile(join(folder, "shop.js"), "utf8")).toContain('PORT = "8080"');
    expect(await readFile(join(folder, "buyer.js"), "utf8")).toContain("http://127.0.0.1:8080/report");
    for (const file of ["README.md", "AGENTS.md", "shop.js", "buyer.js"]) {
      expect(await readFile(join(folder, file), "utf8")).not.toContain("3000");
    }
    const { code, stderr } = await runHere(["init", join(folder, "other"), "--port", "70000"], {});
    expect([code, stderr]).toEqual([2, expect.stringContaining("--port")]);
    const next = await runHere(["init", join(folder, "next"), "--framework", "next", "--port", "8080"], {});
    expect(next.code).toBe(0);
    expect(await readFile(join(folder, "next/package.json"), "utf8")).toContain("--port 8080 ");
  });

  test("a dry run writes nothing, and says what it would", async () => {
    expect(await init("--dry-run")).toMatch(/shop\.js +would be written$/m);
    await expect(access(join(folder, "shop.js"))).rejects.toThrow("ENOENT");
  });

  test("what is there stays, and is told what it needs", async () => {
    const own = { "package.json": '{"name":"mine"}', ".env": "PORT=1\n", "shop.js": "// mine\n" };
    for (const [name, text] of Object.entries(own)) await writeFile(join(folder, name), text);
    const text = await init("--framework", "hono");
    for (const [name, before] of Object.entries(own)) {
      expect(await readFile(join(folder, name), "utf8")).toBe(before);
      expect(text).toMatch(
        new RegExp(`${name} +is there already, with another text, and stays as it is$`, "m"),
      );
    }
    expect(text).toContain("npm pkg set type=module\n  npm install @hono/node-server @x402/core");
    expect(text).toContain(".env needs these lines:\n\nX402_FACILITATOR_URL=http://127.0.0.1:4402/v1\n");
    expect(text).toContain("npx vitest run shop.test.js");
    expect(await readFile(join(folder, "buyer.js"), "utf8")).toContain("allowedAssets");
  });

  test("another framework is refused before anything is written", async () => {
    const { code, stderr } = await runHere(["init", folder, "--framework", "koa"], {});
    expect(code).toBe(2);
    expect(stderr).toContain("--framework");
    expect(stderr).toContain("express, hono, fastify, next");
    await expect(access(join(folder, "package.json"))).rejects.toThrow("ENOENT");
  });
});
