// Drives a table service with the official JavaScript client, and checks what every call leaves
// behind.
//
// Usage: NODE_PATH=FOLDER node client.mjs [--azurite] CONNECTION_STRING
// where FOLDER is a node_modules that holds @azure/data-tables.
//
// Every check runs on a table of its own, so that one failure says nothing about the others. The
// client hides some answers (creating a table that exists succeeds); those are checked on the raw
// response.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";

// The client is installed outside the sources: `require` finds it by NODE_PATH, `import` would not.
const {
  AzureNamedKeyCredential,
  AzureSASCredential,
  TableClient,
  TableServiceClient,
  generateAccountSas,
  generateTableSas,
  odata,
} = createRequire(import.meta.url)("@azure/data-tables");

// What `--azurite` leaves out. Everything else has to hold there, too.
const AZURITE_LACKS = {
  "authentication-code": "a bad signature is answered in XML, and with AuthorizationFailure",
  "cors-without-headers": "a CORS rule without headers is refused",
  "exponent-literal": "a filter with a number such as 1e+300 finds nothing",
  "batch-limit": "the answer to 101 changes is one that clients cannot take apart",
  "name-codes": "an invalid table name is answered without an error code",
  "quoted-comma": "in a transaction, a quote and a comma in a key end it",
  "property-names": "a property's name may be anything",
  "padded-etags": "ETags are compared as texts",
  "long-literal": "an integer beyond Int32 in a filter needs no suffix",
  "partial-policies": "a policy without all fields is refused",
  "properties-limits": "properties beyond the limits are accepted",
  "sas-address": "the addresses of a SAS are not looked at",
  "sas-key-range": "the range of keys of a table SAS is not looked at",
  "sas-srt": "a query of entities needs the resource type of tables",
  "select-null": "a selected property that the entity lacks is omitted instead of null",
  "trimmed-datetime": "a DateTime comes back as it was written, trailing zeros included",
};

const KEYS = [
  "",
  " ",
  " two  words ",
  "O'Brien",
  "''",
  "a,b",
  "(a)",
  "x',RowKey='y",
  "100%",
  "%41", // decoded twice it is another key
  "%2F", // decoded twice it is not a key at all
  "a+b",
  "a&b",
  "a=b",
  "a;b:c@d!e*f~g$h",
  '"<[{|}]>"^`',
  "Zürich",
  "東京",
  "🦀",
  "Ａ", // before the crab in code points, behind it in UTF-16 units, which is the service's order
];

// A retry would hide an answer that ought not to have been given.
const OPTIONS = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };

