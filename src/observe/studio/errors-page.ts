import {
  invalidReasons,
  nextActions,
  paymentStates,
  type RefusedSituation,
  reasonOf,
  reasons,
  referenceReasons,
  type Situation,
  settleErrorReason,
  situations,
} from "../../protocol/catalogue.ts";
import { reasonTexts, situationTexts, textsOfChannels, withLocal } from "../../protocol/catalogue-texts.ts";
import { mistakes } from "../../protocol/mistakes.ts";
import { problemKinds, problemTexts } from "../../protocol/problems.ts";
import { specReason } from "../../protocol/reference-reasons.ts";

/** The page's content security policy: text and inline styles only. */
export const errorsPagePolicy =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const style =
  ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}" +
  "code{font-family:ui-monospace,monospace;font-size:.9em}h3{margin-top:2.5rem}:target{background:#ffe08a55}" +
  "table{border-collapse:collapse;display:block;overflow-x:auto}td,th{border:1px solid #8884;padding:.3rem .5rem;text-align:left}";

let page: string | undefined;

/** docs/errors.md as a page; each section has the id that `more` of an explanation links to. */
export function errorsPage(): string {
  page ??= `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>x402 errors, and how to fix them</title><style>${style}</style>${toHtml(errorsGuide())}</html>`;
  return page;
}

