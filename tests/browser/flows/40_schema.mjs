// What a person does to see what a table has, and which queries were run.

import assert from "node:assert/strict";

import { flow } from "../harness/flow.mjs";
import { rows } from "../harness/page.mjs";
import { runs } from "../harness/recipes.mjs";

flow("a person looks at the schema and takes the struct", { quick: true }, async ({ page, hand, screen, explore }) => {
  await page.goto(`${explore.origin}/t/Employees`);
  await hand.press(page.getByRole("link", { name: "Schema", exact: true }));
  await page.getByText("BadgeId").first().waitFor();
  await screen("schema");
  await hand.press(page.getByText("Show Rust", { exact: true }));
  await hand.press(page.getByRole("button", { name: "Copy", exact: true }));
  const rust = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(rust, /pub struct Employee/u);
  assert.match(rust, /pub email: Option<String>/u);
  await screen("schema-struct");
});

flow("a person reads entities by the struct of the page", { hands: 1, timeout: 900_000 }, async ({ page, hand, explore, account }) => {
  await page.goto(`${explore.origin}/t/Employees/schema`);
  await hand.press(page.getByText("Show Rust", { exact: true }));
  await hand.press(page.getByRole("button", { name: "Copy", exact: true }));
  const struct = await page.evaluate(() => navigator.clipboard.readText());
  const main = `#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let service = tablesdk::TableServiceClient::from_env()?;
    let found = service.table("Employees").query::<Employee>().partition("Legal").collect().await?;
    println!("{} found", found.len());
    Ok(())
}
`;
  assert.match(await runs(`${struct}\n${main}`, account), /^[1-9][0-9]* found$/mu);
});

flow("a person looks at the schema of a table of thousands of columns, of two types, and of nothing", { hands: 1 }, async ({ page, screen, explore }) => {
  for (const table of ["Wide", "ExpenseClaims", "Odd", "Empty"]) {
    await page.goto(`${explore.origin}/t/${table}/schema`);
    await page.locator("#main").waitFor();
    await screen(`schema-${table.toLowerCase()}`);
  }
});

flow("a person runs a query of the history again", {}, async ({ page, hand, screen, explore }) => {
  await page.goto(`${explore.origin}/t/Employees?pk=Sales&rk=00014*`);
  await rows(page).first().waitFor();
  const seen = await page.locator("tbody").innerText();
  await page.goto(`${explore.origin}/history`);
  await screen("history");
  await hand.press(page.locator("main").getByRole("link", { name: /00014/u }).first());
  await rows(page).first().waitFor();
  assert.equal(await page.locator("tbody").innerText(), seen);
});
