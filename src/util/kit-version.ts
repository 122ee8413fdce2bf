import { createRequire } from "node:module";
import { membersOf } from "./json.ts";

/** The version of this package, as its manifest says. */
export function kitVersion(): string {
  const manifest: unknown = createRequire(import.meta.url)("../../package.json");
  return String(membersOf(manifest).version ?? "unknown");
}
