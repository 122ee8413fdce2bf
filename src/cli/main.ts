import { errorCodes } from "../util/error-codes.ts";
import { ConfigurationError, type ConfigurationProblem } from "../util/errors.ts";
import { bigintsAsText } from "../util/json.ts";
import { kitVersion, self } from "../util/self-command.ts";
import { findSlip, mostTyposOf } from "../util/text.ts";
import type { Command, CommandEntry } from "./kit/command.ts";
import { requirePrivateCompileCache, useCompileCache } from "./kit/compile-cache.ts";
import { describeFailure, exitCodeOf, type Failure, failureOf } from "./kit/failure.ts";
import { Interruption, paint, type Terminal, withoutControls } from "./kit/terminal.ts";

/**
 * The commands of a module, by its exports. The module is loaded when one of them is called, because imports take most
 * of the start time.
 */
function commandsOf<K extends string>(
  load: () => Promise<Readonly<Record<NoInfer<K>, Command>>>,
  entries: Readonly<Record<K, readonly [name: string, summary: string, keyless?: CommandEntry[3]]>>,
): CommandEntry[] {
  return (Object.keys(entries) as K[]).map((exported) => {
    const [name, summary, keyless] = entries[exported];
    return [name, summary, async () => (await load())[exported], keyless];
  });
}

