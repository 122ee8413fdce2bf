import { spawn } from "node:child_process";

// The shop of a package for Next.js is an app: `node next/start.mjs FOLDER`.
const [, , app] = process.argv;
const next = ["node_modules/next/dist/bin/next", "dev", app, "-p", process.env.PORT, "-H", "127.0.0.1"];
const env = { ...process.env, NEXT_TELEMETRY_DISABLED: "1" };
spawn(process.execPath, next, { stdio: "inherit", env });
