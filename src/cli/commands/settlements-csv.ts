/**
 * One line of CSV, as RFC 4180 has it, without its line break: fields with commas, quotes or line breaks are quoted,
 * null is empty.
 */
export function csvLine(fields: readonly (string | null)[]): string {
  return fields.map((field) => quote(field ?? "")).join(",");
}

function quote(field: string): string {
  return /[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}
