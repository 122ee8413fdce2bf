import type { Page } from "playwright-core";

/** The minimum contrast of text according to WCAG 2.2 (AA). */
const leastContrast = 4.5;

/** Runs in the page; a string, because this project has no DOM types. */
const findInPage = `
  const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  // The luminance of colours on top of one another.
  const luminanceOf = (colors) => {
    for (const color of colors) {
      context.fillStyle = color;
      context.fillRect(0, 0, 1, 1);
    }
    const [red, green, blue] = [...context.getImageData(0, 0, 1, 1).data].map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  [...document.querySelectorAll("body *")].flatMap((element) => {
    const texts = [...element.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE);
    const text = texts.map(({ textContent }) => textContent).join("").trim();
    if (text === "" || !element.checkVisibility()) return [];
    const behind = [];
    for (let each = element; each !== null; each = each.parentElement) {
      behind.unshift(getComputedStyle(each).backgroundColor);
    }
    const back = luminanceOf(["white", ...behind]);
    const front = luminanceOf(["white", ...behind, getComputedStyle(element).color]);
    const contrast = (Math.max(back, front) + 0.05) / (Math.min(back, front) + 0.05);
    return contrast < ${leastContrast} ? [contrast.toFixed(2) + ": " + text.slice(0, 40)] : [];
  });
`;

/** The visible texts on a page with too little contrast, with that contrast. */
export function findFaintTexts(page: Page): Promise<readonly string[]> {
  return page.evaluate<string[]>(findInPage);
}
