import { readFileSync } from "node:fs";
import { join } from "node:path";
import { findLockProblems } from "./lockfile.ts";

/* Checks that the lockfile pins every package by its hash, and names no private registry. */

const [file = join(import.meta.dirname, "../package-lock.json")] = process.argv.slice(2);
const problems = findLockProblems(readFileSync(file, "utf8"));
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
