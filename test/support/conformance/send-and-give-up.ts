import type { FixtureAnswer, FixtureRequest } from "../../../src/fixtures/engine/answer.ts";
import { sendRequest } from "../../../src/judge/conformance/send-request.ts";
import { HttpFailure } from "../../../src/util/http-client.ts";

/** Sends a request that gets no response, and closes the connection after a second. */
export async function sendAndGiveUp(baseUrl: string, request: FixtureRequest): Promise<FixtureAnswer> {
  try {
    return await sendRequest(baseUrl, request, 1_000);
  } catch (error) {
    const { cause } = Object(error);
    if (cause instanceof HttpFailure && cause.kind === "timeout") return { kind: "never" };
    throw error;
  }
}
