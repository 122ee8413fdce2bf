import { KitError } from "../../util/errors.ts";

/**
 * Says which Node is needed, before something is missing from an older one.
 *
 * @throws {KitError} below Node 22.18
 */
export function requireNode(version = process.versions.node): void {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major > 22 || (major === 22 && minor >= 18)) return;
  throw new KitError(`x402-facilitator-kit needs Node 22.18 or newer, and this is ${version}`, {
    hints: ["The npm package `node` brings one for npm scripts: npm install --save-dev node@24"],
  });
}
