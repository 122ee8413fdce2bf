import { describe, expect, test } from "vitest";
import { InvalidValue, readWholeNumber } from "../../config/values.ts";
import { createVariableReader } from "../../config/variable-reader.ts";
import { ConfigurationError } from "../../util/errors.ts";
import { type Command, commandOption, defineCommand, flag, type Options, option } from "./command.ts";
import { readCommandLine } from "./command-line.ts";

const port = option("PORT", "a port", {
  variable: "PORT",
  example: "4402",
  read: readWholeNumber(0, 65_535),
  default: "1",
});
const word = option("WORD", "a word", { read: (text: string) => text, default: "none" });
const options = { port, word, json: flag("as JSON") } satisfies Options;

function valuesOf(known: Options, args: readonly string[], env: Record<string, string> = {}) {
  return readCommandLine({ options: known }, args, env).values;
}

/** The problems, one line each. */
function problemsOf(
  args: readonly string[],
  env: Record<string, string> = {},
  known: Options = options,
  more: Partial<Command<Options>> = {},
): string {
  try {
    readCommandLine({ options: known, ...more }, args, env);
    return "nothing";
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message;
    throw error;
  }
}

describe("values", () => {
  test.each([
    { from: "nothing", args: [], env: {}, values: { port: 1, word: "none", json: false } },
    { from: "the environment", args: [], env: { PORT: "2" }, values: { port: 2 } },
    { from: "the command line before it", args: ["--port", "3"], env: { PORT: "2" }, values: { port: 3 } },
    {
      from: "an equals sign",
      args: ["--port=4", "--word=--json"],
      env: {},
      values: { port: 4, word: "--json" },
    },
    { from: "a word that begins with a dash", args: ["--word", "-x"], env: {}, values: { word: "-x" } },
    { from: "flags", args: ["--json", "--json"], env: {}, values: { json: true } },
    { from: "an empty variable: not at all", args: [], env: { PORT: "" }, values: { port: 1 } },
  ])("come from $from", ({ args, env, values }) => {
    expect(valuesOf(options, args, env)).toMatchObject(values);
  });
});

test("an option that may be bare is given with and without a value", () => {
  const fork = { ...word, mayBeBare: true } as const;
  const read = (...args: string[]) => valuesOf({ fork, json: flag("as JSON") }, args).fork;
  expect([
    read(),
    read("--fork"),
    read("--fork", "--json"),
    read("--fork", "base"),
    read("--fork=base"),
  ]).toEqual([...["none", "", "", "base", "base"]]);
});

describe("a command line of the user's own, behind --", () => {
  const known = {
    command: { ...commandOption("what is run"), required: true },
    json: flag("as JSON"),
  } as const;

  test("is taken as it is, options and all", () => {
    expect(valuesOf(known, ["--json", "--", "node", "a b.js", "--json", "--", "-x"])).toEqual({
      json: true,
      command: ["node", "a b.js", "--json", "--", "-x"],
    });
  });

  test("is asked for when it is missing or empty", () => {
    for (const args of [[], ["--"]]) {
      expect(problemsOf(args, {}, known)).toBe("-- COMMAND…: is needed (for example -- node buyer.js)");
    }
  });
});

