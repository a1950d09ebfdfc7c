// Measures the official JavaScript client against a server of fixed bytes: processor time per operation.
//
// Usage: NODE_PATH=FOLDER node peer.mjs CONNECTION_STRING

import { createRequire } from "node:module";

const { TableClient } = createRequire(import.meta.url)("@azure/data-tables");

const entities = Array.from({ length: 100 }, (_, number) => ({
  partitionKey: "sales",
  rowKey: String(number).padStart(10, "0"),
  FirstName: `Firstname${number}`,
  LastName: `Lastname${number}`,
  Email: `employee${number}@contoso.example`,
  Department: "Research and development",
  Age: number,
  Badge: BigInt(number) << 33n,
  Salary: { type: "Double", value: number * 101.25 },
  Remote: number % 2 === 0,
  Hired: new Date(1_700_000_000_000 + number),
  Office: { type: "Guid", value: "c9da6455-213d-42c9-9a79-3e9149a57833" },
}));
const table = TableClient.fromConnectionString(process.argv[2], "people", {
  allowInsecureConnection: true,
});

async function page() {
  const filter = "PartitionKey eq 'sales'";
  let count = 0;
  for await (const _ of table.listEntities({ queryOptions: { filter } })) {
    count += 1;
  }
  return count;
}

const operations = {
  "point-read": [1000, () => table.getEntity("sales", "0000000007")],
  insert: [1000, () => table.createEntity(entities[0])],
  page: [20, page],
  batch: [50, () => table.submitTransaction(entities.map((entity) => ["create", entity]))],
};
for (const [name, [count, operation]] of Object.entries(operations)) {
  for (let warm = 0; warm < count / 5; warm += 1) {
    await operation();
  }
  const start = process.cpuUsage();
  for (let done = 0; done < count; done += 1) {
    await operation();
  }
  const { user, system } = process.cpuUsage(start);
  console.log(`${name}\t${(user + system) / count}`);
}
