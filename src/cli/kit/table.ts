/** A column of a table: its heading, and whether its cells stand at the right. */
export type Column = { heading: string; right?: boolean };

/** Lays out rows in columns that are as wide as their widest cell, two spaces apart. */
export function renderTable(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const widths = columns.map(({ heading }, index) =>
    Math.max(heading.length, ...rows.map((row) => row[index]?.length ?? 0)),
  );
  const line = (cells: readonly string[]) =>
    columns
      .map(({ right }, index) => {
        const cell = cells[index] ?? "";
        const width = widths[index] ?? 0;
        return right === true ? cell.padStart(width) : cell.padEnd(width);
      })
      .join("  ")
      .trimEnd();
  return [
    line(columns.map(({ heading }) => heading)),
    line(widths.map((width) => "─".repeat(width))),
    ...rows.map(line),
  ].join("\n");
}
