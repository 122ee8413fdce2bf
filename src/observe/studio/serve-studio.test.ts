import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import Fastify from "fastify";
import { expect, test } from "vitest";
import { pageRoutes } from "./serve-studio.ts";

test("in a checkout that was never built, the page itself says what to do", async () => {
  await using app = Fastify();
  pageRoutes(app, new URL("./never-built", import.meta.url));
  const answer = await app.inject({ url: "/studio" });
  expect(answer.statusCode).toBe(503);
  expect(answer.headers["content-type"]).toBe("text/html; charset=utf-8");
  expect(answer.body).toContain("npm run build");
  expect((await app.inject({ url: "/studio/index.js" })).statusCode).toBe(404);
});

test("the page has the command as it is called where the service was started", async () => {
  const folder = await mkdtemp(join(tmpdir(), "x402-page-"));
  try {
    const source = new URL("./page/index.html", import.meta.url);
    await copyFile(source, join(folder, "index.html"));
    await using app = Fastify();
    pageRoutes(app, pathToFileURL(`${folder}/`), "npm run -s x402-kit --");
    const { body } = await app.inject({ url: "/studio" });
    expect(body).toContain('<meta name="command" content="npm run -s x402-kit --" />');
    expect(body).not.toContain("npx");
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("each view of the page has a URL, and what is none is not found", async () => {
  const folder = await mkdtemp(join(tmpdir(), "x402-page-"));
  try {
    await copyFile(new URL("./page/index.html", import.meta.url), join(folder, "index.html"));
    await using app = Fastify();
    pageRoutes(app, pathToFileURL(`${folder}/`));
    const statusOf = async (url: string) => (await app.inject({ url })).statusCode;
    for (const view of [
      "",
      "/",
      "/chains",
      "/faults",
      "/setup",
      "/payments/0x12",
      "/payments/..%2fharness",
    ]) {
      expect([view, await statusOf(`/studio${view}`)]).toEqual([view, 200]);
    }
    for (const path of ["/elsewhere", "/chains/base", "/payments.js"]) {
      expect([path, await statusOf(`/studio${path}`)]).toEqual([path, 404]);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("serves the page's own files, and no other file of this machine", async () => {
  const folder = await mkdtemp(join(tmpdir(), "x402-page-"));
  try {
    const [own, other] = [join(folder, "page"), join(folder, "other.js")];
    await mkdir(join(own, "parts"), { recursive: true });
    for (const file of [other, join(own, "index-A_b1.js"), join(own, "parts/chart.js")]) {
      await writeFile(file, "export {};");
    }
    await using app = Fastify();
    pageRoutes(app, pathToFileURL(`${own}/`));
    const statusOf = async (url: string) => (await app.inject({ url })).statusCode;
    expect(await statusOf("/studio/index-A_b1.js")).toBe(200);
    expect(await statusOf("/studio/parts/chart.js")).toBe(200);
    for (const path of [other, `/${other}`, `%2F${other.slice(1)}`, "../other.js", "%2e%2e/other.js"]) {
      expect([path, await statusOf(`/studio/${path}`)]).toEqual([path, 404]);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});
