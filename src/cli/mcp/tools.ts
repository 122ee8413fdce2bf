import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { createControlClient } from "../../harness/control/control-client.ts";
import { findHarness } from "../../harness/control/description.ts";
import { frameworks } from "../../payer/shop-variables.ts";
import { KitError } from "../../util/errors.ts";
import { parseJson } from "../../util/json.ts";
import { packageFile } from "../../util/self-command.ts";
import type { CommandEntry, Option, Program } from "../kit/command.ts";
import { shopFiles } from "../kit/shop-templates.ts";

/** A tool of the MCP server. */
export type Tool = {
  name: string;
  description: string;
  inputSchema: z.ZodObject;
  /** @throws KitError if the tool fails */
  run(values: Record<string, unknown>, signal: AbortSignal): Promise<ToolResult>;
};

export type ToolResult = { result: unknown; isError?: boolean };

/** The `up` that the tools act on, the file with its added networks, and the program whose commands they run. */
export type ToolContext = { url: string; networkFile: string | undefined; program: Program };

/** The commands that are tools, by tool name. */
const toolCommands: Readonly<Record<string, string>> = {
  list: "logs",
  why: "why",
  explain: "explain",
  check: "check",
  buy: "buy",
  pay: "pay",
  payers: "payers",
  fund: "fund",
  approve: "approve",
  fault: "fault",
  fault_list: "fault list",
  fault_clear: "fault clear",
  advance_time: "advance-time",
  reset: "reset",
};

/** Options that the server sets itself, or with which a call would never end. */
const ownOptions = new Set(["json", "url", "follow", "network-file", "token"]);

export async function createTools(context: ToolContext): Promise<Tool[]> {
  const ofCommands = await Promise.all(
    Object.entries(toolCommands).flatMap(([name, command]) => {
      const entry = context.program.commands.find(([known]) => known === command);
      return entry === undefined ? [] : [commandTool(name, entry, context)];
    }),
  );
  return [...ofCommands, stateTool(context), readDocTool(), setupTool(context)];
}

async function commandTool(
  name: string,
  [command, summary, load]: CommandEntry,
  { url, networkFile, program }: ToolContext,
): Promise<Tool> {
  const { options } = await load();
  // Whoever can reach the server must not get at files on this machine.
  const taken = Object.entries(options).filter(
    ([option, { placeholder }]) => !ownOptions.has(option) && placeholder !== "FILE",
  );
  const members = taken.map(([option, about]) => [memberOf(option), schemaOf(about)] as const);
  return {
    name,
    description: summary,
    inputSchema: z.strictObject(Object.fromEntries(members)),
    async run(values, signal) {
      const args = taken.flatMap(([option, about]) => argumentsOf(option, about, values[memberOf(option)]));
      const own = [...("url" in options ? [`--url=${url}`] : []), "--json"];
      const lines: string[] = [];
      const failures: string[] = [];
      const code = await program.main([...command.split(" "), ...args, ...own], {
        print: (text) => lines.push(...text.split("\n")),
        printError: (text) => failures.push(text),
        // Whoever can reach this server must not get at keys in the caller's environment.
        env: { NETWORKS_FILE: networkFile },
        takeSignals: () => signal,
      });
      const documents = lines.map((line) => parseJson(line) ?? line);
      // One line per payment for `list`, otherwise one document.
      const result = name === "list" && code === 0 ? documents : documents[0];
      const hasFailed = code !== 0 && (result === undefined || Object.hasOwn(Object(result), "error"));
      return { result: result ?? { text: failures.join("\n") }, isError: hasFailed };
    },
  };
}

const memberOf = (option: string) => option.replaceAll("-", "_");

function schemaOf({ describe, placeholder, required, default: usual, example }: Option): z.ZodType {
  const more =
    usual !== undefined ? ` (default ${usual})` : example === undefined ? "" : `, such as ${example}`;
  const value =
    placeholder === undefined ? z.boolean() : z.union([z.string(), z.number()], { error: describeProblem });
  const described = value.describe(`${describe}${more}`);
  return required === true ? described : described.optional();
}

const describeProblem = ({ input }: { input?: unknown }) =>
  input === undefined ? "is needed" : "must be a string or a number";

/** @throws KitError for text that a command line would read as something else */
function argumentsOf(option: string, { placeholder, positional }: Option, value: unknown): string[] {
  if (value === undefined || value === false) return [];
  if (placeholder === undefined) return [`--${option}`];
  if (positional !== true) return [`--${option}=${value}`];
  const text = `${value}`;
  if (text.startsWith("-")) throw new KitError(`${memberOf(option)} must not begin with a hyphen`);
  if (existsSync(text)) throw new KitError(`${memberOf(option)} is the name of a file; give its content`);
  return [text];
}

function stateTool({ url }: ToolContext): Tool {
  return {
    name: "state",
    description:
      "describe the running up: networks with their RPC URLs, contracts, tokens and test payers, how far each chain is, faults",
    inputSchema: z.strictObject({}),
    async run() {
      const client = createControlClient(url);
      const [description, chains, faults] = await Promise.all([
        findHarness(url),
        client.listChains(),
        client.listFaults(),
      ]);
      return { result: { ...description, chains, ...faults } };
    },
  };
}

function readDocTool(): Tool {
  const names = [
    "README.md",
    "llms.txt",
    ...readdirSync(packageFile("docs"), { recursive: true })
      .map((path) => join("docs", `${path}`))
      .filter((path) => path.endsWith(".md")),
  ].sort();
  return {
    name: "read_doc",
    description: "read a page of the documentation; llms.txt says what is where",
    inputSchema: z.strictObject({ name: z.enum(names).default("llms.txt").describe("the page") }),
    run: async ({ name }) => ({ result: { name, text: readFileSync(packageFile(`${name}`), "utf8") } }),
  };
}

function setupTool({ url }: ToolContext): Tool {
  return {
    name: "setup",
    description:
      "give the files of a shop, a buyer and their test, and the variables that connect them with the running up",
    inputSchema: z.strictObject({
      framework: z.enum(frameworks).default("express").describe("what the shop is made with"),
      typescript: z.boolean().default(false).describe("TypeScript, which Node runs as it is"),
    }),
    run: async ({ framework, typescript }) => {
      const name = frameworks.find((known) => known === framework) ?? "express";
      return {
        result: { framework: name, files: shopFiles(name, { typescript: typescript === true, url }) },
      };
    },
  };
}
