/** Whether npm runs this command as a script of the checkout: `npm start`, or `npm run x402-kit`. */
export const isNpmScript = ["start", "x402-kit"].includes(process.env.npm_lifecycle_event ?? "");

/**
 * How this command is called again from where it was called. In a checkout `npx x402-kit` would first install the
 * checkout somewhere, for half a minute.
 */
export const self = isNpmScript ? "npm run -s x402-kit --" : "npx x402-kit";
