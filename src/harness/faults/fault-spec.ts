import { z } from "zod";
import { type Hex, hexForms } from "../../protocol/hex.ts";
import { networkNames } from "../../protocol/networks.ts";
import { parseUint256 } from "../../protocol/wire-values.ts";
import { ConfigurationError, type ConfigurationProblem } from "../../util/errors.ts";
import { quote } from "../../util/text.ts";

/** The `network` of faults between shops and the facilitator; their `method` is the route. */
export const facilitatorPlace = "facilitator";

/** The kinds of faults that can be set on the facilitator. */
const facilitatorKinds: ReadonlySet<string> = new Set<FaultSpec["kind"]>([
  "answer-lost",
  "delay",
  "rate-limited",
  "reset",
  "status",
  "hang",
]);

/** The routes that facilitator faults can hit. */
export const facilitatorRoutes = ["verify", "settle", "supported"];

const network = z.string("is not the name of a network");

/** Selects the calls that a connection fault hits; all by default. */
const matchFields = {
  method: z
    .string("is not the name of a method")
    .regex(/^[A-Za-z0-9_*]{1,64}$/, "is not the name of a method, in which * stands for any letters")
    .optional()
    .describe("which calls: of the method with this name, in which * stands for any letters"),
  nth: whole(1, 1_000_000).optional().describe("starting with the Nth match (default 1)"),
  times: whole(1, 1_000_000).optional().describe("how many matches (default 1 with nth, else all)"),
};

/** The names of {@link matchFields}. */
export const matchNames: ReadonlySet<string> = new Set(Object.keys(matchFields));

/*
 * The table of all faults. The command line and the studio show the descriptions of faults and fields.
 */

/** Faults of the connection between the service and a node. */
const connectionSpecs = [
  onConnection("answer-lost", "the request is done, and the connection is reset in the place of its answer"),
  onConnection("delay", "the request is done at once, and its answer comes late", {
    ms: whole(1, 600_000).describe("milliseconds"),
  }),
  onConnection("rate-limited", "HTTP 429 with Retry-After; nothing is done", {
    retryAfterSeconds: whole(0, 3_600).optional().describe("what Retry-After says, in seconds (default 1)"),
  }),
  onConnection("reset", "the connection is reset; nothing is done"),
  onConnection("error", "a JSON-RPC error for the call; nothing is done", {
    code: whole(-2_147_483_648, 2_147_483_647).describe("the JSON-RPC code"),
    message: z.string("is not a text").describe("its text"),
  }),
  onConnection("malformed", "no JSON: a page of HTML, or the first half of the answer", {
    form: z
      .enum(["html", "cut-off"], "is neither html nor cut-off")
      .optional()
      .describe("html (default) or cut-off"),
  }),
  onConnection("stale-head", "the chain as it was some blocks ago, without later receipts", {
    blocks: whole(1, 1_000_000).describe("how many blocks behind"),
  }),
  onConnection("status", "an HTTP status of 400 to 599; nothing is done", {
    status: whole(400, 599).describe("the HTTP status"),
  }),
  onConnection("hang", "no answer until the fault is removed; nothing is done"),
  onConnection("receipt-of-another", "the receipt of another transaction", {
    disguised: z
      .boolean("is neither true nor false")
      .optional()
      .describe("give that receipt the requested hash"),
  }),
] as const;

const chainSpecs = [
  onChain("hold-blocks", "no block is mined until the fault is removed"),
  onChain("drop", "transactions that wait for a block are taken out of the node", {
    hash: z
      .string("is not a text")
      .regex(hexForms.bytes32, "is not the hash of a transaction")
      .transform((text) => text as Hex)
      .optional()
      .describe("which transaction (default all that wait)"),
  }),
  // The nodes of the harness keep 64 states.
  onChain("reorg", "the newest blocks are replaced by empty ones; their transactions are gone", {
    depth: whole(1, 63).describe("how many blocks"),
  }),
  onChain(
    "base-fee",
    "the base fee of every block from the next one on; meanwhile a block comes each second",
    {
      wei: z
        .string("is not a text of decimal digits")
        .refine((text) => (parseUint256(text) ?? 2n ** 64n) < 2n ** 64n, "is not a number of wei below 2^64")
        .describe("wei per gas"),
    },
  ),
  onChain("empty-operator", "the operator has no gas money until the fault is removed"),
] as const;

/** Faults that happen once: there is nothing to list or to remove. */
const momentary: ReadonlySet<FaultKind> = new Set<FaultKind>(["drop", "reorg"]);

/** Returns true if a fault of this kind lasts until it is removed. */
export function lasts(kind: FaultKind): boolean {
  return !momentary.has(kind);
}

const connectionSpec = z.discriminatedUnion("kind", connectionSpecs);
const chainSpec = z.discriminatedUnion("kind", chainSpecs);

export type ConnectionFaultSpec = z.infer<typeof connectionSpec>;
export type ChainFaultSpec = z.infer<typeof chainSpec>;
/** A fault, as data. Accepted by the control routes and the command line. */
export type FaultSpec = ConnectionFaultSpec | ChainFaultSpec;
export type FaultKind = FaultSpec["kind"];

/**
 * Selects the calls that a connection fault hits.
 * - `method`: the method, such as `eth_sendRawTransaction*` (`*` matches any characters); any by default.
 * - `nth`: the first match to hit, counted from when the fault was set; 1 by default.
 * - `times`: how many matches to hit; one by default if `nth` is given, otherwise all.
 *
 * Faults of single calls (`error`, `staleHead`, `receiptOfAnother`) count calls. All others hit a whole HTTP request and
 * count the requests with a matching call.
 */
