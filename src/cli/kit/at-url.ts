import { variables } from "../../config/variables.ts";

/** The option with which another command reaches the same `up`; nothing at the usual address. */
export function atUrl(url: string): string {
  return url === variables.X402_KIT_URL.default ? "" : ` --url ${url}`;
}