const checks = {
  async "create and delete tables"(run) {
    const name = run.newName();
    const { service } = run;
    const statuses = [];
    const onResponse = ({ status }) => statuses.push(status);
    await service.createTable(name, { onResponse });
    assert.equal(statuses.at(-1), 201);
    for (const again of [name, name.toUpperCase()]) {
      // The client takes this conflict, and no other, for success.
      await service.createTable(again, { onResponse });
      assert.equal(statuses.at(-1), 409);
    }
    assert.deepEqual(await run.tablesBetween(name, name), [name]);
    await service.deleteTable(name, { onResponse });
    assert.equal(statuses.at(-1), 204);
    assert.deepEqual(await run.tablesBetween(name, name), []);
    await service.deleteTable(name, { onResponse });
    assert.equal(statuses.at(-1), 404);
    await service.createTable(name, { onResponse });
    assert.equal(statuses.at(-1), 201);
    assert.deepEqual(await collect(run.table(name).listEntities()), []);
  },

  async "list tables by filter and in pages"(run) {
    const prefix = run.newName();
    const names = [..."abcde"].map((suffix) => prefix + suffix);
    for (const name of names) {
      await run.service.createTable(name);
      run.names.push(name);
    }
    assert.deepEqual(await run.tablesBetween(names[1], names[3]), names.slice(1, 4));
    const queryOptions = { filter: odata`TableName ge ${names[0]} and TableName le ${names[4]}` };
    const pages = (continuationToken) =>
      run.service.listTables({ queryOptions }).byPage({ maxPageSize: 2, continuationToken });
    const { value: first } = await pages().next();
    assert.deepEqual(
      first.map((table) => table.name),
      names.slice(0, 2),
    );
    const rest = await collect(pages(first.continuationToken));
    assert.deepEqual(
      rest.map((page) => page.map((table) => table.name)),
      [names.slice(2, 4), names.slice(4)],
    );
  },

  async "invalid table names"(run) {
    const codes = { "has-dash": "InvalidResourceName", "1digit": "InvalidResourceName" };
    for (const name of ["ab", "a".repeat(64)]) {
      codes[name] = "OutOfRangeInput";
    }
    for (const [name, code] of Object.entries(codes)) {
      await fails(400, run.does("name-codes") ? code : undefined, () =>
        run.service.createTable(name),
      );
    }
  },

  async "every type, there and back"(run) {
    const table = await run.newTable();
    const sent = {
      partitionKey: "p",
      rowKey: "r",
      Text: "Grüße, 東京 🦀\n\t\"quoted\" \\ 'single' ",
      TextEmpty: "",
      Int: -(2 ** 31),
      IntZero: 0,
      Long: 2n ** 53n + 1n,
      LongMin: -(2n ** 63n),
      LongSmall: 5n,
      Double: 0.1,
      DoubleWhole: { type: "Double", value: 5 },
      DoubleBig: Number.MAX_VALUE,
      DoubleTiny: Number.MIN_VALUE,
      DoubleNan: { type: "Double", value: "NaN" },
      DoubleInf: { type: "Double", value: "Infinity" },
      DoubleNegInf: { type: "Double", value: "-Infinity" },
      Yes: true,
      No: false,
      Time: new Date("2024-02-29T23:59:59.123Z"),
      TimeEarly: new Date("1601-01-01T00:00:00Z"),
      Guid: { type: "Guid", value: "0d391d16-97f1-4b9a-be68-4cc871f9ac01" },
      Binary: Uint8Array.from({ length: 256 }, (_, n) => n),
      BinaryEmpty: new Uint8Array(),
      größe: 1,
      case: "lower",
      Case: "upper",
      Nothing: null,
    };
    const created = await table.createEntity(sent);

    let raw;
    const got = await table.getEntity("p", "r", {
      onResponse: ({ bodyAsText }) => (raw = bodyAsText),
    });
    const { etag, timestamp, "odata.metadata": metadata, ...properties } = got;
    const { Nothing, ...expected } = sent;
    // A number has no other type in JavaScript; the raw text tells a Double from an Int32.
    Object.assign(expected, {
      DoubleWhole: 5,
      DoubleNan: "NaN",
      DoubleInf: "Infinity",
      DoubleNegInf: "-Infinity",
    });
    assert.deepEqual(plain(properties), plain(expected));
    assert.match(raw, /"DoubleWhole":\s*5\.0\b/);
    assert.match(raw, /"Int":\s*-2147483648\b(?![.eE])/);

    assert.equal(etag, created.etag);
    assert.ok(
      Math.abs(Date.now() - Date.parse(timestamp)) < 15 * 60_000,
      `the timestamp is off: ${timestamp}`,
    );
    assert.ok(metadata.includes("$metadata#"), metadata);

    const typed = await table.getEntity("p", "r", { disableTypeConversion: true });
    for (const [name, type] of Object.entries({
      Long: "Int64",
      DoubleNan: "Double",
      Time: "DateTime",
      Guid: "Guid",
      BinaryEmpty: "Binary",
      Text: "String",
    })) {
      assert.equal(typed[name].type, type, name);
    }
  },

  async "the last digits of a DateTime"(run) {
    const table = await run.newTable();
    const times = {
      "2024-02-29T23:59:59.1234567Z": "2024-02-29T23:59:59.1234567Z",
      "9999-12-31T23:59:59.9999999Z": "9999-12-31T23:59:59.9999999Z",
    };
    if (run.does("trimmed-datetime")) {
      times["2024-02-29T23:59:59.1200000Z"] = "2024-02-29T23:59:59.12Z";
      times["2024-02-29T23:59:59.0000000Z"] = "2024-02-29T23:59:59Z";
    }
    for (const [value, expected] of Object.entries(times)) {
      await table.createEntity({
        partitionKey: "p",
        rowKey: value,
        At: { type: "DateTime", value },
      });
      const got = await table.getEntity("p", value, { disableTypeConversion: true });
      assert.deepEqual(got.At, { type: "DateTime", value: expected });
    }
  },

  async select(run) {
    const table = await run.newTable();
    await table.createEntity({ partitionKey: "p", rowKey: "r", A: 1, B: 2n, C: "c" });
    const point = async (...select) =>
      bare(await table.getEntity("p", "r", { queryOptions: { select } }));
    const query = (filter, ...select) => list(table, { filter, select });
    assert.deepEqual(await point("A", "B"), { A: 1, B: 2n });
    assert.deepEqual(await point("partitionKey", "rowKey", "C"), {
      partitionKey: "p",
      rowKey: "r",
      C: "c",
    });
    assert.deepEqual(await query("A eq 1", "C"), [{ C: "c" }]);
    if (run.does("select-null")) {
      assert.deepEqual(await point("A", "Missing"), { A: 1, Missing: null });
      assert.deepEqual(await query(undefined, "Missing"), [{ Missing: null }]);
    }
  },

  async "awkward keys"(run) {
    const table = await run.newTable();
    // Each key in both places, but never the same one in both: swapped keys would go unnoticed.
    const keys = KEYS.map((key, n) => ({ partitionKey: key, rowKey: KEYS[(n + 7) % KEYS.length] }));
    for (const key of keys) {
      await table.createEntity({ ...key, N: 1, Kept: key.partitionKey + key.rowKey });
      await fails(409, "EntityAlreadyExists", () => table.createEntity(key));
    }
    const listed = (await list(table)).map(({ partitionKey, rowKey }) => ({
      partitionKey,
      rowKey,
    }));
    // The default order of strings in JavaScript is the service's: by UTF-16 units.
    assert.deepEqual(
      listed,
      keys.toSorted((a, b) => (a.partitionKey < b.partitionKey ? -1 : 1)),
    );
    const pages = await collect(table.listEntities().byPage({ maxPageSize: 1 }));
    assert.deepEqual(
      pages.flat().map(({ partitionKey, rowKey }) => ({ partitionKey, rowKey })),
      listed,
    );
    for (const key of keys) {
      const { partitionKey, rowKey } = key;
      const get = async () => bare(await table.getEntity(partitionKey, rowKey));
      await table.updateEntity({ ...key, N: 2 }, "Merge");
      const expected = { ...key, N: 2, Kept: partitionKey + rowKey };
      assert.deepEqual(await get(), expected);
      const filter = odata`PartitionKey eq ${partitionKey} and RowKey eq ${rowKey}`;
      assert.deepEqual(await list(table, { filter }), [expected], filter);
      await table.upsertEntity({ ...key, N: 3 }, "Replace");
      assert.deepEqual(await get(), { ...key, N: 3 });
      await table.deleteEntity(partitionKey, rowKey);
      await fails(404, "ResourceNotFound", get);
    }
    assert.deepEqual(await list(table), []);
  },

  async "queries on every type"(run) {
    const table = await run.newTable();
    const days = [1, 2, 3].map((day) => new Date(Date.UTC(2024, 0, day, 12, 30, 0, 123)));
    const guids = [1, 2, 3].map((n) => `0000000${n}-0000-0000-0000-000000000007`);
    for (const [n, rowKey] of [..."abc"].entries()) {
      await table.createEntity({
        partitionKey: rowKey === "c" ? "it's" : "p",
        rowKey,
        Text: ["alpha", "it's ü", ""][n],
        Int: [-5, 20, 300][n],
        Long: [-(2n ** 60n), 2n ** 53n, 2n ** 53n + 1n][n],
        Double: { type: "Double", value: [-1.5, 5, 1e300][n] },
        Flag: n === 1,
        Time: days[n],
        Guid: { type: "Guid", value: guids[n] },
        Binary: Uint8Array.from([[], [0, 255], [1]][n]),
      });
    }
    await table.createEntity({ partitionKey: "p", rowKey: "z" });
    const expected = [
      [odata`PartitionKey eq ${"it's"}`, "c"],
      ["PartitionKey eq 'p' and RowKey gt 'a'", "bz"],
      ["RowKey ge 'b' and RowKey lt 'z'", "bc"],
      [odata`Text eq ${"it's ü"}`, "b"],
      ["Text eq ''", "c"],
      ["Text gt 'alpha'", "b"],
      ["Text ge 'a' and Text lt 'b'", "a"],
      [odata`Int eq ${-5}`, "a"],
      ["Int lt 20", "a"],
      ["Int le 20", "ab"],
      ["Int ne 20", "ac"],
      ["Long eq 9007199254740993L", "c"],
      ["Long gt 9007199254740992L", "c"],
      ["Long ge 9007199254740992L", "bc"],
      ["Long lt 0L", "a"],
      ["Double eq 5.0", "b"],
      ["Double lt 0.0", "a"],
      [odata`Flag eq ${true}`, "b"],
      [odata`Flag eq ${false}`, "ac"],
      [odata`Time eq ${days[1]}`, "b"],
      [odata`Time gt ${days[1]}`, "c"],
      [odata`Time le ${days[1]}`, "ab"],
      [`Guid eq guid'${guids[1]}'`, "b"],
      [`Guid ne guid'${guids[1]}'`, "ac"],
      ["Binary eq X'00ff'", "b"],
      ["Binary eq binary'00ff'", "b"],
      ["Binary eq X''", "a"],
      ["Binary gt X'00ff'", "c"],
      ["Int eq -5 or Flag eq true", "ab"],
      ["Int gt 0 and Double gt 10.0", "c"],
      ["Int eq 300 or Int eq 20 and Flag eq true", "bc"],
      ["( Int eq 300 or Int eq 20 ) and Flag eq true", "b"],
      ["(Int eq 300 or Int eq 20) and not (Flag eq true)", "c"],
      [odata`Int gt 0 and not ( Text eq ${"it's ü"} )`, "c"],
      ["Missing eq 1", ""],
      ["Missing ne 1", ""],
      ["not (Missing eq 1)", "abcz"],
    ];
    if (run.does("exponent-literal")) {
      expected.push([odata`Double ge ${1e300}`, "c"]);
    }
    const wrong = [];
    for (const [filter, rows] of expected) {
      const found = (await list(table, { filter }))
        .map(({ rowKey }) => rowKey)
        .toSorted()
        .join("");
      if (found !== rows) {
        wrong.push(`${filter}: expected '${rows}', got '${found}'`);
      }
    }
    assert.deepEqual(wrong, []);
  },

  async "pages and continuation"(run) {
    const table = await run.newTable();
    // Non-ASCII keys have to survive the continuation, which travels in headers.
    const keys = Array.from(
      { length: 25 },
      (_, n) => `ü${Math.floor(n / 13)} é${String(n).padStart(2, "0")}`,
    );
    const split = (key) => ({ partitionKey: key.split(" ")[0], rowKey: key.split(" ")[1] });
    for (const [n, key] of keys.toReversed().entries()) {
      await table.createEntity({ ...split(key), Even: n % 2 === 0 });
    }
    const rows = (page) => page.map(({ partitionKey, rowKey }) => `${partitionKey} ${rowKey}`);
    const pages = async (settings, queryOptions) =>
      (await collect(table.listEntities({ queryOptions }).byPage(settings))).map(rows);

    const tens = [keys.slice(0, 10), keys.slice(10, 20), keys.slice(20)];
    assert.deepEqual(await pages({ maxPageSize: 10 }), tens);
    assert.deepEqual((await pages({ maxPageSize: 25 })).flat(), keys);

    const { value: first } = await table.listEntities().byPage({ maxPageSize: 10 }).next();
    assert.deepEqual(rows(first), tens[0]);
    const { continuationToken } = first;
    assert.ok(continuationToken, "no continuation after the first page");
    // What has been passed is not seen again, and what is still ahead may change.
    for (const { partitionKey, rowKey } of [split(keys[3]), split(keys[10])]) {
      await table.deleteEntity(partitionKey, rowKey);
    }
    const resumed = await pages({ maxPageSize: 10, continuationToken });
    assert.deepEqual(resumed, [keys.slice(11, 21), keys.slice(21)]);

    const found = await pages({ maxPageSize: 5 }, { filter: "Even eq true" });
    assert.ok(
      found.every((page) => page.length <= 5),
      "a page of more than five",
    );
    assert.deepEqual(
      found.flat(),
      keys.filter((_, n) => n % 2 === 0 && n !== 10),
    );
  },

  async replace(run) {
    const table = await run.newTable();
    const key = { partitionKey: "p", rowKey: "r" };
    const get = () => table.getEntity("p", "r");
    const { etag: first } = await table.createEntity({ ...key, A: 1, B: 1 });
    const { etag: second } = await table.updateEntity({ ...key, A: 2 }, "Replace", { etag: first });
    assert.notEqual(second, first);
    await fails(412, "UpdateConditionNotSatisfied", () =>
      table.updateEntity({ ...key, A: 3 }, "Replace", { etag: first }),
    );
    assert.deepEqual(bare(await get()), { ...key, A: 2 });
    assert.equal((await get()).etag, second);
    const { etag: third } = await table.updateEntity({ ...key, C: 4 }, "Replace");
    assert.deepEqual(bare(await get()), { ...key, C: 4 });
    assert.equal((await get()).etag, third);
    await fails(404, "ResourceNotFound", () =>
      table.updateEntity({ ...key, rowKey: "none" }, "Replace"),
    );
    if (run.does("padded-etags")) {
      // Other programs make an ETag of the Timestamp, always with seven digits.
      let etag = third;
      while (padded(etag) === etag) {
        ({ etag } = await table.updateEntity({ ...key, A: 6 }, "Replace"));
      }
      await table.updateEntity({ ...key, A: 7 }, "Replace", { etag: padded(etag) });
      assert.deepEqual(bare(await get()), { ...key, A: 7 });
    }
  },

  async "the time in milliseconds, a number without a type"(run) {
    const table = await run.newTable();
    const at = 1498179600055;
    const key = { partitionKey: "p", rowKey: "r" };
    await table.createEntity({ ...key, at });
    await table.updateEntity({ ...key, later: at + 1 }, "Merge");
    await table.submitTransaction([["create", { ...key, rowKey: "batch", at }]]);
    assert.deepEqual(bare(await table.getEntity("p", "r")), { ...key, at, later: at + 1 });
    const rows = async (filter) => {
      const found = [];
      for await (const { rowKey } of table.listEntities({ queryOptions: { filter } })) {
        found.push(rowKey);
      }
      return found;
    };
    assert.deepEqual(await rows(`at eq ${at}.0 and PartitionKey eq 'p'`), ["batch", "r"]);
    if (run.does("long-literal")) {
      await fails(400, "InvalidInput", () => rows(`at eq ${at}`));
      assert.deepEqual(await rows(`at eq ${at}L`), ["batch", "r"]);
    }
  },

  async merge(run) {
    const table = await run.newTable();
    const key = { partitionKey: "p", rowKey: "r" };
    const get = () => table.getEntity("p", "r");
    const { etag: first } = await table.createEntity({ ...key, A: 1, B: 1n });
    // A null does not remove a property.
    const changes = { ...key, A: "text", C: 2.5, B: null };
    const { etag: second } = await table.updateEntity(changes, "Merge", { etag: first });
    assert.notEqual(second, first);
    const merged = { ...key, A: "text", B: 1n, C: 2.5 };
    assert.deepEqual(bare(await get()), merged);
    await fails(412, "UpdateConditionNotSatisfied", () =>
      table.updateEntity({ ...key, A: 3 }, "Merge", { etag: first }),
    );
    assert.deepEqual(bare(await get()), merged);
    await table.updateEntity(key, "Merge");
    assert.deepEqual(bare(await get()), merged);
    assert.notEqual((await get()).etag, second, "a merge of nothing kept the etag");
    await fails(404, "ResourceNotFound", () =>
      table.updateEntity({ ...key, rowKey: "none" }, "Merge"),
    );
  },

  async upsert(run) {
    const table = await run.newTable();
    for (const mode of ["Merge", "Replace"]) {
      const key = { partitionKey: "p", rowKey: mode };
      const get = () => table.getEntity("p", mode);
      const { etag: first } = await table.upsertEntity({ ...key, A: 1, B: 1 }, mode);
      assert.deepEqual(bare(await get()), { ...key, A: 1, B: 1 });
      const { etag: second } = await table.upsertEntity({ ...key, A: 2 }, mode);
      assert.notEqual(second, first);
      assert.deepEqual(
        bare(await get()),
        mode === "Merge" ? { ...key, A: 2, B: 1 } : { ...key, A: 2 },
      );
      assert.equal((await get()).etag, second);
    }
  },

  async delete(run) {
    const table = await run.newTable();
    const key = { partitionKey: "p", rowKey: "r" };
    const get = async () => bare(await table.getEntity("p", "r"));
    const { etag: first } = await table.createEntity(key);
    const { etag: second } = await table.updateEntity({ ...key, A: 1 });
    await fails(412, "UpdateConditionNotSatisfied", () =>
      table.deleteEntity("p", "r", { etag: first }),
    );
    assert.deepEqual(await get(), { ...key, A: 1 });
    await table.deleteEntity("p", "r", { etag: second });
    await fails(404, "ResourceNotFound", get);
    await fails(404, "ResourceNotFound", () => table.deleteEntity("p", "r"));
    // A missing entity is missing, whatever the etag.
    await fails(404, "ResourceNotFound", () => table.deleteEntity("p", "r", { etag: second }));
    await table.createEntity({ ...key, B: 2 });
    assert.deepEqual(await get(), { ...key, B: 2 });
    await table.deleteEntity("p", "r");
    assert.deepEqual(await list(table), []);
  },

  async "transactions of every kind of change"(run) {
    const table = await run.newTable();
    const entity = (rowKey, properties) => ({ partitionKey: "it's p, ü", rowKey, ...properties });
    // The client looks for row keys in URLs as they are: it finds none that need an escape.
    const rows = ["delete", "merge", "put", "upsert-merge", "upsert-put"];
    const created = await table.submitTransaction(
      rows.map((row) => ["create", entity(row, { A: 1, B: 1 })]),
    );
    for (const row of rows) {
      const { etag } = await table.getEntity("it's p, ü", row);
      assert.equal(created.getResponseForEntity(row).etag, etag, row);
    }

    const text = "a}{\r\n--changeset_ %7D";
    const { etag } = created.getResponseForEntity("put");
    const { status, subResponses } = await table.submitTransaction([
      ["create", entity("new", { A: text })],
      ["delete", entity("delete")],
      ["update", entity("merge", { A: 2 }), "Merge"],
      ["update", entity("put", { A: 2 }), "Replace", { etag }],
      ["upsert", entity("upsert-merge", { A: 2 }), "Merge"],
      ["upsert", entity("upsert-put", { A: 2 }), "Replace"],
      ["upsert", entity("new-merge", { A: 2 }), "Merge"],
      ["upsert", entity("new-put", { A: 2 }), "Replace"],
    ]);
    assert.equal(status, 202);
    assert.deepEqual(
      subResponses.map((answer) => answer.status),
      Array(8).fill(204),
    );
    assert.deepEqual(await list(table), [
      entity("merge", { A: 2, B: 1 }),
      entity("new", { A: text }),
      entity("new-merge", { A: 2 }),
      entity("new-put", { A: 2 }),
      entity("put", { A: 2 }),
      entity("upsert-merge", { A: 2, B: 1 }),
      entity("upsert-put", { A: 2 }),
    ]);

    const hundred = Array.from({ length: 100 }, (_, n) => entity(String(n).padStart(3, "0")));
    for (const kind of ["create", "delete"]) {
      const answer = await table.submitTransaction(hundred.map((entity) => [kind, entity]));
      assert.equal(answer.subResponses.length, 100);
    }
    assert.equal((await list(table)).length, 7);
  },

  async "transactions on awkward keys"(run) {
    const table = await run.newTable();
    const keys = KEYS.filter((key) => !key.includes("',") || run.does("quoted-comma"));
    for (const partitionKey of keys) {
      const entities = keys.map((rowKey) => ({ partitionKey, rowKey, A: rowKey }));
      await table.submitTransaction(entities.map((entity) => ["create", entity]));
      await table.submitTransaction(
        entities.map((entity) => ["update", { ...entity, B: 2 }, "Merge"]),
      );
      const expected = entities.map((entity) => ({ ...entity, B: 2 }));
      // Strings of this language are compared by their UTF-16 units.
      expected.sort((a, b) => (a.rowKey < b.rowKey ? -1 : 1));
      const filter = odata`PartitionKey eq ${partitionKey}`;
      assert.deepEqual(await list(table, { filter }), expected);
      await table.submitTransaction(entities.map((entity) => ["delete", entity]));
    }
    assert.deepEqual(await list(table), []);
  },

  async "transactions that fail as a whole"(run) {
    const table = await run.newTable();
    const entity = (rowKey, properties) => ({ partitionKey: "p", rowKey, ...properties });
    const { etag } = await table.createEntity(entity("a", { A: 1 }));
    await table.updateEntity(entity("a", { A: 2 }));
    await table.createEntity(entity("b", { A: 1 }));
    const entities = () => collect(table.listEntities());
    const before = await entities();

    const good = ["upsert", entity("new")];
    const many = Array.from({ length: 101 }, (_, n) => ["upsert", entity(String(n))]);
    const cases = [
      [
        "a conflict",
        409,
        "EntityAlreadyExists",
        2,
        [good, ["delete", entity("b")], ["create", entity("a")]],
      ],
      ["a missing entity", 404, "ResourceNotFound", 1, [good, ["update", entity("none")]]],
      [
        "a stale update",
        412,
        "UpdateConditionNotSatisfied",
        1,
        [good, ["update", entity("a", { A: 3 }), "Merge", { etag }], ["create", entity("b")]],
      ],
      [
        "an entity twice",
        400,
        "InvalidDuplicateRow",
        2,
        [good, ["delete", entity("b")], ["upsert", entity("b")]],
      ],
    ];
    if (run.does("batch-limit")) {
      cases.push(["101 changes", 400, "InvalidInput", 99, many]);
    }
    if (run.does("property-names")) {
      const bad = ["create", entity("x", { "a-b": 1 })];
      cases.push(["a bad property", 400, "PropertyNameInvalid", 1, [good, bad]]);
    }
    for (const [what, status, code, index, changes] of cases) {
      await failsAt(index, status, code, () => table.submitTransaction(changes), what);
      assert.deepEqual(await entities(), before, what);
    }
    const nowhere = run.table(run.newName());
    await failsAt(0, 404, "TableNotFound", () => nowhere.submitTransaction([good]), "no table");
  },

  async "what is not there, and what is there already"(run) {
    const entity = { partitionKey: "p", rowKey: "r", A: 1 };
    const nowhere = run.table(run.newName());
    for (const call of [
      () => nowhere.getEntity("p", "r"),
      () => nowhere.createEntity(entity),
      () => nowhere.updateEntity(entity),
      () => nowhere.upsertEntity(entity),
      () => nowhere.deleteEntity("p", "r"),
      () => list(nowhere),
    ]) {
      await fails(404, "TableNotFound", call);
    }

    const table = await run.newTable();
    await fails(404, "ResourceNotFound", () => table.getEntity("p", "r"));
    const { etag } = await table.createEntity(entity);
    await fails(409, "EntityAlreadyExists", () => table.createEntity({ ...entity, A: 2 }));
    const got = await table.getEntity("p", "r");
    assert.deepEqual(bare(got), entity);
    assert.equal(got.etag, etag);
  },

  async "a wrong account key"(run) {
    const wrong = run.connectionString.replace(
      /AccountKey=[^;]*/i,
      `AccountKey=${"A".repeat(86)}==`,
    );
    const stranger = TableServiceClient.fromConnectionString(wrong, OPTIONS);
    const name = run.newName();
    const code = run.does("authentication-code") ? "AuthenticationFailed" : undefined;
    await fails(403, code, () => stranger.createTable(name));
    await fails(403, code, () => collect(stranger.listTables()));
    assert.deepEqual(await run.tablesBetween(name, name), []);
  },

  async "a table SAS"(run) {
    const table = await run.newTable();
    const other = await run.newTable();
    const key = { partitionKey: "p", rowKey: "r" };
    await table.createEntity({ ...key, A: 1 });

    const permissions = { query: true, add: true, update: true, delete: true };
    const everything = run.withTableSas(table, { permissions, expiresOn: hour() });
    await everything.createEntity({ ...key, rowKey: "s" });
    await everything.upsertEntity({ ...key, rowKey: "t" });
    await everything.updateEntity({ ...key, A: 2 });
    assert.deepEqual(
      (await list(everything)).map(({ rowKey }) => rowKey),
      ["r", "s", "t"],
    );
    await everything.deleteEntity("p", "s");
    assert.deepEqual(bare(await everything.getEntity("p", "r")), { ...key, A: 2 });

    const read = run.withTableSas(table, { permissions: { query: true }, expiresOn: hour() });
    assert.equal((await list(read)).length, 2);
    const lacking = "AuthorizationPermissionMismatch";
    await refused(run, 403, lacking, () => read.createEntity({ ...key, rowKey: "u" }));
    await refused(run, 403, lacking, () => read.updateEntity({ ...key, A: 3 }));
    await refused(run, 403, lacking, () => read.deleteEntity("p", "r"));
    assert.deepEqual(bare(await table.getEntity("p", "r")), { ...key, A: 2 });

    const token = run.tableSas(table, { permissions, expiresOn: hour() });
    const stranger = run.withSas(other, token);
    await refused(run, 403, "AuthorizationFailure", () => list(stranger));
    const late = { permissions, expiresOn: new Date(Date.now() - 3_600_000) };
    await refused(run, 403, "AuthenticationFailed", () => list(run.withTableSas(table, late)));
    const elsewhere = run.withTableSas(table, {
      permissions,
      expiresOn: hour(),
      ipRange: { start: "192.0.2.1", end: "192.0.2.9" },
    });
    if (run.does("sas-address")) {
      await refused(run, 403, "AuthorizationSourceIPMismatch", () => list(elsewhere));
    }
  },

  async "a table SAS with a range of keys"(run) {
    if (!run.does("sas-key-range")) {
      return;
    }
    const table = await run.newTable();
    for (const partitionKey of ["A", "B", "C"]) {
      for (const rowKey of ["1", "2"]) {
        await table.createEntity({ partitionKey, rowKey });
      }
    }
    const client = run.withTableSas(table, {
      permissions: { query: true, add: true, update: true, delete: true },
      expiresOn: hour(),
      startPartitionKey: "A",
      startRowKey: "2",
      endPartitionKey: "C",
      endRowKey: "1",
    });
    const found = (await list(client)).map((e) => e.partitionKey + e.rowKey);
    assert.deepEqual(found, ["A2", "B1", "B2", "C1"]);
    await refused(run, 404, "ResourceNotFound", () => client.getEntity("C", "2"));
    const outside = { partitionKey: "A", rowKey: "1", A: 1 };
    for (const call of [
      () => client.createEntity({ ...outside, rowKey: "0" }),
      () => client.updateEntity(outside),
      () => client.upsertEntity(outside),
      () => client.deleteEntity("A", "1"),
    ]) {
      await refused(run, 403, "AuthorizationFailure", call);
    }
    assert.equal((await list(table)).length, 6);
  },

  async "stored access policies"(run) {
    const table = await run.newTable();
    await table.createEntity({ partitionKey: "p", rowKey: "r" });
    assert.deepEqual([...(await table.getAccessPolicy())], []);
    const expiry = hour();
    const start = new Date(expiry.getTime() - 7_200_000);
    const given = [{ id: "read", accessPolicy: { start, expiry, permission: "r" } }];
    if (run.does("partial-policies")) {
      given.push({ id: "partial", accessPolicy: { permission: "r" } });
    }
    await table.setAccessPolicy(given);
    const got = [...(await table.getAccessPolicy())];
    assert.deepEqual(
      got.map(({ id }) => id),
      given.map(({ id }) => id),
    );
    assert.deepEqual({ ...got[0].accessPolicy }, given[0].accessPolicy);

    const client = run.withTableSas(table, { identifier: "read" });
    assert.equal((await list(client)).length, 1);
    const entity = { partitionKey: "p", rowKey: "s" };
    await refused(run, 403, "AuthorizationPermissionMismatch", () => client.createEntity(entity));
    if (run.does("partial-policies")) {
      const completed = run.withTableSas(table, { identifier: "partial", expiresOn: expiry });
      assert.equal((await list(completed)).length, 1);
    }
    await table.setAccessPolicy([]);
    assert.deepEqual([...(await table.getAccessPolicy())], []);
    await refused(run, 403, "AuthenticationFailed", () => list(client));
  },

  async "an account SAS"(run) {
    if (!run.does("sas-srt")) {
      return;
    }
    const table = await run.newTable();
    await table.createEntity({ partitionKey: "p", rowKey: "r" });
    const token = generateAccountSas(run.credential, {
      expiresOn: hour(),
      services: { table: true },
      resourceTypes: "o",
      permissions: { query: true },
    });
    assert.equal((await list(run.withSas(table, token))).length, 1);
    const service = new TableServiceClient(run.endpoint, new AzureSASCredential(token), OPTIONS);
    const name = run.newName();
    const lacking = "AuthorizationResourceTypeMismatch";
    await refused(run, 403, lacking, () => collect(service.listTables()));
    await refused(run, 403, lacking, () => service.createTable(name));
    const all = generateAccountSas(run.credential, { expiresOn: hour() });
    const unlimited = new TableServiceClient(run.endpoint, new AzureSASCredential(all), OPTIONS);
    const before = (await collect(unlimited.listTables())).length;
    assert.ok(before > 0);
    assert.deepEqual(await run.tablesBetween(name, name), []);
  },

  async "service properties"(run) {
    const week = { enabled: true, days: 7 };
    const rule = {
      allowedOrigins: "www.xyz.com,www.ab.com",
      allowedMethods: "GET,PUT",
      allowedHeaders: run.does("cors-without-headers") ? "" : "x-ms-meta-foo",
      exposedHeaders: "x-ms-meta-data*",
      maxAgeInSeconds: 500,
    };
    const off = { enabled: false };
    const logging = { version: "1.0", read: true, write: false, delete: false };
    const minuteMetrics = { version: "1.0", enabled: true, includeAPIs: true };
    await run.service.setProperties({
      logging: { ...logging, retentionPolicy: week },
      minuteMetrics: { ...minuteMetrics, retentionPolicy: week },
      cors: [rule],
    });
    const got = await run.service.getProperties();
    assert.equal(got.logging.read, true);
    assert.equal(got.logging.retentionPolicy.days, 7);
    assert.equal(got.minuteMetrics.includeAPIs, true);
    assert.equal(got.cors.length, 1);
    assert.equal(got.cors[0].allowedOrigins, rule.allowedOrigins);
    assert.equal(got.cors[0].allowedHeaders ?? "", rule.allowedHeaders);
    if (run.does("properties-limits")) {
      const year = { enabled: true, days: 366 };
      await refused(run, 400, "InvalidXmlDocument", () =>
        run.service.setProperties({ logging: { ...logging, retentionPolicy: year } }),
      );
      assert.equal((await run.service.getProperties()).logging.retentionPolicy.days, 7);
    }
    await run.service.setProperties({
      logging: { ...logging, read: false, retentionPolicy: off },
      minuteMetrics: { version: "1.0", enabled: false, retentionPolicy: off },
      cors: [],
    });
    assert.deepEqual((await run.service.getProperties()).cors ?? [], []);
  },

  async "delete the tables"(run) {
    for (const name of run.names) {
      await run.service.deleteTable(name);
    }
    assert.deepEqual(await run.tablesBetween(run.prefix, `${run.prefix}z`), []);
  },
};