export type CallMatch = Pick<ConnectionFaultSpec, "method" | "nth" | "times">;

const specs = [...connectionSpecs, ...chainSpecs];

export type FaultPlace = "node" | "chain" | "facilitator";

/** The schema of each kind of fault, with the places where it can be set. */
export const faultTable = specs.map((schema) => {
  const kind = schema.shape.kind.value;
  const isOfChain = chainSpecs.some(({ shape }) => shape.kind.value === kind);
  const places: readonly FaultPlace[] = isOfChain
    ? ["chain"]
    : facilitatorKinds.has(kind)
      ? ["node", "facilitator"]
      : ["node"];
  return { kind, schema, places };
});
/** The `kind` of every fault. */
export const faultKinds: readonly FaultKind[] = specs.map(({ shape }) => shape.kind.value);

/** An example value for each field. */
export const examples: Readonly<Record<string, string>> = {
  network: "base",
  kind: "answer-lost",
  method: "eth_sendRawTransaction*",
  nth: "2",
  times: "1",
  ms: "500",
  retryAfterSeconds: "1",
  code: "-32000",
  message: "header not found",
  form: "cut-off",
  blocks: "10",
  status: "503",
  disguised: "true",
  hash: `0x${"5f".repeat(32)}`,
  depth: "3",
  wei: "100000000000",
};

/**
 * Reads a fault from data.
 *
 * @param names the known networks; the built-in ones by default
 * @throws ConfigurationError listing everything that is wrong with it.
 */
export function readFaultSpec(raw: unknown, names: readonly string[] = networkNames): FaultSpec {
  const named = z.looseObject({ kind: z.unknown() }).safeParse(raw).data?.kind;
  const schema = specs.find(({ shape }) => shape.kind.value === named) ?? unknownKind;
  const read = schema.safeParse(raw);
  const given = z.looseObject({}).safeParse(raw).data ?? {};
  const { network: name } = given;
  const unknown: readonly ConfigurationProblem[] =
    typeof name !== "string" || names.includes(name) || name === facilitatorPlace
      ? []
      : [{ name: "network", problem: `${shown(name)}is not one of ${names.join(", ")}`, example: "base" }];
  if (name === facilitatorPlace && typeof named === "string" && !facilitatorKinds.has(named)) {
    const problem = `${quote(named)} happens to nodes and chains, and not to the facilitator; there is ${[...facilitatorKinds].join(", ")}`;
    throw new ConfigurationError([{ name: "kind", problem, example: "answer-lost" }]);
  }
  const { method } = read.success ? given : {};
  if (name === facilitatorPlace && typeof method === "string" && !facilitatorRoutes.some(matcherOf(method))) {
    const problem = `${quote(method)} is none of the facilitator's: ${facilitatorRoutes.join(", ")}`;
    throw new ConfigurationError([{ name: "method", problem, example: "settle" }]);
  }
  if (read.success && unknown.length === 0) return read.data as FaultSpec;
  throw new ConfigurationError([
    ...unknown,
    ...(read.error?.issues ?? []).flatMap((issue) => {
      if (issue.code === "unrecognized_keys") {
        return issue.keys.map((name) => ({ name, problem: `a fault of kind ${String(named)} has none` }));
      }
      const name = issue.path.length === 0 ? "fault" : String(issue.path[0]);
      const example = examples[name];
      return [{ name, problem: describe(given[name], issue), ...(example !== undefined && { example }) }];
    }),
  ]);
}

/** Says that a value is missing, or what is wrong with it. */
function describe(value: unknown, { path, message }: z.core.$ZodIssue): string {
  if (path.length === 0) return message;
  return value === undefined ? "is needed" : `${shown(value)}${message}`;
}

/** Returns a value to put before its problem; empty unless it is a string or a number. */
function shown(value: unknown): string {
  return typeof value === "string" ? `${quote(value)} ` : typeof value === "number" ? `${value} ` : "";
}

/** Finds the other problems of a fault whose kind is unknown. */
const unknownKind = z.looseObject(
  { network, kind: z.never(`is not one of ${faultKinds.join(", ")}`), ...matchFields },
  "is not an object",
);

function whole(least: number, most: number) {
  const problem = `is not a whole number from ${least} to ${most}`;
  return z.int(problem).min(least, problem).max(most, problem);
}

function onConnection<const K extends string, Shape extends z.core.$ZodLooseShape = object>(
  kind: K,
  means: string,
  shape: Shape = {} as Shape,
) {
  return z.strictObject({ network, kind: z.literal(kind), ...matchFields, ...shape }).describe(means);
}

function onChain<const K extends string, Shape extends z.core.$ZodLooseShape = object>(
  kind: K,
  means: string,
  shape: Shape = {} as Shape,
) {
  return z.strictObject({ network, kind: z.literal(kind), ...shape }).describe(means);
}

/** Returns a predicate for the methods that match a pattern, in which `*` stands for any characters. */
export function matcherOf(pattern = "*"): (method: string) => boolean {
  // Collapse runs of `*`: they mean the same as one, but could backtrack forever.
  const whole = new RegExp(`^${pattern.replaceAll(/\*+/g, ".*")}$`);
  return (method) => whole.test(method);
}
