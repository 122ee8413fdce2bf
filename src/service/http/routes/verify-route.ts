import type { FastifyPluginAsync, FastifyRequest } from "fastify";
import type { VerifyAnswer, Written } from "../../../protocol/answers.ts";
import type { NetworkRegistry } from "../../../protocol/networks.ts";
import type { RequestParser } from "../../../protocol/requests.ts";
import { verifyAnswer } from "../../../protocol/write-answers.ts";
import type { Facilitator } from "../../facilitator/facilitator.ts";
import { asksForRepeats, invalidResult, readPaymentRequest } from "./payment-request.ts";
import { urlsOf } from "./urls.ts";

export type VerifyRouteOptions = {
  facilitator: Facilitator;
  parse: RequestParser;
  knownNetworks: NetworkRegistry;
  /** Unix milliseconds. */
  now: () => number;
  /** Whether callers without an API key may verify. */
  anonymousVerify: boolean;
};

/** `POST /verify`. */
export const verifyRoute: FastifyPluginAsync<VerifyRouteOptions> = async (app, options) => {
  const { facilitator, parse, knownNetworks, now, anonymousVerify } = options;
  const apiKey = anonymousVerify ? "optional" : "required";

  const config = { operation: "verify", apiKey } as const;
  for (const url of urlsOf("verify")) app.post(url, { config }, answer);

  async function answer(request: FastifyRequest): Promise<Written<VerifyAnswer>> {
    const { caller } = request;
    const parsed = readPaymentRequest(request, "verify", { parse, knownNetworks });
    const refusal = parsed.ok
      ? await facilitator.verify(parsed.request, caller, { repeats: asksForRepeats(request) })
      : parsed.invalid;
    request.result = refusal === undefined ? { outcome: "valid" } : invalidResult(refusal);
    const network = parsed.ok ? parsed.request.knownNetwork.name : undefined;
    const hasRecipient = network !== undefined && caller?.organization.recipients[network] !== undefined;
    return verifyAnswer(parsed.ok ? parsed.request : parsed.envelope, refusal, {
      organizationId: caller?.organization.id ?? "anonymous",
      authMethod: hasRecipient ? "organization_specific" : "default",
      timestamp: new Date(now()).toISOString(),
    });
  }
};
