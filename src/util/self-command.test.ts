import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { commandOf, inShell, packageFile, requireNode, shownPackageFile } from "./self-command.ts";

afterEach(() => void vi.restoreAllMocks());

test.each(["20.20.2", "22.17.1", "18.0.0"])("Node %s is refused, by name", (version) => {
  expect(() => requireNode(version)).toThrow(
    `x402-facilitator-kit needs Node 22.18 or newer, and this is ${version}`,
  );
});

test.each(["22.18.0", "24.21.0", "26.0.0"])("Node %s will do", (version) => {
  expect(() => requireNode(version)).not.toThrow();
});

const root = packageFile("");

test.each([
  ["the package itself", root, "docs/errors.md"],
  ["a folder that it is installed below", dirname(dirname(root)), null],
  ["another folder", join(root, "src"), packageFile("docs/errors.md")],
])("a file of the package is named so that it is found from %s", (_, folder, named) => {
  vi.spyOn(process, "cwd").mockReturnValue(folder);
  const shown = shownPackageFile("docs/errors.md") ?? "";
  if (named !== null) expect(shown).toBe(named);
  expect(shown.startsWith("..")).toBe(false);
  expect(existsSync(join(shown.startsWith("/") ? "/" : folder, shown))).toBe(true);
});

test("a file of the package is named whole where the working directory is gone", () => {
  vi.spyOn(process, "cwd").mockImplementation(() => {
    throw new Error("ENOENT: process.cwd failed");
  });
  expect(shownPackageFile("docs/errors.md")).toBe(packageFile("docs/errors.md"));
});

test("a file that the package does not have where it runs is not named", () => {
  expect(shownPackageFile("docs/no-such-page")).toBeUndefined();
});

test.each([
  ["an installed package", "/shop/node_modules/.bin/x402-kit", "npx --no-install x402-kit"],
  [
    "a package installed on Windows",
    "C:\\shop\\node_modules\\x402-facilitator-kit\\dist\\cli\\bin.js",
    "npx --no-install x402-kit",
  ],
  ["a script that uses the library", "/shop/server.js", "npx --no-install x402-kit"],
  ["a global installation", "/usr/local/bin/x402-kit", "x402-kit"],
  ["a checkout, from it", join(root, "src/cli/bin.ts"), "node src/cli/bin.ts"],
  ["a checkout, from elsewhere", "/opt/the kit/dist/cli/bin.js", 'node "/opt/the kit/dist/cli/bin.js"'],
])("advice names the program as %s was started", (_, file, command) => {
  vi.spyOn(process, "cwd").mockReturnValue(root.replace(/\/$/, ""));
  expect(commandOf(file).map(inShell).join(" ")).toBe(command);
});
