import { escapeControls } from "./text.ts";

/** A column of a table by its heading; numbers stand at the right. */
export type Column = string | { right: string };

/** Lays out rows in columns that are as wide as their widest cell, two spaces apart. */
export function renderTable(columns: readonly Column[], shown: readonly (readonly string[])[]): string {
  // A cell may hold what others wrote, which must not look like a row of its own.
  const rows = shown.map((cells) => cells.map(escapeControls));
  const headings = columns.map((column) => (typeof column === "string" ? column : column.right));
  const widths = headings.map((heading, index) =>
    Math.max(heading.length, ...rows.map((row) => row[index]?.length ?? 0)),
  );
  const line = (cells: readonly string[]) =>
    columns
      .map((column, index) => {
        const cell = cells[index] ?? "";
        const width = widths[index] ?? 0;
        return typeof column === "string" ? cell.padEnd(width) : cell.padStart(width);
      })
      .join("  ")
      .trimEnd();
  return [line(headings), line(widths.map((width) => "─".repeat(width))), ...rows.map(line)].join("\n");
}

/** As wide as a terminal is at least. */
export const terminalWidth = 80;

/** Names at the left, and beside them what they are, broken into lines that a terminal holds. */
export function renderRows(rows: readonly (readonly [name: string, text: string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows
    .map(([name, text]) => {
      const [first = "", ...others] = wrapText(text, terminalWidth - 4 - width);
      const indent = " ".repeat(4 + width);
      return [`  ${name.padEnd(width)}  ${first}`, ...others.map((line) => `${indent}${line}`)].join("\n");
    })
    .join("\n");
}

/** Breaks a text between words into lines of `width` characters; a longer word has a line of its own. */
export function wrapText(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const line = lines.at(-1);
    if (line === undefined || line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${line} ${word}`;
  }
  return lines;
}
