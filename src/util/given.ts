import { ConfigurationError, type ConfigurationProblem } from "./errors.ts";
import { nearest, quote, typosBetween } from "./text.ts";

/*
 * Checks the arguments of public functions. Callers may be JavaScript and pass anything: arguments that would cause a
 * TypeError further in, or be ignored silently, are refused here by name.
 */

/** The kind of value that an argument or option takes: a description and a check. */
export type Wanted = {
  /** Follows “is not” in a message: “a text”. */
  readonly what: string;
  fits(value: unknown): boolean;
  readonly example?: string;
  /** True if it is required. */
  readonly isNeeded?: boolean;
};

export type WantedOptions = Readonly<Record<string, Wanted>>;

const isPlain = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Accepts any value; it is checked where it is used, or is always valid. */
export const anything: Wanted = { what: "", fits: () => true };
export const aText: Wanted = { what: "a text", fits: (value) => typeof value === "string" };
export const aBoolean: Wanted = { what: "true or false", fits: (value) => typeof value === "boolean" };
export const aFunction: Wanted = { what: "a function", fits: (value) => typeof value === "function" };
export const anObject: Wanted = { what: "an object", fits: isPlain };
export const aTextOrObject: Wanted = {
  what: "a text or an object",
  fits: (value) => typeof value === "string" || isPlain(value),
};
export const aList: Wanted = { what: "a list", fits: Array.isArray };
export const objects: Wanted = {
  what: "a list of objects",
  fits: (value) => Array.isArray(value) && value.every(isPlain),
};
export const texts: Wanted = {
  what: "a list of texts",
  fits: (value) => Array.isArray(value) && value.every((one) => typeof one === "string"),
};

/** Any value that can be written as JSON. */
export const jsonObject: Wanted = {
  what: "an object that can be written as JSON: without bigints, and without itself in it",
  fits: (value) => isPlain(value) && isWritable(value),
};

function isWritable(value: object): boolean {
  try {
    return JSON.stringify(value) !== undefined;
  } catch {
    return false;
  }
}

/** For example an amount in a token's smallest unit. */
export const aUint256: Wanted = {
  what: "a bigint from 0 to 2^256 - 1",
  fits: (value) => typeof value === "bigint" && value >= 0n && value < 2n ** 256n,
  example: "10_000n",
};

export function wholeNumber(least: number, most: number): Wanted {
  return {
    what: `a whole number from ${least} to ${most}`,
    fits: (value) => Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most,
  };
}

export function oneOf(values: readonly (string | number)[]): Wanted {
  return { what: `one of ${values.join(", ")}`, fits: (value) => values.some((one) => one === value) };
}

/** The same kind of value, but required. */
export const needed = (wanted: Wanted): Wanted => ({ ...wanted, isNeeded: true });

/**
 * Finds all problems with options: `wrong` if they are not an object, or if a value is of the wrong kind; `unknown` for
 * names that are not options.
 *
 * @param what their name in messages: `options`, whose fields are named alone, or the option that contains them
 */
export function findGivenProblems(
  given: unknown,
  wanted: WantedOptions,
  what = "options",
): Readonly<Record<"unknown" | "wrong", readonly ConfigurationProblem[]>> {
  const names = Object.keys(wanted);
  if (!isPlain(given)) {
    const problem = `${show(given)} is not an object; there are ${names.join(", ")}`;
    return { unknown: [], wrong: [{ name: what, problem }] };
  }
  const nameOf = (name: string) => (what === "options" ? name : `${what}.${name}`);
  return {
    unknown: Object.keys(given)
      .filter((name) => !Object.hasOwn(wanted, name))
      .map((name) => ({ name: nameOf(name), problem: `is no option; ${meant(name, names)}` })),
    wrong: names.flatMap((name) => findProblem(nameOf(name), Reflect.get(given, name), wanted[name])),
  };
}

/** @throws {ConfigurationError} with everything that {@link findGivenProblems} finds */
export function requireGiven(given: unknown, wanted: WantedOptions, what?: string): void {
  const { unknown, wrong } = findGivenProblems(given, wanted, what);
  refuse([...unknown, ...wrong]);
}

/** @throws {ConfigurationError} when an argument is invalid or missing */
export function requireArgument(name: string, value: unknown, wanted: Wanted): void {
  refuse(findProblem(name, value, needed(wanted)));
}

function refuse(problems: readonly ConfigurationProblem[]): void {
  if (problems.length > 0) throw new ConfigurationError(problems);
}

function findProblem(name: string, value: unknown, wanted: Wanted | undefined): ConfigurationProblem[] {
  const { what, fits, example, isNeeded = false } = wanted ?? anything;
  if (value === undefined ? !isNeeded : fits(value)) return [];
  const problem = value === undefined ? `is needed: ${what}` : `${show(value)} is not ${what}`;
  return [{ name, problem, ...(example !== undefined && { example }) }];
}

/** Suggests the name that was probably meant, or lists all of them. */
function meant(name: string, names: readonly string[]): string {
  const [closest = ""] = nearest(
    name.toLowerCase(),
    names.map((one) => one.toLowerCase()),
    1,
  );
  const found = names.find((one) => one.toLowerCase() === closest);
  // A third of the letters may differ: `sort` is not a typo of `port`, but `newtork` is one of `networks`.
  const isNear = found !== undefined && typosBetween(name.toLowerCase(), closest) <= found.length / 3;
  return isNear ? `did you mean ${found}?` : `there are ${names.join(", ")}`;
}

/** A value for a message. */
function show(value: unknown): string {
  if (typeof value === "string") return quote(value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return "a function";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "an object";
  return String(value);
}