/** Converts the few Markdown elements that the guide uses: headings, paragraphs, lists, tables and inline text. */
function toHtml(markdown: string): string {
  let nextId: string | undefined;
  return markdown
    .split(/\n{2,}/)
    .map((block) => {
      const [, anchor] = /^<a id="([\w-]+)"><\/a>$/.exec(block) ?? [];
      if (anchor !== undefined) {
        nextId = anchor;
        return "";
      }
      const [, marks, title] = /^(#{1,3}) (.*)$/.exec(block) ?? [];
      if (marks !== undefined && title !== undefined) {
        const id = nextId ?? title.replace(/`/g, "");
        nextId = undefined;
        return `<h${marks.length} id="${escapeHtml(id)}">${inline(title)}</h${marks.length}>`;
      }
      if (block.startsWith("- ")) return `<ul>${listOf(block)}</ul>`;
      return block.startsWith("|") ? tableOf(block) : `<p>${inline(block)}</p>`;
    })
    .join("\n");
}

function listOf(block: string): string {
  return block
    .split("\n")
    .map((line) =>
      line.startsWith("- ") ? `<li>${inline(line.slice(2))}</li>` : `</ul><p>${inline(line)}</p><ul>`,
    )
    .join("");
}

function tableOf(block: string): string {
  const rows = block
    .trim()
    .split("\n")
    .map((row) => row.slice(1, -1).split(" | "));
  return `<table>${rows
    .filter((_, index) => index !== 1)
    .map((cells, index) => {
      const cell = index === 0 ? "th" : "td";
      return `<tr>${cells.map((text) => `<${cell}>${inline(text.trim())}</${cell}>`).join("")}</tr>`;
    })
    .join("")}</table>`;
}

/** Converts inline code, bold text and links. */
function inline(text: string): string {
  return escapeHtml(text)
    .replace(/`([^`]*)`/g, "<code>$1</code>")
    .replace(/\*\*([^*]*)\*\*/g, "<strong>$1</strong>")
    .replace(/\[([^\]]*)\]\((#[\w-]+)\)/g, '<a href="$2">$1</a>');
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}

const refused = invalidReasons.flatMap((reason) => namesOf<RefusedSituation>(reasons[reason].situations));

/** docs/errors.md: every reason, situation and usual mistake, from the catalogue that `x402-kit explain` uses. */
export function errorsGuide(): string {
  return [
    "# Errors, and how to fix them",
    "",
    "`x402-kit explain` finds these mistakes in a payment header, a request body, a 402 challenge or an answer, and names",
    "the facts. This page is generated from the same tables.",
    "",
    "## By reason",
    "",
    "`invalidReason` of verify and `errorReason` of settle. With `REASONS=reference` (`up --plain`) some have the names that the",
    "public reference facilitator gives them; `explain` knows both.",
    ...Object.entries(reasonTexts).flatMap(([reason, { meaning, fix, locally }]) => [
      "",
      `### \`${reason}\``,
      "",
      meaning,
      "",
      `**Fix:** ${withLocal(fix, locally)}`,
      "",
      ...namesInReference(reason),
      ...situationsOf(reason),
      `Usual mistakes: ${usualMistakes(reason).join("; ")}.`,
    ]),
    "",
    "## By reason, for scheme “batch-settlement”",
    ...Array.from(textsOfChannels).flatMap(([reason, { meaning, fix }]) => [
      "",
      `### \`${reason}\``,
      "",
      meaning,
      "",
      `**Fix:** ${fix}`,
    ]),
    "",
    "## Without a verdict",
    "",
    "Answers with another status than 200 are problems by RFC 9457; their `type` ends in these names.",
    // Problems that are also mistakes have their section below.
    ...Object.values(problemKinds)
      .filter(({ name }) => !Object.hasOwn(mistakes, name))
      .flatMap(({ name, status, title }) => [
        "",
        `### \`${name}\``,
        "",
        `${title} (${status}).`,
        "",
        `**Fix:** ${problemTexts[name].fix}`,
      ]),
    "",
    "## What a program should do next",
    "",
    "Every answer of verify and settle that is not a success carries `situation`, `nextAction` and `paymentState`, and where",
    "they apply `retryAfterSeconds` and `poll`. This is the whole table; the service, the fixtures and the mock write it from",
    "one place. A payer that follows `nextAction` never pays twice. Where no answer came, or one that is no JSON of the",
    "facilitator, do as with `retry_same_payment`.",
    "",
    "| `nextAction` | what to do |",
    "|---|---|",
    ...Object.entries(nextActions).map(([action, todo]) => `| \`${action}\` | ${todo} |`),
    "",
    "| `paymentState` | meaning |",
    "|---|---|",
    ...Object.entries(paymentStates).map(([state, meaning]) => `| \`${state}\` | ${meaning} |`),
    "",
    "`situation` says what has happened, more exactly than the reason does. More situations may be added; a program needs",
    "only the members beside it. Where an earlier request has used the authorization, or is about to, `situation` is about",
    "that request, and the reason is still that of the one that is answered.",
    "",
    "| `situation` | meaning | reason | of a v1 settle | `nextAction` | `paymentState` |",
    "|---|---|---|---|---|---|",
    ...namesOf<Situation>(situations).map((name) => {
      const { nextAction, paymentState } = situations[name];
      const cells = [name, situationTexts[name].means, ...reasonsOf(name), nextAction, paymentState];
      return `| ${cells.map((cell, column) => (column === 1 || cell === "" ? cell : `\`${cell}\``)).join(" | ")} |`;
    }),
    "",
    "## By mistake",
    ...Object.entries(mistakes).flatMap(([id, { title, why, fix }]) => [
      "",
      `<a id="${id}"></a>`,
      "",
      `### ${title}`,
      "",
      why,
      "",
      `**Fix:** ${fix}`,
    ]),
    "",
  ].join("\n");
}

/** The names of a reason with `REASONS=reference`. */
function namesInReference(reason: string): string[] {
  const names = referenceReasons.filter((name) => specReason(name) === reason);
  return names.length === 0
    ? []
    : [`Public reference facilitator: ${names.map((name) => `\`${name}\``).join(", ")}.`, ""];
}

/** The advice for each situation of a reason, if it adds to the advice for the reason. */
function situationsOf(reason: string): string[] {
  const advised = refused.flatMap((name) => {
    const { means, fix } = situationTexts[name];
    return reasonOf(name) === reason && fix !== undefined ? [`- \`${name}\`: ${means}. **Fix:** ${fix}`] : [];
  });
  return advised.length === 0 ? [] : [...advised, ""];
}

/** Links to the mistakes that lead to a reason. */
function usualMistakes(reason: string): string[] {
  const own = refused.filter((name) => reasonOf(name) === reason);
  const ids = own.flatMap((name) => situationTexts[name].mistakes ?? []);
  // No mistake in a request leads to this reason.
  const otherwise = own.length === 0 ? "undetermined" : "refused";
  const found = ids.length === 0 ? ([otherwise] as const) : new Set(ids);
  return [...found].map((id) => `[${lowerFirst(mistakes[id].title)}](#${id})`);
}

/** The reasons of verify and of a v1 settle in a situation; empty if it has none of its own. */
function reasonsOf(situation: Situation): [string, string] {
  if (!isRefused(situation)) return ["", ""];
  const reason = reasonOf(situation);
  return [reason, settleErrorReason({ situation, reason }, 1)];
}

function isRefused(name: Situation): name is RefusedSituation {
  return refused.some((one) => one === name);
}

function namesOf<Name extends string>(table: Readonly<Partial<Record<Name, unknown>>>): Name[] {
  return Object.keys(table) as Name[];
}

/** Lowercases the first letter, except in titles that start with a field or type name. */
function lowerFirst(title: string): string {
  return /^[A-Z][a-z]*\b(?!Authorization)/.test(title) && !title.startsWith("ReceiveWith")
    ? `${title.charAt(0).toLowerCase()}${title.slice(1)}`
    : title;
}
