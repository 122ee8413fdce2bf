/** Where a command writes, and what it may know of the process around it. */
export type Terminal = {
  /** A line on stdout. */
  print(text: string): void;
  /** A line on stderr. */
  printError(text: string): void;
  /** The variables; a file `.env` adds to them. */
  env: Record<string, string | undefined>;
  /**
   * Takes over what Ctrl-C and SIGTERM do: without it they end the process at once. The signal aborts with an
   * {@link Interruption}.
   */
  takeSignals(): AbortSignal;
};

/** The command was cut short, as its user wished. */
export class Interruption extends Error {
  override readonly name = "Interruption";
}

const { npm_lifecycle_event: npmEvent = "", npm_lifecycle_script: npmScript = "" } = process.env;

/** Whether npm runs this command as a script of the checkout: `npm start`, or `npm run x402-kit`. */
const isScriptOfCheckout = ["start", "x402-kit"].includes(npmEvent);

/**
 * Whether npm runs this command and nothing else: by `npx`, by a script of the checkout, or by one of the user's own,
 * `"serve": "x402-kit serve"`. Not by a script that leaves it running in the background.
 */
export const isRunByNpm =
  isScriptOfCheckout || npmEvent === "npx" || (/\bx402-kit\b/.test(npmScript) && !npmScript.includes("&"));

/**
 * How this command is called again from where it was called. In a checkout `npx x402-kit` would first install the
 * checkout somewhere, for half a minute.
 */
export const self = isScriptOfCheckout ? "npm run -s x402-kit --" : "npx x402-kit";
