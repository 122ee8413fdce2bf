import type { Option } from "./options.ts";

/** A flag: off unless it is given. */
export function flag(describe: string): Option<boolean> {
  return { describe, read: () => true, fallback: false };
}
