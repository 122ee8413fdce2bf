import { expect, test } from "vitest";
import { errorCodes } from "./error-codes.ts";
import { ConfigurationError, KitError, OperatorError, UndeterminedError } from "./errors.ts";

const ofSystem = (code: string) => Object.assign(new Error(code), { code });

test.each([
  [new KitError("it failed"), "failed"],
  [new KitError("no answer", { cause: ofSystem("ECONNREFUSED") }), "unreachable"],
  [
    new KitError("no answer", { cause: new Error("wrapped", { cause: ofSystem("ENOTFOUND") }) }),
    "unreachable",
  ],
  [new KitError("no port", { cause: ofSystem("EADDRINUSE") }), "port-in-use"],
  [new KitError("no file", { cause: ofSystem("ENOENT") }), "not-found"],
  [new KitError("another", { cause: ofSystem("EMFILE") }), "failed"],
  [new KitError("it", { cause: ofSystem("ENOENT"), code: "closed" }), "closed"],
  [new KitError("outer", { cause: new UndeterminedError("inner") }), "undetermined"],
  [new UndeterminedError("could not tell", { cause: ofSystem("ECONNREFUSED") }), "undetermined"],
  [new OperatorError("no gas", { hints: [] }), "operator-unable"],
  [new ConfigurationError([{ name: "PORT", problem: "is no port" }]), "configuration"],
])("the code of %o is %s", (error, code) => {
  expect(error.code).toBe(code);
  expect(error.toJSON()).toMatchObject({ code });
  expect(errorCodes).toHaveProperty(code);
});

test("an error that is its own cause has a code", () => {
  const error = new Error("round");
  error.cause = error;
  expect(new KitError("outer", { cause: error }).code).toBe("failed");
});
