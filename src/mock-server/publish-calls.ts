import { channels, type RequestResult } from "../channels/channels.ts";
import { describeReceived } from "../channels/received-body.ts";
import { type FixtureAnswer, isBegun } from "../fixtures/engine/answer.ts";
import type { FixtureCall } from "../fixtures/engine/engine.ts";
import type { Hex } from "../protocol/hex.ts";
import { bytes32 } from "../protocol/primitives.ts";
import { createUuid } from "../util/create-uuid.ts";

/** Publishes a verify or settle of the mock as the service does, so that the studio and others can see it. */
export function publishCall(
  { operation, payment, answer, request: { headers, body } }: FixtureCall,
  { serviceId, tookMs }: { serviceId: string; tookMs: number },
): void {
  if (operation === undefined) return;
  const requestId = createUuid();
  const settlementId = payment?.settlementId;
  const common = { serviceId, requestId, operation };
  if (payment !== undefined && settlementId !== undefined) {
    channels.request.publish(() => ({ ...common, payment, settlementId, body }));
  }
  const status = isBegun(answer) ? answer.status : undefined;
  channels.payment.publish(() => ({
    ...common,
    ...{ payment, settlementId, status, tookMs },
    answer: bodyOf(answer),
    body: payment && body,
    received:
      payment === undefined && body !== undefined
        ? describeReceived(body, {
            ...{ bytes: Buffer.byteLength(body), isWhole: true },
            contentType: headers["content-type"],
          })
        : undefined,
    result: resultOf(answer),
  }));
}

function bodyOf(answer: FixtureAnswer): string | undefined {
  if (answer.kind === "json") return JSON.stringify(answer.body);
  return answer.kind === "text" ? answer.text : undefined;
}

function resultOf(answer: FixtureAnswer): RequestResult {
  if (answer.kind !== "json") {
    const message = {
      reset: "The connection is reset",
      never: "No answer comes",
      cut_off: "The answer is cut off",
      text: "The answer is no JSON",
    };
    return { outcome: "abandoned", message: message[answer.kind] };
  }
  const { status, headers } = answer;
  const told = (name: string): string | undefined => {
    const value: unknown = Reflect.get(answer.body, name);
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  const transaction: Hex | undefined = bytes32.safeParse(told("transaction")).data;
  if (status === 200) {
    if (Reflect.get(answer.body, "isValid") === true) return { outcome: "valid" };
    const isSettled = Reflect.get(answer.body, "success") === true;
    if (isSettled) return { outcome: "settled", ...(transaction !== undefined && { transaction }) };
    return reasonOf(
      "invalid",
      told("invalidReason") ?? told("errorReason"),
      told("invalidMessage") ?? told("errorMessage"),
    );
  }
  if (headers["x-settlement-state"] === "pending") {
    return { outcome: "pending", ...(transaction !== undefined && { transaction }) };
  }
  return reasonOf(
    status >= 500 ? "undetermined" : "refused",
    told("type")?.split(":").at(-1),
    told("detail"),
  );
}

function reasonOf(
  outcome: RequestResult["outcome"],
  reason: string | undefined,
  message: string | undefined,
): RequestResult {
  return { outcome, ...(reason !== undefined && { reason }), ...(message !== undefined && { message }) };
}