class Run {
  names = [];
  prefix = `js${randomUUID().replaceAll("-", "")}`;

  constructor(connectionString, azurite) {
    this.connectionString = connectionString;
    this.azurite = azurite;
    const parts = Object.fromEntries(
      connectionString
        .split(";")
        .filter((part) => part)
        .map((part) => part.match(/^([^=]*)=(.*)$/).slice(1)),
    );
    this.endpoint = parts.TableEndpoint;
    this.credential = new AzureNamedKeyCredential(parts.AccountName, parts.AccountKey);
    this.service = TableServiceClient.fromConnectionString(connectionString, OPTIONS);
  }

  /** Whether the service has to pass the checks named `what`. */
  does(what) {
    assert.ok(what in AZURITE_LACKS, what);
    return !this.azurite;
  }

  newName() {
    const name = this.prefix + String(this.names.length).padStart(3, "0");
    this.names.push(name);
    return name;
  }

  table(name) {
    return TableClient.fromConnectionString(this.connectionString, name, OPTIONS);
  }

  async newTable() {
    const table = this.table(this.newName());
    await table.createTable();
    return table;
  }

  tableSas(table, options) {
    return generateTableSas(table.tableName, this.credential, options);
  }

  /** A client of the same table that has a SAS and no key. */
  withSas(table, token) {
    return new TableClient(this.endpoint, table.tableName, new AzureSASCredential(token), OPTIONS);
  }

