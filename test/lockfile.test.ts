import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { completeLockfile, findLockProblems } from "../scripts/lockfile.ts";
import { listenOnLoopback } from "./support/loopback-server.ts";

const integrity =
  "sha512-0pfFzegeDWJHJIAmTLRP2DwHjdF5s7jo9tuztdQxAhINCdvS+3nGINqPd00AphqJR/0LhANUS6/+7SCb98YOfA==";
const lock = (packages: object) => JSON.stringify({ packages: { "": { name: "kit" }, ...packages } });

test("the lockfile pins every package by its bytes, but for those that are listed with a reason", () => {
  expect(findLockProblems(readFileSync(join(import.meta.dirname, "../package-lock.json"), "utf8"))).toEqual(
    [],
  );
});

test("an entry without integrity, a private registry and a list that is out of date are found", () => {
  const text = lock({
    "node_modules/good": { version: "1.0.0", integrity },
    "node_modules/good/node_modules/@some/loose": { version: "2.0.0" },
    "node_modules/internal": { version: "3.0.0", integrity, resolved: "https://npm.example/internal.tgz" },
    "node_modules/public": { version: "4.0.0", integrity, resolved: "https://registry.npmjs.org/public.tgz" },
    "node_modules/tool-mac": { version: "5.0.0" },
    "node_modules/tool-win": { version: "5.0.0", integrity },
  });
  expect(findLockProblems(text, { "tool-*@5.0.0": ["mac", "win", "bsd"] })).toMatchInlineSnapshot(`
    [
      "@some/loose@2.0.0 has no integrity: what npm installs for it is not checked. Install it again with npm, so that it gets one",
      "internal@3.0.0 comes from npm.example, which others cannot reach: set npm's omit-lockfile-registry-resolved, and install again",
      "tool-win@5.0.0 has its integrity: take it off the list in scripts/lockfile.ts",
      "tool-bsd@5.0.0 is not in the lockfile: take it off the list in scripts/lockfile.ts",
    ]
  `);
});

describe("a missing integrity", () => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const key = publicKey.export({ format: "der", type: "spki" }).toString("base64");
  const bytes = Buffer.from("a binary for another platform");
  const hash = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
  const incomplete = lock({
    "node_modules/good": { version: "1.0.0", integrity },
    "node_modules/good/node_modules/@some/tool-mac": { version: "5.0.0", cpu: ["arm64"] },
  });

  /** A registry's answer about the package; by default all is well. */
  type Registry = { keyid?: string; signed?: string; served?: Buffer; tarball?: string; status?: number };

  async function complete(given: Registry): Promise<Awaited<ReturnType<typeof completeLockfile>>> {
    const {
      keyid = "SHA256:a",
      signed = `@some/tool-mac@5.0.0:${hash}`,
      served = bytes,
      status = 200,
    } = given;
    const registry = await listenOnLoopback(({ url }, response) => {
      const answers: Record<string, unknown> = {
        "/-/npm/v1/keys": { keys: [{ keyid: "SHA256:a", key }] },
        "/@some/tool-mac/5.0.0": {
          dist: {
            integrity: hash,
            tarball: given.tarball ?? `${registry.origin}/tool.tgz`,
            signatures: [{ keyid, sig: sign("sha256", Buffer.from(signed), privateKey).toString("base64") }],
          },
        },
      };
      if (url === "/tool.tgz") response.writeHead(status).end(served);
      else response.end(JSON.stringify(answers[url ?? ""]));
    });
    try {
      return await completeLockfile(incomplete, registry.origin);
    } finally {
      await registry.close();
    }
  }

  test("is added, where the registry has signed it and serves what has it", async () => {
    const { text, added } = await complete({});
    expect(added).toEqual(["@some/tool-mac@5.0.0"]);
    expect(findLockProblems(text, {})).toEqual([]);
    const { packages } = JSON.parse(text);
    expect(packages["node_modules/good/node_modules/@some/tool-mac"]).toEqual({
      version: "5.0.0",
      cpu: ["arm64"],
      integrity: hash,
    });
    expect(packages["node_modules/good"]).toEqual({ version: "1.0.0", integrity });
    expect(await completeLockfile(text, "http://127.0.0.1:1")).toEqual({ text, added: [] });
  });

  const foreign = "http://127.0.0.1:1/tool.tgz";
  test.each<[string, Registry, string]>([
    [
      "of another version is signed",
      { signed: `@some/tool-mac@5.0.1:${hash}` },
      "the registry has not signed its integrity",
    ],
    ["is signed by an unknown key", { keyid: "SHA256:b" }, "the registry has not signed its integrity"],
    [
      "is of other bytes",
      { served: Buffer.from("evil") },
      "the registry serves other bytes than it has signed",
    ],
    ["is of bytes elsewhere", { tarball: foreign }, "it would be loaded from http://127.0.0.1:1"],
    ["is of bytes that are not there", { status: 404 }, "/tool.tgz answered 404"],
  ])("that %s is not added, which says why", async (_, registry, problem) => {
    await expect(complete(registry)).rejects.toThrow(
      `The integrity of these packages could not be confirmed:\n  @some/tool-mac@5.0.0: ${problem}`,
    );
  });
});
