import { execFile } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { repository } from "../cli.ts";

/*
 * Builds the examples in compiled languages from installed packages, without downloads. Debian's packages lack the
 * secp256k1 libraries; a stand-in next to this file replaces them, through Node. Everything else is compiled unchanged.
 */

const run = promisify(execFile);
const standIns = join(repository, "test/support/examples");

/** Kept between runs, because compiling the libraries takes the longest; not in /tmp, since programs are run from it. */
const crateTarget = join(repository, "node_modules/.cache/rust-example");

/** A possible source of the libraries: arguments and variables for each call of the compiler. */
type Libraries = { args: readonly string[]; env: Record<string, string> };

type Language = {
  compiler: string;
  /** Fails if a library is missing. */
  probe: readonly string[];
  build: readonly string[];
  test: readonly string[];
  libraries(folder: string): readonly Libraries[];
  program(folder: string): string;
  /** How to install the libraries. */
  hint: string;
};

const languages = {
  go: {
    compiler: "go",
    probe: ["list", "-deps", "."],
    build: ["build", "-o", "../bin/buyer", "."],
    test: ["test", "-v", "."],
    libraries: (folder) => [
      { args: [], env: { GOPROXY: "off", GOSUMDB: "off", GOFLAGS: "-mod=mod" } },
      { args: [], env: { GO111MODULE: "off", GOPATH: `${join(folder, "stand-in")}:/usr/share/gocode` } },
    ],
    program: (folder) => join(folder, "bin/buyer"),
    hint: "`go mod download` in examples/go, or Debian's golang-golang-x-crypto-dev",
  },
  rust: {
    compiler: "cargo",
    probe: ["fetch", "--offline"],
    build: ["build", "--offline", "--quiet", "--no-default-features"],
    test: ["test", "--offline", "--quiet", "--no-default-features"],
    libraries: () => {
      const debian = [
        `source.crates-io.replace-with="debian"`,
        `source.debian.directory="/usr/share/cargo/registry"`,
        `patch.crates-io.k256.path="${join(standIns, "rust")}"`,
      ];
      const env = { CARGO_TARGET_DIR: crateTarget };
      return [
        { args: [], env },
        { args: debian.flatMap((setting) => ["--config", setting]), env },
      ];
    },
    program: () => join(crateTarget, "debug/x402-buyer"),
    hint: "`cargo fetch` in examples/rust, or Debian's librust-{data-encoding,serde-json,sha3,ureq}-dev",
  },
} as const satisfies Record<string, Language>;

export type Example = AsyncDisposable & {
  /** Runs the example's own tests. */
  test(): Promise<void>;
  /** Starts the program; returns its output. */
  run(variables: Record<string, string>): Promise<{ code: number; stdout: string; stderr: string }>;
};

/** @returns undefined if the compiler or libraries are not installed, after printing a warning */
export async function buildExample(name: keyof typeof languages): Promise<Example | undefined> {
  const language: Language = languages[name];
  const folder = await mkdtemp(join(tmpdir(), `x402-kit-${name}-`));
  const source = join(folder, "example");
  await cp(join(repository, "examples", name), source, { recursive: true });
  await cp(join(standIns, "go"), join(folder, "stand-in/src/github.com/decred/dcrd/dcrec/secp256k1/v4"), {
    recursive: true,
  });
  const compile = (args: readonly string[], libraries: Libraries) =>
    run(language.compiler, [...args.slice(0, 1), ...libraries.args, ...args.slice(1)], {
      cwd: source,
      env: { ...process.env, ...forPrograms, ...libraries.env },
    });

  for (const libraries of language.libraries(folder)) {
    try {
      await compile(language.probe, libraries);
    } catch (error) {
      if (Reflect.get(Object(error), "code") === "ENOENT") break;
      continue;
    }
    await compile(language.build, libraries);
    return {
      test: async () => void (await compile(language.test, libraries)),
      run: (variables) => runToEnd(language.program(folder), variables),
      [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
    };
  }
  await rm(folder, { recursive: true, force: true });
  console.warn(
    `examples/${name} was not run: there is no ${language.compiler} here, or its libraries are not (${language.hint})`,
  );
  return undefined;
}

/** The path to Node for the stand-ins, and to the vectors for the examples' own tests. */
const forPrograms = {
  TEST_NODE: process.execPath,
  TEST_SECP256K1: join(standIns, "secp256k1.ts"),
  X402_VECTORS: join(repository, "fixtures/signature-vectors.json"),
};

async function runToEnd(program: string, variables: Record<string, string>) {
  const options = { env: { ...forPrograms, ...variables }, timeout: 60_000 };
  try {
    return { code: 0, ...(await run(program, [], options)) };
  } catch (error) {
    const { code, stdout, stderr } = Object(error);
    if (typeof code !== "number") throw error;
    return { code, stdout: String(stdout), stderr: String(stderr) };
  }
}
