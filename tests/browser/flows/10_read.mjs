// What a person does to find entities.

import assert from "node:assert/strict";

import { flow } from "../harness/flow.mjs";
import { rows, shows } from "../harness/page.mjs";

const BOTH = { azurite: true };

flow("a person finds a table by a part of its name", { ...BOTH, quick: true }, async ({ page, hand, screen }) => {
  await page.getByRole("searchbox", { name: "Find a table" }).waitFor();
  await screen("tables");
  await page.keyboard.press("/");
  await page.keyboard.type("expense");
  await page.getByRole("link", { name: "ExpenseClaims" }).first().waitFor();
  assert.equal(await page.locator("nav .table:visible").count(), 1);
  // Of a group without a match, the heading is not there either.
  await page.getByRole("heading", { name: "By period" }).waitFor({ state: "hidden" });
  await page.keyboard.press("Enter");
  await shows(page, "ExpenseClaims");
  // Two tables have the text, and one begins with it.
  await page.keyboard.press("/");
  await page.keyboard.type("dep");
  await page.keyboard.press("Enter");
  await shows(page, "Departments");
  // Tables of a series are one entry until it is opened.
  const series = page.locator("summary", { hasText: "Logins" });
  assert.match(await series.textContent(), /12 tables/u);
  await hand.press(series);
  await hand.press(page.getByRole("link", { name: "Logins202611" }));
  await shows(page, "Logins202611");
  assert.equal(await rows(page).count(), 5);
});

flow("a person looks for a table that does not exist", { hands: 1 }, async ({ page, hand, screen, explore }) => {
  const find = page.getByRole("searchbox", { name: "Find a table" });
  await hand.write(find, "nothing like it");
  await page.keyboard.press("Enter");
  await page.getByText("No table has").waitFor();
  await screen("tables-none-found");
  await page.goto(`${explore.origin}/t/Missing`);
  await page.getByRole("alert").waitFor();
  await screen("error-table-missing");
});

flow("a person reads one entity by its keys", { ...BOTH, quick: true }, async ({ page, hand, screen, explore, service, isAzurite }) => {
  await page.goto(`${explore.origin}/t/Employees`);
  await hand.write(page.getByLabel("PartitionKey", { exact: true }), "Sales");
  await hand.write(page.getByLabel(/^RowKey/u), "000145");
  await page.getByText("Point read").waitFor();
  await hand.press(page.getByRole("button", { name: "Run" }));
  await page.waitForURL(/pk=Sales&rk=000145/u);
  await rows(page).first().waitFor();
  assert.equal(await rows(page).count(), 1);
  // To the digit: it is larger than JavaScript's numbers are exact.
  await page.getByRole("gridcell", { name: "9007199254741392" }).waitFor();
  await page.getByText("1 entity in 1 request").waitFor();
  await page.getByText("GET Employees(PartitionKey='Sales',RowKey='000145')").waitFor();
  await screen("entities-point");
  if (!isAzurite) assert.equal((await service.kit.requests("QueryEntity")).length, 1);
});

flow("a person reads a range of rows, and those with a prefix", { ...BOTH, quick: true }, async ({ page, hand, screen, explore }) => {
  await page.goto(`${explore.origin}/t/Employees?pk=Sales`);
  const row = page.getByLabel(/^RowKey/u);
  for (const [text, count] of [["000100 … 000115", 5], ["000100..000115", 5], ["000100 ... 000115", 5], ["00013*", 4], ["000391 ..", 3]]) {
    await hand.write(row, text);
    await page.getByText("Row range").waitFor();
    await page.keyboard.press("Control+Enter");
    await page.waitForURL((url) => url.searchParams.get("rk") === text);
    await page.getByText(`${count} entities in`).waitFor();
    assert.equal(await rows(page).count(), count);
    // What was found is next for the keyboard.
    await page.locator("#grid td:focus").waitFor();
  }
  await screen("entities-range");
  await hand.write(row, "nothing");
  await page.keyboard.press("Control+Enter");
  await page.getByText("No entity is found").waitFor();
  await page.locator("[name=rk]:focus").waitFor();
});

