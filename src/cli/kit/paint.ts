import { styleText } from "node:util";

/** How a part of a line is to look. */
const looks = {
  strong: "bold",
  soft: "dim",
  good: "green",
  bad: "red",
  advice: "yellow",
} as const;

type Look = keyof typeof looks;

/**
 * Marks of a private plane of Unicode, and not the escape sequences of terminals: those are taken out of all that is printed,
 * since it may hold what others wrote. Such a text can colour itself at most.
 */
const firstMark = 0xf0000;
const end = String.fromCodePoint(firstMark);
const names = Object.keys(looks) as Look[];
const begin = (look: Look) => String.fromCodePoint(firstMark + 1 + names.indexOf(look));
const marked = /[\u{f0001}-\u{f0005}]([^\u{f0000}]*)\u{f0000}/gu;

/** Paints text: `paint.good("valid")`. The terminal shows it so where it has colours. */
export const paint = Object.fromEntries(
  names.map((look) => [look, (text: string) => `${begin(look)}${text}${end}`]),
) as Readonly<Record<Look, (text: string) => string>>;

/** A painted text for a terminal, or for what has no colours, such as a file. */
export function show(text: string, hasColours: boolean): string {
  return text.replace(marked, (whole, part: string) => {
    const look = names[(whole.codePointAt(0) ?? firstMark) - firstMark - 1];
    return hasColours && look !== undefined ? styleText(looks[look], part, { validateStream: false }) : part;
  });
}
