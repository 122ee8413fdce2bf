import type { Chain } from "../../chain/chain.ts";
import { readSafeInteger, transactionCountCall } from "../../chain/rpc/calls.ts";
import type { PayerTransaction } from "../../methods/on-chain/settling.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import type { Hex } from "../../protocol/hex.ts";
import { createBoundedMap, memoizeFor } from "../../util/cache.ts";
import { UndeterminedError } from "../../util/errors.ts";

/** Chain reads and broadcasts shared by all settles that wait for the same transaction of a payer. */
export type ApprovalWaits = {
  /**
   * Takes one of the slots that a payer has per organization. `leave` gives it back.
   *
   * @throws UndeterminedError when all slots are taken; nothing was sent for this payment then
   */
  enter(payer: { chain: Chain; organizationId: string; from: Hex }): { leave(): void };
  /** Returns true if the payer's account has moved past the transaction: it was mined or replaced. */
  isOver(chain: Chain, transaction: PayerTransaction): Promise<boolean>;
  /** Sends the transaction at most once per block time; to all nodes if the payment already waits for it. */
  send(chain: Chain, transaction: PayerTransaction, isSent: boolean): Promise<void>;
  /**
   * Runs `give`, which has an organization give the payer gas money, at most once per polling interval. A refusal
   * or error is shared only by concurrent callers: the payer or the budget may have more a moment later.
   */
  giveGasMoney(
    chain: Chain,
    of: { organizationId: string; hash: Hex },
    give: () => Promise<true | Invalid | undefined>,
  ): Promise<true | Invalid | undefined>;
};

/** How often to check if a transaction is mined: so many times per block, and at least every so many milliseconds. */
const looksPerBlock = 4;
const mostBetweenLooksMs = 500;

export function lookEveryMs({ network }: Pick<Chain, "network">): number {
  return Math.min(network.blockTimeMs / looksPerBlock, mostBetweenLooksMs);
}

/** Settles of one payer for one organization that may wait at the same time. */
const mostOfPayer = 16;

/** Transactions remembered at a time; a forgotten one costs an extra read. */
const mostTransactions = 10_000;

export function createApprovalWaits(now: () => number): ApprovalWaits {
  const waiting = new Map<string, number>();
  const counts = createShared<number>(now);
  const sends = createShared<void>(now);
  const gifts = createShared<true | Invalid | undefined>(now);
  const keyOf = ({ network }: Chain, ...names: readonly string[]) =>
    [network.chainId, ...names].join(" ").toLowerCase();

  return {
    enter({ chain, organizationId, from }) {
      const key = keyOf(chain, organizationId, from);
      const count = waiting.get(key) ?? 0;
      if (count >= mostOfPayer) {
        throw new UndeterminedError(
          "Too many payments of this payer wait for an approval that came with them; this one was not sent, try again later",
        );
      }
      waiting.set(key, count + 1);
      return {
        leave() {
          const left = (waiting.get(key) ?? 0) - 1;
          if (left > 0) waiting.set(key, left);
          else waiting.delete(key);
        },
      };
    },

    async isOver(chain, { from, hash, nonce }) {
      const count = await counts(keyOf(chain, hash), lookEveryMs(chain), async () => {
        const [answer] = await chain.reader.ask([transactionCountCall(from)]);
        return chain.reader.expect("the number of the payer's transactions", answer, readSafeInteger);
      });
      return count > nonce;
    },

    send: (chain, { raw, hash }, isSent) =>
      sends(keyOf(chain, hash), chain.network.blockTimeMs, () =>
        chain.broadcast([raw], { everywhere: isSent, hashes: [hash] }),
      ),

    giveGasMoney(chain, { organizationId, hash }, give) {
      const key = keyOf(chain, organizationId, hash);
      const answer = gifts(key, lookEveryMs(chain), give);
      const forget = () => gifts.forget(key);
      answer.then((given) => typeof given === "object" && forget(), forget);
      return answer;
    },
  };
}

/** Makes a function that loads the value of a key at most once per `maxAgeMs`. */
function createShared<T>(now: () => number) {
  type Load = () => Promise<T>;
  const loads = createBoundedMap<string, (load: Load) => Promise<T>>(mostTransactions);
  function share(key: string, maxAgeMs: number, load: Load): Promise<T> {
    const known = loads.get(key) ?? memoizeFor((ask: Load) => ask(), { maxAgeMs, now });
    loads.set(key, known);
    return known(load);
  }
  return Object.assign(share, { forget: (key: string) => loads.delete(key) });
}
