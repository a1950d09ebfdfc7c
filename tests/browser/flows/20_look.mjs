// What a person does to see a table the own way, and to take it elsewhere.

import assert from "node:assert/strict";

import { flow, windowOf } from "../harness/flow.mjs";
import { Explore } from "../harness/programs.mjs";
import { rows } from "../harness/page.mjs";
import { runs } from "../harness/recipes.mjs";

const columns = (page) => page.locator("th[data-name]").evaluateAll((all) => all.map((th) => th.dataset.name));

flow("a person hides columns, and they stay hidden", { azurite: true }, async ({ page, hand, screen, explore, account }) => {
  await page.goto(`${explore.origin}/t/Employees?pk=Sales`);
  await rows(page).first().waitFor();
  assert.equal((await columns(page)).length, 10);
  await hand.press(page.locator("#columns summary"));
  for (const name of ["Photo", "BadgeId"]) await hand.press(page.locator("#columns label", { hasText: name }).getByRole("checkbox"));
  await screen("columns");
  await hand.press(page.getByRole("button", { name: "Show these" }));
  await page.getByText("8 of 10 columns").waitFor();
  assert.ok(!(await columns(page)).includes("Photo"));
  // The menu stays open, at the column that was moved.
  const others = (await columns(page)).filter((name) => name !== "Hired");
  await hand.press(page.getByRole("button", { name: "Move Hired first" }));
  await page.waitForURL(/#column-Hired/u);
  await page.locator("#columns button:focus").waitFor();
  assert.deepEqual(await columns(page), ["Hired", ...others]);
  const [second, third, ...rest] = others;
  await hand.press(page.getByRole("button", { name: `Move ${third} to the left` }));
  await page.waitForURL(`**#column-${third}`);
  await page.locator("#columns button:focus").waitFor();
  assert.deepEqual(await columns(page), ["Hired", third, second, ...rest]);
  // Another start of the program, with the same user, in a new window.
  const next = await Explore.start(account, [], explore.home);
  try {
    const { context, page: other } = await windowOf(next.origin);
    await other.goto(next.opening);
    await other.waitForURL(`${next.origin}/`);
    await other.goto(`${next.origin}/t/Employees?pk=IT`);
    await other.getByText("8 of 10 columns").waitFor();
    await context.close();
  } finally {
    await next.stop({ keep: true });
  }
});

flow("a person moves columns without scripts", { hands: 1, script: false }, async ({ page, explore }) => {
  await page.goto(`${explore.origin}/t/Employees?pk=Sales&columns=Age,Email,Hired`);
  await page.locator("#columns summary").click();
  await page.getByRole("button", { name: "Move Hired first" }).click();
  await page.waitForURL(/columns=Hired%2CAge%2CEmail/u);
  // One that was hidden is shown. The browser opens the menu at the column.
  await page.getByRole("button", { name: "Move Photo first" }).click();
  await page.waitForURL(/columns=Photo%2CHired%2CAge%2CEmail/u);
  await page.getByRole("checkbox", { name: "Photo" }).waitFor();
});

flow("a person opens a URL that a colleague shared", { quick: true, hands: 1 }, async ({ page, explore, context }) => {
  await page.goto(`${explore.origin}/t/Employees?pk=Sales&rk=00014*&filter=Active eq true&columns=FirstName,Age`);
  await rows(page).first().waitFor();
  const seen = await page.locator("tbody").innerText();
  assert.deepEqual(await columns(page), ["FirstName", "Age"]);
  const url = page.url();
  // From another site: the browser sends no cookie, and one press is enough.
  const other = await context.newPage();
  await other.setContent(`<a href="${url.replaceAll("&", "&amp;")}">look</a>`);
  await other.getByText("look").click();
  await other.getByRole("link", { name: "Show the page" }).click();
  await rows(other).first().waitFor();
  assert.equal(await other.locator("tbody").innerText(), seen);
});

flow("a person copies the query as Rust and as curl, and the program runs", { azurite: true, hands: 1, timeout: 900_000 }, async ({ page, hand, screen, explore, account }) => {
  await page.goto(`${explore.origin}/t/Employees?pk=Sales&rk=00010*&filter=Age ge 1`);
  await page.locator("#main").waitFor();
  const copied = async (name) => {
    await hand.press(page.getByRole("button", { name }));
    await page.getByText("copied", { exact: true }).waitFor();
    await page.getByRole("button", { name }).waitFor();
    return await page.evaluate(() => navigator.clipboard.readText());
  };
  const rust = await copied("copy as Rust");
  const curl = await copied("curl");
  const link = await copied("link for this browser");
  assert.equal(link, `${explore.origin}/t/Employees?pk=Sales&rk=00010%2A&filter=Age%20ge%201`);
  await hand.press(page.getByText("show", { exact: true }));
  await screen("recipes");
  assert.match(curl, /^# export AZURE_STORAGE_SAS_TOKEN="\$\(tables sas Employees --permissions r --for 1h(?: --table-endpoint http.*)?\)"\ncurl /u);
  assert.ok(!curl.includes("sig=s") && !rust.includes("AccountKey"));
  const out = await runs(rust, account);
  for (const key of ["000100", "000103", "000106", "000109"]) assert.ok(out.includes(key), out);
});
