import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

/** Builds the studio's page to dist/studio-page; `src/observe/studio/serve-studio.ts` serves it. */
export default defineConfig({
  root: fileURLToPath(new URL("../src/observe/studio/page", import.meta.url)),
  base: "/studio/",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: fileURLToPath(new URL("../dist/studio-page", import.meta.url)),
    emptyOutDir: true,
    modulePreload: false,
    assetsDir: ".",
  },
});
