import { readOneOf } from "../../config/values.ts";
import { KitError } from "../../util/errors.ts";
import { type HttpAnswer, HttpFailure, type HttpRequest, sendHttp } from "../../util/http-client.ts";
import { option } from "./command.ts";

/** `--method` of commands that request what a shop sells. */
export const shopMethodOption = option("METHOD", "how it is requested", {
  read: readOneOf(["GET", "POST", "PUT", "PATCH", "DELETE"]),
  example: "POST",
  default: "GET",
});

/** @throws {KitError} when nothing answers at the shop's URL, or without an end */
export async function askShop(url: string, request: HttpRequest): Promise<HttpAnswer> {
  return sendHttp(url, { agent: false, ...request }).catch((cause: unknown) => {
    const { origin } = new URL(url);
    if (cause instanceof HttpFailure && cause.kind === "too_large")
      throw new KitError(`The answer of ${origin} is too long`, { cause, code: "unexpected-answer" });
    throw new KitError(`Nothing answers at ${origin}`, { cause, code: "unreachable" });
  });
}
