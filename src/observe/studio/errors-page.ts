import { errorsGuide } from "./errors-guide.ts";

/** What the page may do: show text. */
export const errorsPagePolicy =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const style =
  ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}" +
  "code{font-family:ui-monospace,monospace;font-size:.9em}h3{margin-top:2.5rem}:target{background:#ffe08a55}" +
  "table{border-collapse:collapse;display:block;overflow-x:auto}td,th{border:1px solid #8884;padding:.3rem .5rem;text-align:left}";

let page: string | undefined;

/** docs/errors.md as a page, each section under the name that `more` of an explanation links to. */
export function errorsPage(): string {
  page ??= `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>x402 errors, and how to fix them</title><style>${style}</style>${toHtml(errorsGuide())}</html>`;
  return page;
}

/** The little of Markdown that the guide is written in: headings, paragraphs, lists, tables, and what stands in a line. */
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

/** Code, bold text and links in a line. */
function inline(text: string): string {
  return escapeHtml(text)
    .replace(/`([^`]*)`/g, "<code>$1</code>")
    .replace(/\*\*([^*]*)\*\*/g, "<strong>$1</strong>")
    .replace(/\[([^\]]*)\]\((#[\w-]+)\)/g, '<a href="$2">$1</a>');
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
