import { findJsonProblem } from "../../protocol/json-problem.ts";
import { bodyLimit } from "../../protocol/problems.ts";
import type { ReceivedBody } from "../channels/channels.ts";
import { mostReceived } from "../channels/channels.ts";
import {
  explainRefusal,
  type RefusalContext,
  type RefusalExplanation,
  type RefusedRequest,
} from "../explain/explain-refusal.ts";
import type { ReceivedView } from "./payment-view.ts";

/** Why a request was refused in whose body no payment could be read: what its answer says with the place, and what else is wrong. */
export function explainReceived(
  answered: Omit<RefusedRequest, "request" | "received">,
  received: ReceivedBody,
  context: RefusalContext,
): RefusalExplanation[] {
  const whole = received.isWhole ? received.text : undefined;
  const explanations = explainRefusal({ ...answered, request: undefined, received: whole }, context);
  return explanations.map((one) => withPlace(one, receivedView(received)));
}

/** The body as it is shown. */
export function receivedView({ text, bytes, isWhole, contentType }: ReceivedBody): ReceivedView {
  const found = findJsonProblem(text);
  // The end of a part is no problem of the whole.
  const problem = found !== undefined && (isWhole || found.offset < text.length) ? found : null;
  return { text, bytes, isWhole, contentType: contentType ?? null, problem };
}

const sendWhole =
  "Send the whole body, with its length in bytes as content-length, and wait for the answer. Nothing was done.";

const sendPlain = "Send the body as plain JSON, without content-encoding.";

function isJson(contentType: string | null): boolean {
  return /^application\/json\s*(;|$)/i.test(contentType ?? "");
}

/** Where a body is no JSON, or of which type it is said to be, where that is why it was refused. */
function withPlace(explanation: RefusalExplanation, received: ReceivedView): RefusalExplanation {
  const { problem, contentType, bytes, isWhole, text } = received;
  switch (explanation.mistake) {
    case "malformed-request":
      if (!isWhole && bytes <= bodyLimit && text.length < mostReceived) {
        return { ...explanation, got: `${bytes} bytes`, fix: sendWhole };
      }
      if (problem === null) return explanation;
      return { ...explanation, at: `line ${problem.line}, column ${problem.column}`, got: problem.found };
    case "unsupported-media-type":
      // What is compressed is refused as well; its answer names the encoding.
      if (isJson(contentType)) return { ...explanation, at: "content-encoding", fix: sendPlain };
      return { ...explanation, at: "content-type", got: contentType ?? "none", expected: "application/json" };
    case "body-too-large":
      return { ...explanation, got: `${bytes} bytes or more`, expected: `at most ${bodyLimit} bytes` };
    default:
      return explanation;
  }
}
