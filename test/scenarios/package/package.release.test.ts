import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { isBuiltin } from "node:module";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { satisfies } from "semver";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { migrate, openDatabase } from "../../../src/ledger/database/open-database.ts";
import { createOrganizations } from "../../../src/service/organizations/create-organizations.ts";
import { childEnvironment } from "../../support/child-environment.ts";
import { start } from "../../support/cli.ts";
import { organizationsProgram, pepper } from "../../support/package/organizations-program.ts";
import {
  createOutsideProject,
  link,
  type Manifest,
  type PackedPackage,
  packPackage,
} from "../../support/package/outside-project.ts";
import { runToItsEnd } from "../../support/package/run-to-its-end.ts";

/* The package as others get it: packed, and installed in projects that have nothing of this repository. */

const examples = fileURLToPath(new URL("../../../examples", import.meta.url));

let packed: PackedPackage;
let root: string;
let installed: string;
let manifest: Manifest;
beforeAll(async () => {
  packed = await packPackage();
  ({ root, manifest } = await createOutsideProject(packed, "empty"));
  installed = join(root, "node_modules", "x402-facilitator-kit");
  await link(root, "@types/node");
}, 120_000);
afterAll(async () => {
  await packed?.[Symbol.asyncDispose]();
});

/** Runs a program to its end, in a project; gives all that it has printed. */
async function run(
  cwd: string,
  file: string,
  args: readonly string[],
): Promise<{ code: number; output: string }> {
  const child = spawn(file, args, {
    cwd,
    // The oldest Node calls its SQLite experimental.
    env: { ...childEnvironment(), NO_COLOR: "1", NODE_OPTIONS: "--disable-warning=ExperimentalWarning" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
  const [code] = await once(child, "close");
  return { code, output };
}

const entryPoints = () =>
  Object.keys(manifest.exports)
    // Data is imported by a statement that says so.
    .filter((name) => !name.endsWith(".json"))
    .map((name) => name.replace(/^\./, manifest.name));

/** Compiles a file of a project, the empty one by default, and keeps nothing. */
async function checkTypes(
  file: string,
  { project = root, options = [] }: { project?: string; options?: readonly string[] } = {},
): Promise<{ code: number; output: string }> {
  const compiler = fileURLToPath(new URL("../../../node_modules/typescript/bin/tsc", import.meta.url));
  const usual =
    "--noEmit --strict --target es2024 --module nodenext --types node --skipLibCheck --checkers 1".split(" ");
  const lib = ["--lib", "es2024,esnext.disposable,dom"];
  return run(project, process.execPath, [compiler, ...usual, ...lib, ...options, file]);
}

/** As the compiler writes them: a statement at the start of a line, and `import("…")` anywhere. */
const importPattern =
  /^(?:import|export)\s[^"=()]*\bfrom "([^"]+)"|^import "([^"]+)"|\bimport\("([^"]+)"\)/gm;

describe("the package", () => {
  test("has types that are resolved as what is imported is, whatever resolves them", async () => {
    const result = await checkPackage(createPackageFromTarballData(await readFile(packed.tarball)));
    if (result.types === false) throw new Error("it has no types");
    const found = result.problems.map(({ kind, ...problem }) => [
      kind,
      "resolutionKind" in problem ? problem.resolutionKind : "",
      "entrypoint" in problem ? problem.entrypoint : "",
    ]);
    // It has ES modules alone, which CommonJS requires from Node 22 on; and what TypeScript 4 resolved knows no exports.
    const wanted = ([kind, resolution]: string[]) =>
      !(kind === "CJSResolvesToESM" && resolution === "node16-cjs") && resolution !== "node10";
    expect(found.filter(wanted)).toEqual([]);
    const names = Object.keys(result.entrypoints);
    expect(names).toEqual(Object.keys(manifest.exports));
  });

  test("can be imported at every entry point, by a project that has installed nothing else", async () => {
    // What needs the test runner can be imported only within it.
    const names = entryPoints().filter((name) => !/\/vitest$/.test(name));
    expect(names.length).toBeGreaterThan(3);
    const script = `for (const name of ${JSON.stringify(names)}) {
      const { length } = Object.keys(await import(name));
      if (length === 0) throw new Error(name + " exports nothing");
    }`;
    expect(await run(root, process.execPath, ["--input-type=module", "--eval", script])).toEqual({
      code: 0,
      output: "",
    });
  });

  test("has the scenarios and the signature vectors as JSON, each with its schema beside it", async () => {
    for (const name of ["scenarios", "signature-vectors"]) {
      const path = join(installed, "fixtures", `${name}.json`);
      expect(manifest.exports[`./fixtures/${name}.json`]).toBe(`./fixtures/${name}.json`);
      const { $schema } = JSON.parse(await readFile(path, "utf8"));
      const schema = JSON.parse(await readFile(join(installed, "fixtures", $schema), "utf8"));
      expect(schema.$schema).toContain("json-schema.org");
    }
  });

  test("answers as a facilitator in a program that has nothing else", async () => {
    const script = `import { setupServer } from "msw/node";
      import { createFixtures } from "x402-facilitator-kit/fixtures";
      setupServer(...createFixtures({ baseUrl: "https://facilitator.example" }).handlers).listen();
      const { kinds } = await (await fetch("https://facilitator.example/v1/supported")).json();
      console.log(kinds.length);`;
    expect(await run(root, process.execPath, ["--input-type=module", "--eval", script])).toEqual({
      code: 0,
      output: "20\n",
    });
  });

  test("has types at every entry point, also for projects that check the types of their libraries", async () => {
    const imports = entryPoints().map((name, index) => `export * as e${index} from "${name}";`);
    await writeFile(join(root, "index.ts"), `${imports.join("\n")}\n`);
    const { output } = await checkTypes("index.ts", { options: ["--skipLibCheck", "false"] });
    // Other packages' own types may be wrong.
    expect(output.split("\n").filter((line) => /x402-facilitator-kit|^index\.ts/.test(line))).toEqual([]);
  });

  test("administers organizations for a user's program, whose types hold", async () => {
    const program = join(root, "organizations.mts");
    await writeFile(program, organizationsProgram);
    expect(await checkTypes("organizations.mts")).toEqual({ code: 0, output: "" });
    const url = `sqlite:${join(root, "facilitator.db")}`;
    const runProgram = async () => JSON.parse((await run(root, process.execPath, [program, url])).output);
    expect(await runProgram()).toEqual({
      message: `There is no database ${url}`,
      hints: ["npx --no-install x402-kit migrate creates it."],
    });
    const db = await openDatabase({ url });
    await migrate(db);
    const { id, key, keys, actors } = await runProgram();
    expect(keys).toBe(1);
    expect(actors).toEqual(["sign-up", "sign-up", "sign-up", "sign-up"]);
    expect(await createOrganizations({ db, pepper, now: Date.now }).authenticate(key)).toMatchObject({
      organization: { id, name: "Their shop", limits: { base: { minimumAmount: 10_000n } } },
      scopes: ["verify", "settle"],
    });
    await db.destroy();
  });

  test.each([
    ["vitest", ["3.0.0", "3.2.4", "4.0.0", "4.1.0", "5.0.0", "5.1.1"], ["2.1.9"]],
    ["msw", ["2.10.0", "2.15.0", "3.0.0", "3.0.5"], ["2.9.0", "4.0.0"]],
    ["@opentelemetry/api", ["1.9.0", "1.10.0"], ["1.8.0", "2.0.0"]],
  ])("installs beside the versions of %s that it works with, and without it", (name, good, bad) => {
    const range = manifest.peerDependencies?.[name] ?? "";
    for (const version of good) expect([version, satisfies(version, range)]).toEqual([version, true]);
    for (const version of bad) expect([version, satisfies(version, range)]).toEqual([version, false]);
    expect(manifest.peerDependenciesMeta?.[name]).toEqual({ optional: true });
    // A version of its own would stand beside the project's.
    expect({ ...manifest.dependencies, ...manifest.optionalDependencies }).not.toHaveProperty([name]);
  });

  test("imports nothing that it does not declare, in code and in types", async () => {
    const { dependencies, optionalDependencies, peerDependencies } = manifest;
    const declared = new Set(
      Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies, [manifest.name]: "" }),
    );
    const found = new Set<string>();
    let imports = 0;
    const dist = join(installed, "dist");
    for (const file of await readdir(dist, { recursive: true })) {
      // The page is one file with all that it needs, and shows shops, which import what they need.
      if (!/\.(js|d\.ts)$/.test(file) || file.startsWith("studio-page")) continue;
      const text = await readFile(join(dist, file), "utf8");
      for (const [, ...specifiers] of text.matchAll(importPattern)) {
        const specifier = specifiers.find((found) => found !== undefined) ?? "";
        imports++;
        if (specifier.startsWith(".")) continue;
        const name = specifier
          .split("/")
          .slice(0, specifier.startsWith("@") ? 2 : 1)
          .join("/");
        if (!isBuiltin(specifier) && !declared.has(name)) found.add(`${file}: ${specifier}`);
      }
    }
    expect([...found]).toEqual([]);
    expect(imports).toBeGreaterThan(500);
  });

  test("its command needs none of the optional packages but anvil itself, so that a server is installed without them", async () => {
    const optional = Object.keys(manifest.optionalDependencies ?? {});
    expect(optional).toContain("viem");
    const bundle = join(installed, "dist/bundle");
    const needing = new Set<string>();
    for (const file of await readdir(bundle)) {
      const text = await readFile(join(bundle, file), "utf8");
      for (const [, ...specifiers] of text.matchAll(importPattern)) {
        const specifier = specifiers.find((found) => found !== undefined) ?? "";
        if (optional.some((name) => specifier === name || specifier.startsWith(`${name}/`)))
          needing.add(specifier);
      }
    }
    expect([...needing]).toEqual([]);
  });

  test("holds what its manifest names, and no tests", async () => {
    const targets = Object.values(manifest.exports).flatMap((entry) =>
      typeof entry === "string" ? [entry] : Object.values(entry),
    );
    for (const target of [...targets, ...Object.values(manifest.bin)]) {
      expect((await stat(join(installed, target))).isFile(), target).toBe(true);
    }
    const files = await readdir(installed, { recursive: true });
    // What `init` writes has a test, which is not one of this package.
    expect(files.filter((file) => /\.test\.|\/testing\//.test(file))).toEqual([
      "templates/common/shop.test.js",
      "templates/common/shop.test.ts",
    ]);
  });

  test("its command serves the studio and the page about the API, without the libraries they were made with", async () => {
    const bin = join(installed, manifest.bin["x402-kit"] ?? "");
    await using up = await start(
      process.execPath,
      [bin, "up", "--port", "0", "--json", "--no-demo", "--networks", "base"],
      { cwd: root },
    );
    const [description] = await up.printed(/^{.*}$/m);
    const { origin } = new URL(JSON.parse(description).facilitator.url);
    for (const [path, least] of [
      ["/studio", 100_000],
      ["/docs", 4_000_000],
    ] as const) {
      const page = await fetch(origin + path);
      const [, source = ""] = /src="([^"]+\.js[^"]*)"/.exec(await page.text()) ?? [];
      const { length } = await (await fetch(new URL(source, page.url))).text();
      expect({ path, source, length }).toSatisfy(() => source !== "" && length > least);
    }
    expect(Object.keys(manifest.dependencies ?? {}).filter((name) => /scalar|preact/.test(name))).toEqual([]);
  });

  test("has what README.md, its guides and llms.txt link to", async () => {
    const files = await readdir(installed, { recursive: true });
    const pages = ["README.md", "llms.txt", ...files.filter((file) => /^docs\/guides\/.*\.md$/.test(file))];
    const missing: string[] = [];
    for (const page of pages) {
      const text = await readFile(join(installed, page), "utf8");
      for (const [, path = ""] of text.matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)) {
        const target = join(installed, page, "..", path);
        await stat(target).catch(() => missing.push(`${page}: ${path}`));
      }
    }
    expect(missing).toEqual([]);
  });

  test("is built anew whenever it is packed or published", () => {
    expect(manifest.scripts).toMatchObject({ build: "node scripts/build.ts", prepare: "npm run build" });
  });

  test("is as publint wants packages to be", async () => {
    const { messages, pkg } = await publint({ pkgDir: installed, strict: true, pack: false });
    expect(messages.map((message) => formatMessage(message, pkg))).toEqual([]);
  });

  test("has a command that runs", async () => {
    const bin = join(installed, manifest.bin["x402-kit"] ?? "");
    expect(await run(root, process.execPath, [bin, "--version"])).toEqual({
      code: 0,
      output: `${manifest.version}\n`,
    });
  });

  test("names the page to read on where it is installed", async () => {
    const bin = join(installed, manifest.bin["x402-kit"] ?? "");
    const { output } = await run(root, process.execPath, [bin, "explain", "no payment"]);
    const [, file = ""] = /more: +(\S+)#not-json$/m.exec(output) ?? [];
    expect(file).toBe("node_modules/x402-facilitator-kit/docs/errors.md");
    expect(existsSync(join(root, file))).toBe(true);
  });

  describe("on a Node that is too old, says so before anything that it lacks", () => {
    const refusal = (version: string) =>
      `x402-kit needs Node 22.18 or newer, and this is ${version}\n` +
      "  For this project: npm install --save-dev node@24; once: npx -p node@24 x402-kit …\n";
    const command = () => [join(installed, manifest.bin["x402-kit"] ?? ""), "up"];

    test.each(["18.20.8", "20.20.2", "22.17.1"])("%s, as it calls itself", async (version) => {
      const versions = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } })`;
      const renamed = ["--import", `data:text/javascript,${encodeURIComponent(versions)}`];
      expect(await run(root, process.execPath, [...renamed, ...command()])).toEqual({
        code: 1,
        output: refusal(version),
      });
    });

    const old = findOldNode();
    test.each(old === undefined ? [] : [old])(
      "$version, which this machine has",
      async ({ path, version }) => {
        // It does not know the option of `run` that silences warnings.
        const { status, stdout, stderr } = spawnSync(path, command(), {
          env: childEnvironment(),
          encoding: "utf8",
        });
        expect([status, stdout, stderr]).toEqual([1, "", refusal(version)]);
      },
    );

    test.each(
      old === undefined
        ? []
        : [
            { ...old, entry: "harness", call: "createHarness()" },
            { ...old, entry: "pool", call: "startHarnessPool()" },
            { ...old, entry: "vitest/global-setup", call: "createGlobalSetup()" },
          ],
    )("$version, in a program that calls $call", ({ path, version, entry, call }) => {
      const program = `import * as kit from "x402-facilitator-kit/${entry}"; await kit.${call};`;
      const { status, stderr } = spawnSync(path, ["--input-type=module", "--eval", program], {
        ...{ cwd: root, env: childEnvironment(), encoding: "utf8" },
      });
      expect(stderr).toContain(
        `KitError: x402-facilitator-kit needs Node 22.18 or newer, and this is ${version}`,
      );
      expect(status).toBe(1);
    });
  });
});

/** A Node on the PATH that is older than the package allows, if there is one. */
function findOldNode(): { path: string; version: string } | undefined {
  return (process.env.PATH ?? "")
    .split(delimiter)
    .map((directory) => join(directory, "node"))
    .filter((path) => existsSync(path))
    .map((path) => {
      const { stdout } = spawnSync(path, ["--version"], { encoding: "utf8" });
      return { path, version: stdout.trim().replace(/^v/, "") };
    })
    .find(({ version }) => !satisfies(version, ">=22.18"));
}

describe("a project with a viem of its own", () => {
  test.for([
    { beside: "the newest that was tried", viem: "viem", isShared: true },
    {
      beside: "the oldest of the range, which npm then gives to the package too",
      viem: "viem-2-21",
      isShared: true,
    },
    { beside: "one out of the range, with another for the package", viem: "viem-2-21", isShared: false },
  ])(
    "$beside, has types that fit where there is one viem, and is paid",
    {
      timeout: 120_000,
    },
    async ({ viem, isShared }) => {
      const { root: project } = await createOutsideProject(packed, `${viem}-${isShared}`);
      await link(project, "viem", viem);
      if (isShared) {
        await link(project, "@types/node");
        const source = fileURLToPath(new URL("../../support/package/neighbours.ts", import.meta.url));
        const text = await readFile(source, "utf8");
        await writeFile(
          join(project, "neighbours.mts"),
          text.replaceAll("../../../src/harness/index.ts", "x402-facilitator-kit/harness"),
        );
        expect(await checkTypes("neighbours.mts", { project })).toEqual({ code: 0, output: "" });
      } else {
        await link(join(project, "node_modules", "x402-facilitator-kit"), "viem");
      }
      const program = `
      import { createHarness } from "x402-facilitator-kit/harness";
      import { createPublicClient, custom } from "viem";
      const harness = await createHarness({ networks: ["base"] });
      const { settle } = await harness.pay({ network: "base" });
      const own = createPublicClient({ transport: custom(harness.networks.base.client) });
      const receipt = await own.getTransactionReceipt({ hash: settle.body.transaction });
      console.log(receipt.status);
      await harness.close();`;
      expect(await run(project, process.execPath, ["--input-type=module", "--eval", program])).toEqual({
        code: 0,
        output: "success\n",
      });
    },
  );
});

describe("the example", () => {
  test.for(["merchant", "channels"])(
    "%s passes as a project of its own",
    { timeout: 120_000 },
    async (name) => {
      const project = await createOutsideProject(packed, name, join(examples, name));
      // As npm would: the command of the test runner.
      await mkdir(join(project.root, "node_modules", ".bin"));
      await symlink("../vitest/vitest.mjs", join(project.root, "node_modules", ".bin", "vitest"));
      const { code, output } = await run(project.root, "npm", ["test"]);
      expect(code, output).toBe(0);
      expect(output).toMatch(/Tests +\d+ passed \(\d+\)/);
    },
  );
});

describe("test runners that lease harnesses of a pool, as examples/runners has them", () => {
  let project: string;
  beforeAll(async () => {
    ({ root: project } = await createOutsideProject(packed, "runners", join(examples, "runners")));
  });
  const bin = (path: string) => join(project, "node_modules", path);

  // The guide says what to do where Node has no such option.
  const hasGlobalSetup = process.allowedNodeEnvironmentFlags.has("--test-global-setup");
  test.runIf(hasGlobalSetup)("node:test: files at the same time are not in each other's way", async () => {
    await cp(join(project, "test/shop.test.mjs"), join(project, "test/other.test.mjs"));
    const args = ["--test", "--test-global-setup=test/setup.mjs", "test/*.test.mjs"];
    const { code, output, left } = await runToItsEnd(project, args);
    expect(output).toContain("pass 4");
    expect([code, left]).toEqual([0, []]);
  });

  test("Playwright: each test leases a harness of its own", async () => {
    const args = [bin("@playwright/test/cli.js"), "test", "--workers", "2", "--reporter", "line"];
    const { code, output, left } = await runToItsEnd(project, args);
    expect(output).toContain("2 passed");
    expect([code, left]).toEqual([0, []]);
  });

  test("Jest: twelve tests in two workers, each with a harness that it alone pays through", async () => {
    for (const name of ["a", "b", "c", "d", "e"]) {
      await cp(join(project, "shop.jest.mjs"), join(project, `${name}.jest.mjs`));
    }
    const jest = (...args: string[]) =>
      runToItsEnd(project, [bin("jest/bin/jest.js"), ...args], {
        NODE_OPTIONS: "--experimental-vm-modules",
      });
    const { code, output, left } = await jest("--maxWorkers=2");
    expect(output).toContain("Tests:       12 passed, 12 total");
    // Jest gives its workers half a second to end, which a busy machine may need: only this tells a leak.
    const alone = await jest("--detectOpenHandles", "shop.jest.mjs");
    expect(alone.output).toContain("Tests:       2 passed, 2 total");
    expect(alone.output).not.toContain("Jest has detected");
    expect(alone.code).toBe(0);
    expect([code, left]).toEqual([0, []]);
  });
});