export const commands: readonly CommandEntry[] = [
  ...commandsOf(() => import("./up/up.ts"), {
    up: ["up", "start local chains and the facilitator, and pay once on each network", "keyless"],
  }),
  ...commandsOf(() => import("./commands/mock.ts"), {
    mock: ["mock", "start a mock facilitator without chains, whose answers you choose", "keyless"],
  }),
  ...commandsOf(() => import("./commands/init.ts"), {
    init: ["init", "write a shop, a buyer and their test into a folder", "keyless"],
  }),
  ...commandsOf(() => import("./commands/running-up.ts"), {
    pay: ["pay", "make one payment against a running `up`", "keyless"],
    payers: [
      "payers",
      "list the test payers, with what becomes of their payments and with their keys",
      "keyless",
    ],
    fund: ["fund", "give an account of a running `up` some of the token", "keyless"],
    approve: ["approve", "let Permit2 take the tokens of an account of a running `up`", "keyless"],
    advanceTime: ["advance-time", "move the time of a chain of a running `up` forward", "keyless"],
    reset: ["reset", "put a running `up` back to its start: chains and ledger", "keyless"],
    stateSave: [
      "state save",
      "write the session of a running `up` to a file, for `up --state` anywhere: a whole bug report",
      "keyless",
    ],
  }),
  ...commandsOf(() => import("./commands/buy.ts"), {
    buy: [
      "buy",
      "buy at a shop with a test payer, and see each step: the 402, the payment, the answer, the receipt",
    ],
  }),
  ...commandsOf(() => import("./commands/payments.ts"), {
    why: ["why", "explain a payment that a running `up` has seen: what is wrong, and what to do"],
    logs: ["logs", "list the payments of a running `up`, and follow those that come"],
  }),
  ...commandsOf(() => import("./commands/fault.ts"), {
    fault: [
      "fault",
      "make the RPC or a chain of a running `up` fail: lost answers, reorganizations; see also fault list and fault clear",
      "keyless",
    ],
    faultList: ["fault list", "list the faults of a running `up`, and how often each has hit", "keyless"],
    faultClear: ["fault clear", "end the faults of a running `up`", "keyless"],
  }),
  ...commandsOf(() => import("./commands/network.ts"), {
    forkRecord: ["fork record", "record a fork of a network, which later starts offline from the recording"],
  }),
  ...commandsOf(() => import("./commands/network.ts"), {
    network: ["network", "read a token of any EVM chain, and print the network file that adds the chain"],
  }),
  ...commandsOf(() => import("./commands/explain.ts"), {
    explainCommand: [
      "explain",
      "say what is wrong with a payment header, a request body, a challenge or an answer",
    ],
  }),
  ...commandsOf(() => import("./commands/mcp.ts"), {
    mcp: ["mcp", "serve a running `up` to a coding agent: an MCP server on stdin and stdout", "keyless"],
  }),
  ...commandsOf(() => import("./commands/check.ts"), {
    check: [
      "check",
      "check what a shop offers and how it answers, without paying: one of yours, or any on the internet",
      "keyless",
    ],
  }),
  ...commandsOf(() => import("./commands/conformance.ts"), {
    conformance: [
      "conformance",
      "run the scenarios against a facilitator, and report where its answers differ",
    ],
  }),
  ...commandsOf(() => import("./commands/upstream-e2e.ts"), {
    upstreamE2e: [
      "upstream-e2e",
      "write the files with which the x402 project's end-to-end suite runs against this kit",
      "keyless",
    ],
  }),
  ...commandsOf(() => import("./commands/judge.ts"), {
    judgeClientCommand: [
      "judge client",
      "run a client against shops that go wrong: does it ever pay twice, or for nothing?",
      "keyless",
    ],
    judgeShopCommand: [
      "judge shop",
      "run good and bad buyers against a shop: does it ever serve for nothing, or charge for it?",
      "keyless",
    ],
  }),
  ...commandsOf(() => import("./serve/serve.ts"), {
    serve: ["serve", "run the facilitator against real networks, as the environment says"],
  }),
  ...commandsOf(() => import("./deploy/deploy.ts"), {
    deployCommand: ["deploy", "deploy the facilitator contract, or grant and revoke its operators"],
  }),
  ...commandsOf(() => import("./commands/doctor.ts"), {
    doctor: ["doctor", "compare the configuration of `serve` with the chains and the database it names"],
  }),
  ...commandsOf(() => import("./commands/database-commands.ts"), {
    migrateCommand: ["migrate", "bring the database up to date"],
  }),
  ...commandsOf(() => import("./commands/recover.ts"), {
    recover: ["recover", "pay out payments that were submitted directly to the token"],
  }),
  ...commandsOf(() => import("./commands/recover.ts"), {
    stranded: ["stranded", "list value in the contract that no organization has claimed"],
  }),
  ...commandsOf(() => import("./commands/org.ts"), {
    orgCreate: ["org create", "add an organization that payments can be settled for"],
    orgList: ["org list", "list the organizations"],
    orgShow: ["org show", "show an organization, its keys, and who changed what"],
    orgSetRecipient: ["org set-recipient", "set the wallet that an organization is paid to on a network"],
    orgSetLimits: [
      "org set-limits",
      "set the least amount and the gas budget of an organization on a network",
    ],
  }),
  ...commandsOf(() => import("./commands/key.ts"), {
    keyCreate: ["key create", "issue an API key"],
    keyList: ["key list", "list the API keys of an organization"],
    keyRotate: ["key rotate", "replace an API key; the old one works until its grace period is over"],
    keyRevoke: ["key revoke", "end an API key at once"],
    keyAcceptPepper: [
      "key accept-pepper",
      "accept a new API_KEY_PEPPER for the database; keys made with the old one stop working",
    ],
  }),
  ...commandsOf(() => import("./commands/operator.ts"), {
    operatorShow: [
      "operator show",
      "show an operator's next txNonce, its missing transactions, and manual changes of the txNonce",
    ],
    operatorAcceptTxNonce: [
      "operator accept-tx-nonce",
      "continue from the chain's txNonce, after another program has sent with an operator's key",
    ],
  }),
  ...commandsOf(() => import("./commands/settlements.ts"), {
    settlementsList: ["settlements list", "list settlements, also as CSV"],
    settlementsShow: ["settlements show", "show a settlement"],
  }),
  ...commandsOf(() => import("./commands/channels.ts"), {
    channelsList: [
      "channels list",
      "list the channels in the ledger of `serve`, with what was deposited, claimed and refunded; the studio shows those of an `up`",
    ],
    channelsShow: ["channels show", "show a channel in the ledger of `serve`"],
  }),
  ...commandsOf(() => import("./commands/channel-actions.ts"), {
    channelsClaim: ["channels claim", "claim what a shop has charged, by the vouchers that it keeps"],
    channelsSettle: ["channels settle", "have a receiver paid what was claimed for it"],
    channelsRefund: ["channels refund", "give a payer back what a shop has not charged, and claim the rest"],
  }),
  ...commandsOf(() => import("./commands/reexamine.ts"), {
    settlementsReexamine: [
      "settlements reexamine",
      "examine undecided settlements again, and end those of which the chain shows what became",
    ],
  }),
  ...commandsOf(() => import("./commands/database-commands.ts"), {
    settlementsArchive: ["settlements archive", "move old settlements out of the database into a file"],
  }),
];