flow("a person filters with completion", { ...BOTH }, async ({ page, screen, explore }) => {
  await page.goto(`${explore.origin}/t/Employees?pk=Sales`);
  await rows(page).first().waitFor();
  await page.keyboard.press("f");
  await page.keyboard.type("Sal");
  const option = page.getByRole("option", { name: "Salary" });
  await option.waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.keyboard.type("g");
  await page.getByRole("option", { name: "ge" }).waitFor();
  await screen("entities-completion");
  await page.keyboard.type("e 80000.0 and Active eq false");
  await page.keyboard.press("Control+Enter");
  await page.waitForURL(/filter=/u);
  await page.locator("footer").getByText("in 1 request").waitFor();
  const field = page.getByRole("combobox", { name: "Filter" });
  assert.equal(await field.inputValue(), "Salary ge 80000.0 and Active eq false");
  const count = await rows(page).count();
  assert.ok(count > 0 && count < 100, `${count}`);
});

flow("a person mistypes a filter and sees what is wrong before anything is sent", { ...BOTH, hands: 1 }, async ({ page, hand, screen, explore }) => {
  await page.goto(`${explore.origin}/t/Employees?pk=Sales`);
  await rows(page).first().waitFor();
  const filter = page.getByRole("combobox", { name: "Filter" });
  await hand.write(filter, "Salary ge 'open");
  await page.getByText("not valid").waitFor();
  // Run leaves the last result where it is, and the filter to be mended.
  await hand.write(filter, "LastName eq Kwok");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByText("A text needs quotes: LastName eq 'Kwok'").waitFor();
  assert.equal(await rows(page).count(), 100);
  assert.equal(await page.locator("#filter:focus").getAttribute("aria-invalid"), "true");
  await screen("error-filter");
  await hand.write(filter, "LastName eq 'Kwok'");
  await page.keyboard.press("Enter");
  await page.waitForURL(/filter=/u);
  await page.getByText("8 entities in").waitFor();
});

flow("a person without scripts sees once what is wrong with a filter", { hands: 1, script: false }, async ({ page, explore }) => {
  await page.goto(`${explore.origin}/t/Employees`);
  await page.getByLabel("Filter").fill("LastName eq Kwok");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByText("Nothing was sent").waitFor();
  assert.equal(await page.getByText("a comparison of two properties").count(), 1);
  assert.equal(await page.locator("#filter:focus, #filter[aria-invalid=true]").inputValue(), "LastName eq Kwok");
  // The table was read whole: a scan of it is no question.
  await page.getByLabel("Filter").fill("LastName eq 'Kwok'");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByText("20 entities in 1 request").waitFor();
});

flow("a person is asked before a table is scanned, and scans it", { ...BOTH, quick: true }, async ({ page, hand, screen, explore, service, isAzurite }) => {
  // The page knows nothing of the table yet.
  await page.goto(`${explore.origin}/t/Employees?pk=Nowhere`);
  await page.getByText("No entity is found").waitFor();
  await hand.write(page.getByLabel("PartitionKey", { exact: true }), "");
  if (!isAzurite) await service.kit.call("DELETE", "/requests");
  await hand.write(page.getByLabel("Filter"), "LastName eq 'Kwok'");
  await page.getByText("Table scan").waitFor();
  await page.keyboard.press("Control+Enter");
  const ask = page.getByRole("alert");
  await ask.getByText("names no partition").waitFor();
  await screen("entities-scan-asked");
  if (!isAzurite) assert.deepEqual((await service.kit.requests("QueryEntities")).length, 0);
  await page.locator("a:focus", { hasText: "Scan" }).waitFor();
  await hand.press(ask.getByRole("link", { name: /^Scan/u }).first());
  await rows(page).first().waitFor();
  assert.equal(await rows(page).count(), 20);
  // A page that shows a table whole has answered the question.
  await page.goto(`${explore.origin}/t/Employees`);
  await page.getByText("240 entities in 1 request").waitFor();
  await hand.write(page.getByLabel("Filter"), "LastName eq 'Kwok'");
  await page.getByText("it was one page").waitFor();
  await page.keyboard.press("Control+Enter");
  await page.getByText("20 entities in 1 request").waitFor();
});

flow("a person comes back to the last query of a table", { hands: 1 }, async ({ page, hand, explore }) => {
  await page.goto(`${explore.origin}/t/Employees?pk=Sales&rk=0001*`);
  await rows(page).first().waitFor();
  const url = page.url();
  const tab = page.getByRole("link", { name: "Entities", exact: true });
  await hand.press(page.getByRole("link", { name: "Schema" }));
  await page.waitForURL(/schema/u);
  await hand.press(tab);
  await rows(page).first().waitFor();
  assert.equal(decodeURIComponent(page.url()), decodeURIComponent(url));
  await page.goto(`${explore.origin}/t/Employees/e?pk=Sales&rk=000145`);
  await hand.press(tab);
  await page.getByText("34 entities in 1 request").waitFor();
  await rows(page).first().getByRole("checkbox").check();
  await hand.press(page.getByRole("button", { name: "Stage 1 delete" }));
  await hand.press(page.getByRole("link", { name: "Back to Employees" }));
  await page.getByText("34 entities in 1 request").waitFor();
});

