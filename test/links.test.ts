import { globSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";

/* Every link from a page of this repository to another, or to a heading, leads somewhere. */

const root = join(import.meta.dirname, "..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const pages = globSync(["*.md", "llms.txt", "{docs,examples,production}/**/*.md"], {
  cwd: root,
  exclude: (path) => path.includes("node_modules"),
});
const online = "https://github.com/x402-facilitator-kit/x402-facilitator-kit/";

test.each(pages)("the links of %s", (page) => {
  const wrong = linksOf(page).filter(({ file, anchor }) => {
    const exists = statSync(join(root, file), { throwIfNoEntry: false });
    if (!exists) return true;
    return anchor !== "" && (exists.isDirectory() || !anchorsOf(file).has(anchor));
  });
  expect(wrong.map(({ link }) => link)).toEqual([]);
});

test("what sources, scripts and workflows say of a page is true", () => {
  const sources = globSync(
    [
      "{src,test,scripts,examples,production,contracts,.github}/**/*.{ts,tsx,mjs,sol,yml,yaml,json,toml,go,py,rs}",
      ".env.example",
    ],
    {
      cwd: root,
      exclude: (path) => path.includes("node_modules"),
    },
  );
  expect(sources.length).toBeGreaterThan(500);
  const wrong = sources.flatMap((source) =>
    [...read(source).matchAll(/\bdocs\/(?:guides\/|decisions\/)?[\w-]+\.md(?:#[\w-]+)?/g)]
      .map(([reference]) => reference)
      .filter((reference) => {
        const [file = "", anchor = ""] = reference.split("#");
        if (!statSync(join(root, file), { throwIfNoEntry: false })) return true;
        return anchor !== "" && !anchorsOf(file).has(anchor);
      })
      .map((reference) => `${source}: ${reference}`),
  );
  expect(wrong).toEqual([]);
});

type Link = { readonly link: string; readonly file: string; readonly anchor: string };

/** Those to files of the repository, online or beside the page. */
function linksOf(page: string): Link[] {
  const text = read(page).replaceAll(/^```.*?^```/gms, "");
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = ""]): Link[] => {
    const [path = "", anchor = ""] = link.replace(/^<|>$/g, "").split("#");
    if (path.startsWith(online)) {
      const file = path.slice(online.length).replace(/^(?:blob|tree)\/main\//, "");
      return [{ link, file, anchor }];
    }
    if (/^[a-z]+:/.test(path)) return [];
    return [{ link, file: path === "" ? page : normalize(join(dirname(page), path)), anchor }];
  });
}

/** The anchors of a page's headings, as GitHub makes them. */
function anchorsOf(page: string): ReadonlySet<string> {
  const text = read(page).replaceAll(/^```.*?^```/gms, "");
  const anchors = new Set([...text.matchAll(/<a (?:id|name)="([^"]+)"/g)].map(([, id = ""]) => id));
  for (const [, heading = ""] of text.matchAll(/^#+ (.+)$/gm)) {
    const slug = heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-");
    let anchor = slug;
    for (let copy = 1; anchors.has(anchor); copy++) anchor = `${slug}-${copy}`;
    anchors.add(anchor);
  }
  return anchors;
}
