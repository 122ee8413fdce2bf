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

/** Reads from the contract that keeps nonces whether a payment was used. */
type UseOf = (asked: Asked) => WordSource<boolean>;

/** Returns true if a payment was used or cancelled by a block; undefined when the node does not know that. */
export async function wasUsedBy(
  reader: ChainReader,
  useOf: UseOf,
  asked: Asked,
  block: bigint,
): Promise<boolean | undefined> {
  const what = "whether a payment is used";
  const { view, read } = useOf(asked);
  const [state] = await reader.ask([{ ...callViews([view], viewGas, block), about: asked.id }]);
  // Only archives know old states; the logs are there nevertheless.
  if (state?.error !== undefined) return undefined;
  const { blockNumber, results } = reader.expect(what, state, (result) => readViews(result, 1));
  if (blockNumber !== block) throw reader.undetermined(`${what}: of block ${blockNumber}, not ${block}`);
  const isUsed = results[0] && read(results[0]);
  if (isUsed === undefined)
    throw reader.undetermined(`${what}: no such contract, or it has no such function`);
  return isUsed;
}

/** The most authorizations of one call, and the most that are asked about at a time. */
const mostTogether = 64;
const mostAsked = 1_024;

/** A refusal waits for it, and would be there without it: milliseconds. */
const longestMs = 3_000;

/**
 * Makes {@link Settling.isUsed}. Refusals ask it, which cost their senders nothing: what is asked of a chain, or of one of its
 * endpoints, while a call is under way shares the next one, so that a flood of refusals causes no flood of requests to a node.
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
  /** Counted until it is known: those whose refusals wait no longer are still to be asked about. */
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