describe("what is wrong", () => {
  test("is a secret on the command line, and the variable that alone may give it is named", () => {
    expect(problemsOf(["--api-key-pepper", "hunter2"], {}, options, { variables: ["API_KEY_PEPPER"] })).toBe(
      "--api-key-pepper: is read from the variable API_KEY_PEPPER alone",
    );
  });

  test("of the environment is said together with the rest", () => {
    const environment: Command["environment"] = (env) => {
      const reader = createVariableReader(env);
      reader.read("HOST");
      throw new ConfigurationError(reader.problems());
    };
    expect(problemsOf(["--prot"], { HOST: "x", PORT: "y" }, options, { environment })).toMatchInlineSnapshot(`
      "--prot: there is no such option; did you mean --port?
      PORT: "y" is not a whole number from 0 to 65535 (for example 8080)
      HOST: "x" is not an IP address (for example 0.0.0.0)"
    `);
  });

  test("is said all at once, under the name that was used", () => {
    const args = ["extra", "--word", "--prot", "80", "--json=1"];
    expect(problemsOf(args, { PORT: "-1" })).toMatchInlineSnapshot(`
      "extra: is not an option: options begin with --
      --word: needs a value (for example --word none)
      --prot: there is no such option; did you mean --port?
      --json: takes no value
      PORT: "-1" is not a whole number from 0 to 65535 (for example 8080)"
    `);
    expect(problemsOf(["--port", "70000"], { PORT: "80" })).toMatchInlineSnapshot(
      `"--port: "70000" is not a whole number from 0 to 65535 (for example 4402)"`,
    );
  });

  test("an option with a value is given once: which of two was meant is not guessed", () => {
    expect(problemsOf(["--port", "5", "--port", "6", "--word=a"])).toBe("--port: is given twice");
  });

  test("an option that another one follows has no value", () => {
    expect(problemsOf(["--port", "--json"])).toMatchInlineSnapshot(
      `"--port: needs a value (for example --port 4402)"`,
    );
    expect(problemsOf(["--json", "--port"])).toMatchInlineSnapshot(
      `"--port: needs a value (for example --port 4402)"`,
    );
    expect(problemsOf(["--port="])).toMatchInlineSnapshot(
      `"--port: needs a value (for example --port 4402)"`,
    );
  });

  test("names that mean something to JavaScript are no options", () => {
    expect(problemsOf(["--__proto__=1", "--constructor", "--toString"])).toMatchInlineSnapshot(
      `
      "--__proto__: there is no such option
      --constructor: there is no such option
      --toString: there is no such option"
    `,
    );
  });

  test("an option that is needed and missing is named once", () => {
    const needed = { port: { ...port, required: true }, json: options.json };
    expect(problemsOf([], {}, needed)).toMatchInlineSnapshot(`"--port: is needed (for example --port 4402)"`);
    expect(problemsOf(["--port"], {}, needed)).toMatchInlineSnapshot(
      `"--port: needs a value (for example --port 4402)"`,
    );
  });

  test.each([
    ["prot", "port"],
    ["ports", "port"],
    ["jsn", "json"],
    ["wor", "word"],
    ["words-of", "word"],
  ])("--%s was meant as --%s", (typed, meant) => {
    expect(problemsOf([`--${typed}`])).toContain(`did you mean --${meant}?`);
  });

  test.each(["x", "networks", "verbose"])("--%s was meant as nothing that there is", (typed) => {
    expect(problemsOf([`--${typed}`])).toBe(`--${typed}: there is no such option`);
  });

  test("what is wrong between values is said together with the rest, under the name that was used", () => {
    const check: Command["check"] = () => [{ name: "PORT", problem: "does not go with the word" }];
    expect(problemsOf(["--extra"], { PORT: "7" }, options, { check })).toMatchInlineSnapshot(`
      "--extra: there is no such option
      PORT: does not go with the word"
    `);
    expect(problemsOf(["--port", "7"], {}, options, { check })).toMatchInlineSnapshot(
      `"--port: does not go with the word"`,
    );
  });
});

test("a mistake of ours in reading is not taken for the user's", () => {
  const read = () => {
    throw new TypeError("ours");
  };
  expect(() => valuesOf({ word: { ...word, read } }, ["--word", "x"])).toThrow(TypeError);
  const refuse = () => {
    throw new InvalidValue("theirs");
  };
  expect(() => valuesOf({ word: { ...word, read: refuse } }, ["--word", "x"])).toThrow(ConfigurationError);
});

test("what is not given is the default, undefined, or for a flag false", () => {
  const command = defineCommand({
    options: { word, plain: option("X", "", { read: Number }), json: flag("as JSON") },
    run: async () => 0,
  });
  const { values } = readCommandLine(command, [], {});
  expect(values).toEqual({ word: "none", plain: undefined, json: false } satisfies {
    word: string;
    plain: number | undefined;
    json: boolean;
  });
});
