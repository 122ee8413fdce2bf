/**
 * Judges the public packages in the registry and writes docs/compatibility.md: installs them into a folder, runs
 * `x402-kit judge` with each program in scripts/compatibility/ and with those that `init` writes, and reads the judged
 * versions.
 *
 *     node scripts/compatibility.ts [FOLDER]
 *
 * A folder that already contains an installation is used as is. If a bad verdict has not been examined (see
 * scripts/compatibility/attributions.ts), the script exits with 1 and writes nothing.
 */
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { attributionOf } from "./compatibility/attributions.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

/** `ways` is the payment method to judge by, if not "eip3009". */
type Subject = { kind: "client" | "shop"; name: string; protocol: "v1" | "v2"; ways?: string };

const subjects: readonly Subject[] = [
  { kind: "client", name: "x402-fetch", protocol: "v1" },
  { kind: "client", name: "x402-axios", protocol: "v1" },
  { kind: "client", name: "@x402/fetch", protocol: "v2" },
  { kind: "client", name: "@x402/axios", protocol: "v2" },
  { kind: "client", name: "@x402/evm", protocol: "v2", ways: "batch-settlement" },
  { kind: "shop", name: "x402-express", protocol: "v1" },
  { kind: "shop", name: "x402-hono", protocol: "v1" },
  { kind: "shop", name: "@x402/express", protocol: "v2" },
  { kind: "shop", name: "@x402/hono", protocol: "v2" },
  { kind: "shop", name: "x402-next", protocol: "v1" },
  { kind: "shop", name: "@x402/next", protocol: "v2" },
  { kind: "shop", name: "@x402/evm", protocol: "v2", ways: "batch-settlement" },
];

/** The subjects, and the packages that they need. */
const manifest = {
  name: "x402-compatibility",
  private: true,
  type: "module",
  dependencies: {
    ...Object.fromEntries(subjects.map(({ name }) => [name, "latest"])),
    "@x402/core": "latest",
    "@x402/evm": "latest",
    "@hono/node-server": "latest",
    axios: "latest",
    express: "latest",
    hono: "latest",
    viem: "2.57.1",
    next: "latest",
    react: "latest",
    "react-dom": "latest",
  },
  // The packages ask for different versions, which would sign with classes of different kinds.
  overrides: { viem: "$viem" },
};

const judgment = z.object({
  findings: z.array(z.object({ name: z.string(), verdictText: z.string(), level: z.string() })),
});

type Found = z.infer<typeof judgment>["findings"][number];

const isBad = ({ level }: Found) => level === "wrong" || level === "differs";

type Judged = Subject & { version: string; findings: readonly Found[] };

const folder = process.argv[2] ?? (await mkdtemp(join(tmpdir(), "x402-compatibility-")));
await install(folder);
const judged: Judged[] = [];
for (const subject of subjects) {
  console.error(`judging ${subject.name}`);
  judged.push({ ...subject, ...(await judge(subject)) });
}
const unknown = judged.flatMap(({ kind, name, findings }) =>
  findings
    .filter((finding) => isBad(finding) && attributionOf(kind, name, finding.name) === undefined)
    .map((finding) => `${name}: ${finding.name}: ${finding.verdictText}`),
);
if (unknown.length > 0) {
  console.error("Look at these, and say whose fault they are in scripts/compatibility/attributions.ts:");
  console.error(unknown.map((line) => `  ${line}`).join("\n"));
  process.exitCode = 1;
} else {
  await writeFile(join(root, "docs/compatibility.md"), renderPage(judged, new Date()));
}