/** The groups in the help, with the first words of their commands. */
const groups = {
  "Run a facilitator": ["up", "mock", "init", "serve"],
  "Pay on a running up": ["pay", "buy", "payers", "fund", "approve", "advance-time", "reset", "state"],
  "Look at payments": ["why", "logs", "explain", "mcp"],
  "Test what pays and is paid": ["check", "fault", "judge", "conformance", "upstream-e2e", "fork", "network"],
  "Operate with real money": [
    "deploy",
    "doctor",
    "migrate",
    "org",
    "key",
    "settlements",
    "channels",
    "operator",
    "recover",
    "stranded",
  ],
} as const;

/** The commands of each group, in order. A command in no group is missing from the help. */
export function groupCommands(): [title: string, some: readonly CommandEntry[]][] {
  return Object.entries(groups).map(([title, words]) => [
    title,
    words.flatMap((word) => commands.filter(([name]) => name.split(" ")[0] === word)),
  ]);
}

/**
 * Runs `x402-kit` with the given arguments; returns the exit code. With `--json`, a command that fails before it has
 * printed anything prints `{"error": …}`.
 */
export async function main(args: readonly string[], outer: Terminal): Promise<number> {
  let hasPrinted = false;
  const inner = withoutControls(outer);
  const terminal: Terminal = {
    ...inner,
    print(text) {
      hasPrinted = true;
      inner.print(text);
    },
  };
  const words = args[0] === "help" ? [...args.slice(1, 3), "--help"] : args;
  const [first] = words;
  if (first === undefined || isHelp(first)) {
    terminal.print(await describeGroups());
    return 0;
  }
  if (first === "--version" || first === "-v") {
    terminal.print(kitVersion());
    return 0;
  }
  const entry = findCommand(words);
  if (entry === undefined) return explainUnknown(words, terminal, fail);
  const [name, summary, load, keyless] = entry;
  const rest = words.slice(name.split(" ").length);
  let loaded: Command | undefined;
  try {
    if (keyless === undefined) requirePrivateCompileCache();
    else useCompileCache(terminal.env);
    const command = await load();
    loaded = command;
    if (rest.slice(0, rest.includes("--") ? rest.indexOf("--") : undefined).some(isHelp)) {
      const { describeCommand } = await import("./kit/command-line.ts");
      terminal.print(describeCommand(name, summary, command));
      return 0;
    }
    return await run(command, rest, terminal);
  } catch (error) {
    if (error instanceof Interruption) return 130;
    if (isMisspelt(words, name, error)) return explainUnknown(words, terminal, fail);
    const failure = failureOf(error, name, loaded);
    fail(failure, describeFailure(failure));
    return exitCodeOf(failure, loaded);
  }

  function fail(error: Failure, text: string): void {
    terminal.printError(text);
    // A second JSON document after the command's output would make both unreadable.
    if (isForPrograms(words) && !hasPrinted) terminal.print(JSON.stringify({ error }));
  }
}

/** Returns true if `--json` is given. Read separately, so that problems with the command line are JSON too. */
function isForPrograms(words: readonly string[]): boolean {
  const end = words.indexOf("--");
  return words.slice(0, end === -1 ? undefined : end).includes("--json");
}

async function run(command: Command, args: readonly string[], terminal: Terminal): Promise<number> {
  const { readCommandLine } = await import("./kit/command-line.ts");
  const warnings: ConfigurationProblem[] = [];
  if (command.usesEnvFile === true) {
    const { loadEnvFile } = await import("../config/variable-reader.ts");
    warnings.push(...loadEnvFile(terminal.env));
  }
  if (command.showsWarnings !== true) {
    for (const { name, problem } of warnings) terminal.printError(`warning: ${name}: ${problem}`);
  }
  const { values, environment, networks, env } = readCommandLine(command, args, terminal.env);
  const outcome = await command.run(
    values,
    { ...terminal, env: { ...env }, networks, warnings, program: { commands, main } },
    environment,
  );
  if (typeof outcome === "number") return outcome;
  const { text, json, code = 0 } = outcome;
  terminal.print(values.json === true ? JSON.stringify(json, bigintsAsText) : text);
  return code;
}