  withTableSas(table, options) {
    return this.withSas(table, this.tableSas(table, options));
  }

  async tablesBetween(first, last) {
    const filter = odata`TableName ge ${first} and TableName le ${last}`;
    return (await collect(this.service.listTables({ queryOptions: { filter } }))).map(
      ({ name }) => name,
    );
  }
}

async function collect(iterable) {
  const all = [];
  for await (const one of iterable) {
    all.push(one);
  }
  return all;
}

async function list(table, queryOptions) {
  return (await collect(table.listEntities({ queryOptions }))).map(bare);
}

/** The same ETag with seven digits behind the seconds. */
function padded(etag) {
  const [head, tail] = etag.split("Z'");
  const [seconds, fraction = ""] = head.split(".");
  return `${seconds}.${fraction.padEnd(7, "0")}Z'${tail}`;
}

/** The entity without what the service adds to it. */
function bare({ etag, timestamp, "odata.metadata": _, ...properties }) {
  return properties;
}

/** Buffer and Uint8Array of the same bytes are not deeply equal. */
function plain(properties) {
  const entries = Object.entries(properties);
  return Object.fromEntries(
    entries.map(([k, v]) => [k, v instanceof Uint8Array ? { bytes: [...v] } : v]),
  );
}

/** In an hour, in whole seconds. */
function hour() {
  return new Date(Math.ceil(Date.now() / 1000) * 1000 + 3_600_000);
}

