// What is checked of each screen, in light and dark: accessibility by axe-core, no overflow, no text that is cut without a sign of it. With
// TABLESDK_PICTURES, a picture of each is kept in that folder, at two widths.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const pictures = process.env.TABLESDK_PICTURES;
export const WIDE = { width: 1440, height: 900 };
const NARROW = { width: 900, height: 900 };

/** What axe-core finds, one line for each element. */
async function violations(page) {
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    // A rule of advice asks for landmarks and one heading, too.
    const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
    return violations.flatMap(({ id, nodes }) => nodes.map(({ target, any, all, none }) => `${id}: ${target} ${[...any, ...all, ...none].map(({ message }) => message).join("; ")}`));
  });
  return found;
}

/** Elements that are wider than the window, and texts that are cut although nothing says so. */
async function cut(page) {
  return await page.evaluate(() => {
    const found = [];
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth > clientWidth) found.push(`the page is ${scrollWidth} wide in a window of ${clientWidth}`);
    for (const element of document.querySelectorAll("body *")) {
      const style = getComputedStyle(element);
      // Text for screen readers alone.
      if (element.closest(".hidden, .skip") !== null) continue;
      if (style.overflowX !== "hidden" && style.overflowX !== "clip") continue;
      const hasText = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim() !== "");
      if (!hasText || element.scrollWidth <= element.clientWidth + 1 || element.clientWidth < 2) continue;
      if (style.textOverflow !== "ellipsis") found.push(`cut without an ellipsis: ${element.tagName} ${element.className} ${element.textContent.slice(0, 60)}`);
    }
    return found;
  });
}

/** Checks the page as it is now. Its name becomes that of the pictures. */
export async function screen(page, name) {
  const problems = [];
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    for (const line of await violations(page)) problems.push(`${colorScheme}: ${line}`);
    for (const size of pictures === undefined ? [] : [NARROW, WIDE]) {
      await page.setViewportSize(size);
      await mkdir(pictures, { recursive: true });
      await page.screenshot({ path: join(pictures, `${name}-${colorScheme}-${size.width}.png`) });
    }
  }
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  for (const size of [NARROW, WIDE]) {
    await page.setViewportSize(size);
    for (const line of await cut(page)) problems.push(`at ${size.width}: ${line}`);
  }
  assert.deepEqual(problems, [], `the screen ${name}`);
}