async function install(at: string): Promise<void> {
  await mkdir(at, { recursive: true });
  for (const kind of ["clients", "shops", "next"]) {
    await cp(join(root, "scripts/compatibility", kind), join(at, kind), { recursive: true });
  }
  // The programs that `init` writes are judged unchanged.
  const written = join(root, "templates");
  await cp(join(written, "common/buyer.js"), join(at, "clients/@x402-fetch.mjs"));
  await cp(join(written, "next/app"), join(at, "next/@x402-next/app"), {
    recursive: true,
    filter: (path) => !/\.tsx?$/.test(path),
  });
  await cp(join(written, "next/app/layout.js"), join(at, "next/x402-next/app/layout.js"));
  for (const app of ["x402-next", "@x402-next"]) {
    await cp(join(at, "next", app, "app/report"), join(at, "next", app, "app/other"), { recursive: true });
  }
  if (await stat(join(at, "node_modules")).catch(() => undefined)) return;
  await writeFile(join(at, "package.json"), JSON.stringify(manifest, null, 2));
  await run("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], at);
}

async function judge({
  kind,
  name,
  ways = "eip3009",
}: Subject): Promise<Pick<Judged, "version" | "findings">> {
  const file = name.replace("/", "-");
  // Next compiles a route on its first request.
  const isNext = name.endsWith("next");
  const program = isNext ? ["next/start.mjs", `next/${file}`] : [`${kind}s/${file}.mjs`];
  const bin = join(root, "src/cli/bin.ts");
  const options = ["--json", "--ways", ways, "--timeout", isNext ? "90" : "30"];
  const args = [bin, "judge", kind, ...options, "--", process.execPath, ...program];
  const { findings } = judgment.parse(JSON.parse(await run(process.execPath, args, folder)));
  const installed = await readFile(join(folder, "node_modules", name, "package.json"), "utf8");
  return { version: z.object({ version: z.string() }).parse(JSON.parse(installed)).version, findings };
}

/** The output of a command. It may exit with 1, as the judge does if it found something. */
function run(file: string, args: readonly string[], cwd: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  execFile(file, args, { cwd, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
    if (error !== null && stdout === "") reject(new Error(`${file} ${args.join(" ")}: ${stderr}`));
    else resolve(stdout);
  });
  return promise;
}

function renderPage(all: readonly Judged[], date: Date): string {
  const table = (kind: Subject["kind"]) => [
    "| package | version | protocol | cases | good | bad |",
    "|---|---|---|---|---|---|",
    ...all
      .filter((one) => one.kind === kind)
      .map(({ name, version, protocol, ways, findings }) => {
        const bad = findings.filter(isBad);
        const good = findings.filter(({ level }) => level === "good").length;
        const shown = bad.length === 0 ? "none" : bad.map((one) => `${one.name}`).join(", ");
        const shownName = ways === undefined ? name : `${name}, ${ways}`;
        return `| ${shownName} | ${version} | ${protocol} | ${findings.length} | ${good} | ${shown} |`;
      }),
  ];
  const found = all.flatMap(({ kind, name, findings }) =>
    findings.filter(isBad).map((finding) => ({ kind, subject: name, ...finding })),
  );
  const bad = Map.groupBy(found, ({ kind, name, verdictText, subject }) => {
    const { whose, why } = attributionOf(kind, subject, name) ?? { whose: "", why: "" };
    return `| ${name} | **${verdictText}** | ${whose} | ${why} |`;
  });
  return [
    "# Compatibility",
    "",
    "What [`x402-kit judge`](guides/judge.md) finds out about the public packages of the npm registry, each used as its own",
    "documentation shows, in a program of a dozen lines ([scripts/compatibility](../scripts/compatibility); of `@x402/fetch` and",
    "`@x402/next` what `init` writes, [templates](../templates)). Generated by",
    `\`node scripts/compatibility.ts\` on ${date.toISOString().slice(0, 10)}, with Node ${process.versions.node}, on the local`,
    "chain of base-sepolia. Versions are the newest that the registry gave that day.",
    "",
    "## Clients",
    "",
    ...table("client"),
    "",
    "## Servers",
    "",
    ...table("shop"),
    "",
    "`@x402/fastify` is missing: the registry that was asked did not have it. Packages of other languages are missing, since",
    "none could be installed there.",
    "",
    "## Bad verdicts",
    "",
    "Each was looked at by hand. “The protocol's” means that the package does what the protocol says, and the protocol does",
    "not say what is to be done there.",
    "",
    "| case | verdict | whose | why | packages |",
    "|---|---|---|---|---|",
    ...[...bad].map(([line, ofCase]) => `${line} ${ofCase.map(({ subject }) => subject).join(", ")} |`),
    "",
    "What passes every case is [examples/buyer](../examples/buyer) with `@x402/fetch`, and",
    "[examples/merchant](../examples/merchant) with `@x402/express`: the first sends its payment again when the answer is lost",
    "or bad, the second delivers what it has settled when a payment comes again whose buyer was gone.",
    "",
  ].join("\n");
}
