// What a person sees on a page of a table.

/** Waits until the page of a table is there, with its scripts: before they have run, keys of the page do nothing. */
export async function shows(page, table) {
  await page.getByRole("heading", { level: 1, name: table }).waitFor();
  await page.locator("#main").waitFor();
  await page.waitForLoadState();
}

/** The rows of entities. */
export function rows(page) {
  return page.locator("table tbody tr");
}
