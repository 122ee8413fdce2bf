import { UndeterminedError } from "../util/errors.ts";
import type { Chain, ChainView } from "./chain.ts";

/**
 * How many RPC endpoints, where there are as many, must say the same before a payment is called failed, or sent again,
 * before what was submitted directly is forwarded, and before a payer whose authorization seems unused signs another.
 */
export const failureEndpoints = 2;

/**
 * Asks the endpoints of a chain, one after the other, until the caller has heard enough. Those that give no answer are
 * passed over: silence counts for nothing.
 *
 * @param except the label of one that is not asked, because it has answered already
 * @throws UndeterminedError when nobody has answered: none of them, and none before
 */
export async function* eachEndpoint<T>(
  chain: Pick<Chain, "endpoints">,
  ask: (view: ChainView) => Promise<T>,
  except?: string,
): AsyncGenerator<T, void> {
  let failure: UndeterminedError | undefined;
  let hasAnswered = false;
  for (const view of chain.endpoints()) {
    if (view.endpoint === except) continue;
    let answer: T;
    try {
      answer = await ask(view);
    } catch (error) {
      if (!(error instanceof UndeterminedError)) throw error;
      failure = error;
      continue;
    }
    hasAnswered = true;
    yield answer;
  }
  if (!hasAnswered && except === undefined && failure !== undefined) throw failure;
}
