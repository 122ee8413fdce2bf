import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { isPrivateFolder, openPrivateCacheFolder } from "./compile-cache.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "x402-kit-private-"));
  // Others may come to what is in it.
  chmodSync(home, 0o755);
});
afterEach(() => rmSync(home, { recursive: true }));

const open = (folder = home) => openPrivateCacheFolder({ XDG_CACHE_HOME: folder });

/** A folder of this mode, whatever the umask. */
function makeFolder(path: string, mode: number): string {
  mkdirSync(path);
  chmodSync(path, mode);
  return path;
}

test("the folder is created for its user alone, and found again", () => {
  const folder = open(join(home, "caches"));
  expect(folder).toBe(join(home, "caches/x402-kit"));
  expect(statSync(folder ?? "").mode & 0o777).toBe(0o700);
  expect(open(join(home, "caches"))).toBe(folder);
});

test.each<[string, () => void]>([
  ["others may write to", () => makeFolder(join(home, "x402-kit"), 0o777)],
  ["the group may write to", () => makeFolder(join(home, "x402-kit"), 0o770)],
  ["others may rename", () => chmodSync(home, 0o777)],
  ["is a file", () => writeFileSync(join(home, "x402-kit"), "")],
  ["is a link", () => symlinkSync(makeFolder(join(home, "elsewhere"), 0o700), join(home, "x402-kit"))],
  [
    "belongs to somebody else",
    () => {
      makeFolder(join(home, "x402-kit"), 0o755);
      vi.spyOn(process, "getuid").mockReturnValue(statSync(home).uid + 1);
    },
  ],
])("a folder that %s is not used", (_, prepare) => {
  prepare();
  try {
    expect(open()).toBeUndefined();
  } finally {
    vi.restoreAllMocks();
  }
});

test("nothing is created where there is no absolute path", () => {
  vi.stubEnv("HOME", "relative");
  try {
    expect(open("")).toBeUndefined();
  } finally {
    vi.unstubAllEnvs();
  }
});

test("in /tmp others cannot rename a folder, and below one of mode 0700 they reach nothing", () => {
  expect(isPrivateFolder(makeFolder(join(makeFolder(join(home, "shared"), 0o1777), "own"), 0o755))).toBe(
    true,
  );
  expect(isPrivateFolder(join(home, "shared"))).toBe(false);
  const below = makeFolder(join(makeFolder(join(home, "closed"), 0o700), "open"), 0o777);
  expect(isPrivateFolder(below)).toBe(true);
});

test.runIf(process.platform === "linux")("a place where no folder can be is given up", () => {
  expect(open("/proc/no-such-place")).toBeUndefined();
});
