// What a person sees on a page of a table.

/** Waits until the page of a table is there. */
export async function shows(page, table) {
  await page.getByRole("heading", { level: 1, name: table }).waitFor();
  await page.locator("#main").waitFor();
}

/** The rows of entities. */
export function rows(page) {
  return page.locator("table tbody tr");
}