/** The exit codes of commands whose help lists no others; `util/error-codes.ts` has those of errors. */
const exitCodesText = "Exit codes: 0 fine, 1 refused or wrong, 2 usage, 3 nothing listens there, 4 not found";

const forAgents =
  "For coding agents: /mcp of up (MCP), --json of every command, AGENTS.md that init writes, and /llms.txt of up and mock";

function isHelp(word: string): boolean {
  return word === "--help" || word === "-h";
}

/** The command named by the first words, if there is one. */
function findCommand(words: readonly string[]): CommandEntry | undefined {
  const named = (count: number) => commands.find(([name]) => name === words.slice(0, count).join(" "));
  return named(2) ?? named(1);
}

/** Explains an unknown command and suggests the closest one. Asking for help about a group is not a mistake. */
async function explainUnknown(
  words: readonly string[],
  { print }: Terminal,
  fail: (failure: Failure, text: string) => void,
): Promise<number> {
  const [first = "", second] = words;
  const group = commands.filter(([name]) => name.startsWith(`${first} `));
  if (group.length > 0 && second !== undefined && isHelp(second)) {
    print(await describeCommands(group));
    return 0;
  }
  const known = group.length === 0 ? commands : group;
  const tried = group.length === 0 || second === undefined ? first : `${first} ${second}`;
  const meant = findMeant(tried, known);
  const hint = meant === undefined ? "" : `; did you mean ${meant}?`;
  const problem =
    group.length > 0 && second === undefined
      ? `"${first}" needs a second word`
      : `there is no command "${tried}"${hint}`;
  const more = group.length === 0 ? `The commands: ${self} --help` : await describeCommands(known);
  const code = "configuration";
  const failure = { code, message: problem, because: [], hints: [more], command: "" } as const;
  fail(failure, `x402-kit: ${problem}\n\n${more}`);
  return errorCodes[code].exit;
}

/** The command whose name is close enough to explain a typo. */
function findMeant(tried: string, known: readonly CommandEntry[]): string | undefined {
  const names = known.map(([name]) => name);
  return findSlip(tried, names, mostTyposOf(tried));
}

/** Returns true if the second word is not a valid value but close to a command: `fault lst`. */
function isMisspelt([first = "", second = ""]: readonly string[], name: string, error: unknown): boolean {
  if (first !== name || !(error instanceof ConfigurationError)) return false;
  const group = commands.filter(([other]) => other.startsWith(`${first} `));
  return (
    error.problems.some(({ problem }) => problem.startsWith(`"${second}" `)) &&
    findMeant(`${first} ${second}`, group) !== undefined
  );
}

async function describeGroups(): Promise<string> {
  const { renderRows, terminalWidth, wrapText } = await import("../util/text.ts");
  const width = Math.max(...commands.map(([name]) => name.length));
  return [
    "x402-kit: an x402 facilitator, and local chains to try it on",
    ...groupCommands().flatMap(([title, some]) => [
      "",
      paint.strong(title),
      renderRows(some.map(([name, summary]) => [`x402-kit ${name.padEnd(width)}`, summary])),
    ]),
    "",
    ...[exitCodesText, forAgents].flatMap((text) => wrapText(text, terminalWidth)),
    "Options of a command: x402-kit COMMAND --help",
  ].join("\n");
}

async function describeCommands(some: readonly CommandEntry[]): Promise<string> {
  const { renderRows } = await import("../util/text.ts");
  return [
    "x402-kit: an x402 facilitator, and local chains to try it on",
    "",
    renderRows(some.map(([name, summary]) => [`x402-kit ${name}`, summary])),
    "",
    "Options of a command: x402-kit COMMAND --help",
  ].join("\n");
}