/** As `fails`, whatever the body, and without the code on Azurite. */
async function refused(run, status, code, call) {
  const error = await call().then(
    (result) => assert.fail(`expected ${status} ${code}, got ${JSON.stringify(result)}`),
    (reason) => reason,
  );
  if (error.statusCode === undefined) {
    throw error;
  }
  assert.equal(error.statusCode, status, error.message);
  if (!run.azurite) {
    const found = error.response.bodyAsText.match(/"code":"(\w+)"|<m:code>(\w+)</);
    assert.equal(found?.[1] ?? found?.[2], code, error.message);
  }
}

async function fails(status, code, call) {
  const error = await call().then(
    (result) => assert.fail(`expected ${status} ${code}, got ${JSON.stringify(result)}`),
    (reason) => reason,
  );
  if (error.statusCode === undefined) {
    throw error;
  }
  assert.equal(error.statusCode, status, error.message);
  if (code !== undefined) {
    assert.equal(error.details?.odataError?.code, code, error.message);
  }
}

/** A transaction's error is another than that of a single operation, and has its index in the message. */
async function failsAt(index, status, code, call, what) {
  const error = await call().then(
    (result) => assert.fail(`${what}: ${JSON.stringify(result)}`),
    (reason) => reason,
  );
  if (error.statusCode === undefined) {
    throw error;
  }
  const prefix = Number(/^(\d+):/.exec(error.message)?.[1]);
  assert.deepEqual([error.statusCode, error.code, prefix], [status, code, index], what);
}

async function main(args) {
  const azurite = args.includes("--azurite");
  const connectionStrings = args.filter((arg) => arg !== "--azurite");
  if (connectionStrings.length !== 1) {
    console.error("usage: client.mjs [--azurite] CONNECTION_STRING");
    return 2;
  }
  const run = new Run(connectionStrings[0], azurite);
  if (azurite) {
    for (const [name, reason] of Object.entries(AZURITE_LACKS)) {
      console.log(`left out: ${name}: ${reason}`);
    }
  }
  let failed = 0;
  for (const [title, check] of Object.entries(checks)) {
    try {
      await check(run);
      console.log(`ok: ${title}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED: ${title}`);
      console.error(error);
    }
  }
  console.log(`JavaScript client: ${Object.keys(checks).length - failed} passed, ${failed} failed`);
  return failed ? 1 : 0;
}

process.exitCode = await main(process.argv.slice(2));
