import { readOneOf } from "../../config/values.ts";
import {
  answersWithinMs,
  type HttpAnswer,
  type HttpRequest,
  noAnswer,
  sendHttp,
} from "../../util/http-client.ts";
import { option } from "./command.ts";

/** `--method` for commands that request a shop's resource. */
export const shopMethodOption = option("METHOD", "how it is requested", {
  read: readOneOf(["GET", "POST", "PUT", "PATCH", "DELETE"]),
  example: "POST",
  default: "GET",
});

/** @throws {KitError} if nothing answers at the shop's URL, or the response does not end */
export async function askShop(url: string, request: HttpRequest): Promise<HttpAnswer> {
  return sendHttp(url, { agent: false, timeoutMs: answersWithinMs, ...request }).catch((failure: unknown) => {
    throw noAnswer(new URL(url).origin, failure);
  });
}
