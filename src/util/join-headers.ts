/** HTTP headers with one text each, as Node has them with none or several. */
export function joinHeaders(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, typeof value === "string" ? value : value.join(", ")]],
    ),
  );
}
