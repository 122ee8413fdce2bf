import { fileURLToPath } from "node:url";
import { areAsNoted } from "./is-built.mjs";

/** `x402-kit up`: the built command while it is what these sources make, since it is there in half the time; else the sources. */
const root = fileURLToPath(new URL("..", import.meta.url));
const isBuilt = areAsNoted(root, `${root}node_modules/.cache/build-files.json`);
const command = new URL(isBuilt ? "dist/cli/bin.js" : "src/cli/bin.ts", new URL("..", import.meta.url));
process.argv.splice(1, 1, fileURLToPath(command), "up");
await import(command.href);
