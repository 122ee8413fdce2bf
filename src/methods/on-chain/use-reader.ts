import { askViews, type ChainReader } from "../../chain/chain-reader.ts";
import { callViews, readViews, viewGas } from "../../chain/views.ts";
import type { Hex } from "../../protocol/hex.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { together } from "../../util/concurrency.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { withTimeout } from "../../util/waiting.ts";
import type { Settling } from "./settling.ts";
import type { WordSource } from "./state-facts.ts";

/** An authorization, with the id of its settlement. */
type Asked = Pick<SignedPayment, "asset" | "payer" | "nonce"> & { id?: Hex | undefined };

/** The source that tells if a payment was used, in the contract that keeps its nonce. */
type UseOf = (asked: Asked) => WordSource<boolean>;

/** Returns true if a payment was used or canceled by a block; undefined if the node does not have that state. */
export async function wasUsedBy(
  reader: ChainReader,
  useOf: UseOf,
  asked: Asked,
  block: bigint,
): Promise<boolean | undefined> {
  const what = "whether a payment is used";
  const { view, read } = useOf(asked);
  const [state] = await reader.ask([{ ...callViews([view], viewGas, block), about: asked.id }]);
  // Only archive nodes have old states; the logs can still be read.
  if (state?.error !== undefined) return undefined;
  const { blockNumber, results } = reader.expect(what, state, (result) => readViews(result, 1));
  if (blockNumber !== block) throw reader.undetermined(`${what}: of block ${blockNumber}, not ${block}`);
  const isUsed = results[0] && read(results[0]);
  if (isUsed === undefined)
    throw reader.undetermined(`${what}: no such contract, or it has no such function`);
  return isUsed;
}

/** The maximum number of authorizations in one call, and of pending ones in total. */
const mostTogether = 64;
const mostAsked = 1_024;

/** The timeout in milliseconds. A refusal waits for this check, but can be given without it. */
const longestMs = 3_000;

/**
 * Creates {@link Settling.isUsed}. Refusals call it, and they cost their senders nothing. So while a request to a chain (or to
 * one of its endpoints) is pending, all new calls share the next one: a flood of refusals does not flood the node.
 */
export function createIsUsed(useOf: UseOf): Settling["isUsed"] {
  const readers = new WeakMap<ChainReader, ReturnType<typeof createUseReader>>();
  return ({ reader }, { asset, payer, nonce }, id) => {
    const read = readers.get(reader) ?? createUseReader(reader, useOf);
    readers.set(reader, read);
    return read({ asset, payer, nonce, id });
  };
}

function createUseReader(reader: ChainReader, useOf: UseOf): (asked: Asked) => Promise<boolean> {
  const read = together(
    (all: readonly Asked[]) =>
      askViews(
        reader,
        all.map((asked) => useOf(asked).view),
        viewGas,
        all.length === 1 ? all[0]?.id : undefined,
      ),
    { most: mostTogether, anyNumber: true, mostUnderWay: 1 },
  );
  /** The number of pending checks, including those that timed out: the node still has to answer them. */
  let underWay = 0;

  return async (asked) => {
    if (underWay >= mostAsked) throw undetermined("too many are asked about");
    underWay++;
    const reading = read(asked).finally(() => underWay--);
    const result = await withTimeout(reading, longestMs, () => undetermined("it took too long"));
    const isUsed = useOf(asked).read(result);
    if (isUsed === undefined) throw undetermined("the contract that keeps nonces is not there, or it failed");
    return isUsed;
  };
}

function undetermined(why: string): UndeterminedError {
  return new UndeterminedError(`It could not be read whether the authorization was used: ${why}; try again`);
}