flow("a person opens a URL with a field that the page has not", { hands: 1 }, async ({ page, screen, explore }) => {
  await page.goto(`${explore.origin}/t/Employees?scan=everything`);
  await page.getByText("scan: unknown variant `everything`").waitFor();
  await screen("error-url");
  await page.goto(`${explore.origin}/t/Employees?from=elsewhere`);
  await page.getByRole("alert").getByText("from: ").waitFor();
});

flow("a person chooses a table in a narrow window", { hands: 1 }, async ({ page, hand, explore }) => {
  await page.goto(`${explore.origin}/t/Employees?pk=Sales`);
  await page.setViewportSize({ width: 900, height: 900 });
  await hand.press(page.getByText("☰ Tables"));
  const link = page.getByRole("link", { name: "Departments" });
  await link.waitFor();
  await page.keyboard.press("Escape");
  await link.waitFor({ state: "hidden" });
  await page.keyboard.press("Enter");
  await hand.press(link);
  await shows(page, "Departments");
});

flow("a person goes to the next pages and back", {}, async ({ page, hand, explore }) => {
  await page.goto(`${explore.origin}/t/Readings`);
  await rows(page).first().waitFor();
  // The rows below the first ones come when the browser is idle.
  await rows(page).nth(999).waitFor({ state: "attached" });
  assert.equal(await rows(page).count(), 1000);
  const first = await rows(page).first().textContent();
  await hand.press(page.getByRole("link", { name: "Next page" }));
  await page.waitForURL(/from=/u);
  await rows(page).first().waitFor();
  assert.notEqual(await rows(page).first().textContent(), first);
  await hand.press(page.getByRole("link", { name: "Next page" }));
  await page.getByText("400 entities").waitFor();
  assert.equal(await page.getByRole("link", { name: "Next page" }).count(), 0);
  await page.goBack();
  await page.goBack();
  await rows(page).first().waitFor();
  assert.equal(await rows(page).first().textContent(), first);
});

flow("a person walks through the grid by arrows and opens an entity", { quick: true, hands: 1 }, async ({ page, explore }) => {
  await page.goto(`${explore.origin}/t/Employees?pk=Sales`);
  await rows(page).first().waitFor();
  await page.locator("td[tabindex='0']").focus();
  for (const key of ["ArrowDown", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
  assert.match(await page.locator(":focus").evaluate((cell) => cell.closest("tr").textContent), /000106/u);
  await page.keyboard.press("Enter");
  await page.locator("#panel").getByText('("Sales", "000106")', { exact: true }).waitFor();
  await page.keyboard.press("Escape");
  await page.locator("#panel").waitFor({ state: "detached" });
});

flow("a person reads without scripts", { quick: true, hands: 1, script: false }, async ({ page, explore }) => {
  await page.goto(`${explore.origin}/t/Employees`);
  await page.getByLabel("PartitionKey", { exact: true }).fill("Sales");
  await page.getByLabel(/^RowKey/u).fill("0001*");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByText("34 entities in 1 request").waitFor();
  await page.getByRole("link", { name: /000145/u }).first().click();
  await page.waitForURL(/\/t\/Employees\/e\?/u);
  assert.equal(await page.getByLabel("Value of BadgeId", { exact: true }).inputValue(), "9007199254741392");
});

flow("a person looks at values that are awkward", { hands: 1 }, async ({ page, screen, explore }) => {
  for (const [name, path] of [
    ["odd-values", "/t/Odd?pk=values"], ["odd-long-keys", "/t/Odd?pk=long"], ["odd-all", "/t/Odd"], ["odd-none", "/t/Odd?pk=none"],
    ["odd-numbers", "/t/Odd?pk=numbers"], ["wide-columns", "/t/Wide"], ["entities-empty", "/t/Empty"], ["entities-none-found", "/t/Employees?pk=Nowhere"],
    ["entities-many", "/t/Big"],
  ]) {
    await page.goto(explore.origin + path);
    await page.locator("#main").waitFor();
    await screen(name);
  }
});
