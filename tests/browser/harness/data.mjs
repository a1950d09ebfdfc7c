// The tables of an invented company, and tables whose keys, names and values are awkward to show: lines for `tables import`.

const pad = (number, width) => String(number).padStart(width, "0");
const typed = (type, value) => ({ type, value });
const int64 = (value) => typed("Edm.Int64", String(value));
const date = (value) => typed("Edm.DateTime", value);
const binary = (bytes) => typed("Edm.Binary", Buffer.from(bytes).toString("base64"));
const guid = (number) => typed("Edm.Guid", `00000000-0000-4000-8000-${pad(number, 12)}`);
const double = (value) => typed("Edm.Double", value);

/** Numbers from 0 to 1 that are the same in every run. */
function randomly(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function entity(partition, row, properties = {}) {
  const object = { PartitionKey: partition, RowKey: row };
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined) continue;
    if (typeof value === "object") {
      object[`${name}@odata.type`] = value.type;
      object[name] = value.value;
    } else {
      object[name] = value;
    }
  }
  return object;
}

const NAMES = [
  ["Jun", "Cao"], ["Don", "Hall"], ["Ken", "Kwok"], ["Grace", "Jones"], ["Priya", "Natarajan"], ["Ada", "Lovelace"],
  ["Søren", "Ångström"], ["João", "Silva"], ["Mei", "Tanaka"], ["Olga", "Petrova"], ["Kwame", "Mensah"], ["Zoë", "Brontë"],
];
const DEPARTMENTS = [["Sales", 100], ["IT", 60], ["Marketing", 40], ["Finance", 30], ["Legal", 10]];

/** 240 employees: two in a row of the sketches, the rest of a series. Every seventh has no e-mail address. */
function* employees() {
  const random = randomly(7);
  for (const [department, count] of DEPARTMENTS) {
    for (let index = 0; index < count; index += 1) {
      const [first, last] = NAMES[(index * 5 + department.length) % NAMES.length];
      const id = pad(100 + index * 3, 6);
      const year = 2004 + Math.floor(random() * 20);
      const day = `${year}-${pad(1 + Math.floor(random() * 12), 2)}-${pad(1 + Math.floor(random() * 28), 2)}`;
      yield entity(department, id, {
        FirstName: first,
        LastName: last,
        Age: 22 + Math.floor(random() * 42),
        Salary: double(42000 + Math.floor(random() * 500) * 100 + 0.5 * (index % 2)),
        Email: index % 7 === 3 ? undefined : `${first}${index}@contoso.com`.toLowerCase(),
        Hired: date(`${day}T${pad(index % 24, 2)}:30:00.1234567Z`),
        BadgeId: int64(9007199254741377n + BigInt(index)),
        Active: index % 11 !== 0,
        Manager: index === 0 ? undefined : guid(100 + (index % 9)),
        Photo: index % 4 === 0 ? binary(Uint8Array.from({ length: 980 }, (_, at) => (at * 7 + index) % 256)) : undefined,
      });
    }
  }
}

const EDGES = [
  ["quotes", `it's "quoted"`], ["markup", "<img src=x onerror=alert(1)>"], ["script", "<script>document.title='owned'</script>"],
  ["entity", "&lt;b&gt; &amp; &quot;"], ["emoji", "🦀 Ada 👩‍💻 Lovelace"], ["bidi", "user\u202egnp.exe"], ["percent", "100% %2f%2e%2e"],
  ["spaces", "  leading and trailing  "], ["plus", "a+b=c&d=e"], ["tabs", "one\ttwo\nthree\u0007"],
];

/** What is awkward: keys, names of properties and values. */
function* odd() {
  for (const [row, text] of EDGES) {
    // Keys allow no control characters, and none of / \ # ?.
    const key = text.replace(/[\u0000-\u001f\u007f-\u009f/\\#?]/gu, "·");
    yield entity(key, row, { Text: text, Length: text.length });
    yield entity("values", `${row} ${key}`, { Text: text, Html: `"><svg onload=alert(1)>${text}`, Link: "javascript:alert(1)" });
  }
  yield entity("long", "k".repeat(512), { Note: "a row key of 1 KiB" });
  yield entity("l".repeat(512), "m".repeat(512), { Note: "two keys of 1 KiB" });
  yield entity("long", "text", { Text: "0123456789abcdef".repeat(2048), Few: "short" });
  yield entity("long", "binary", { Bytes: binary(new Uint8Array(65536).fill(171)) });
  yield entity("none", "without properties");
  yield entity("", "", { Note: "both keys are empty" });
  yield entity("numbers", "edges", {
    Int32: -2147483648, Int64: int64("-9223372036854775808"), Large: int64("9223372036854775807"), Nan: double("NaN"), Infinite: double("-Infinity"),
    Tiny: double(5e-324), Negative: double("-0.0"), First: date("1601-01-01T00:00:00Z"), Last: date("9999-12-31T23:59:59.9999999Z"), Empty: "", None: binary([]),
  });
}

/** 10,000 columns over 50 rows. */
function* wide() {
  for (let row = 0; row < 50; row += 1) {
    const properties = {};
    for (let column = 0; column < 200; column += 1) properties[`Column${pad(row * 200 + column, 5)}`] = row * column;
    yield entity("wide", pad(row, 3), properties);
  }
}

/** 1,000 entities with 20 properties each. */
function* big() {
  for (let row = 0; row < 1000; row += 1) {
    const properties = {};
    for (let column = 0; column < 20; column += 1) {
      properties[`Column${pad(column, 2)}`] = [`value ${row}`, row * column, double(row / 7), int64(row * 1_000_003), row % 3 === 0][column % 5];
    }
    yield entity("big", pad(row, 6), properties);
  }
}

/** The tables by name; `small` leaves out those with thousands of values. */
function* tables(small) {
  yield ["Employees", employees()];
  yield ["Departments", DEPARTMENTS.map(([name, count]) => entity("departments", name, { Name: name, Head: `000${count}`, Budget: double(count * 71000) }))];
  yield ["ExpenseClaims", Array.from({ length: 40 }, (_, index) => entity(`00${100 + (index % 5) * 3}`, `2026-${pad(1 + (index % 12), 2)}-${pad(index, 3)}`, {
    Amount: double(12.5 * index + 3), Currency: ["EUR", "USD", "GBP"][index % 3], Approved: index % 4 !== 0,
    // Two types of one property.
    Reference: index % 10 === 9 ? index : `R-${pad(index, 4)}`,
  }))];
  yield ["Readings", Array.from({ length: small ? 120 : 2400 }, (_, index) => entity(`sensor-${index % 3}`, pad(index, 8), {
    Celsius: double(Math.round(180 + 40 * Math.sin(index / 9)) / 10), At: date(`2026-11-${pad(1 + (index % 28), 2)}T${pad(index % 24, 2)}:00:00Z`),
  }))];
  yield ["Reviews", Array.from({ length: 12 }, (_, index) => entity("mgr_000100", `2026-${pad(index + 1, 2)}`, { Rating: 1 + (index % 5), Comment: `Review of month ${index + 1}` }))];
  for (let month = 1; month <= 12; month += 1) {
    yield [`Logins2026${pad(month, 2)}`, Array.from({ length: 5 }, (_, index) => entity(pad(100 + index * 3, 6), pad(month * 100 + index, 8), { Status: index % 4 === 0 ? "failed" : "ok" }))];
  }
  yield ["EmployeesByEmail", Array.from({ length: 9 }, (_, index) => entity("email", `ada${index}@contoso.com`, { TablesdkIndex: "Employee.ByEmail", Department: "Sales", Id: pad(100 + index * 3, 6) }))];
  yield ["Odd", odd()];
  yield ["Empty", []];
  if (small) return;
  yield ["Wide", wide()];
  yield ["Big", big()];
}

/** The lines of all tables. The names of empty tables come apart: a line cannot say them. */
export function company({ small = false } = {}) {
  const lines = [];
  const empty = [];
  for (const [table, entities] of tables(small)) {
    const before = lines.length;
    for (const each of entities) lines.push(JSON.stringify({ table, entity: each }));
    if (lines.length === before) empty.push(table);
  }
  return { lines: `${lines.join("\n")}\n`, empty };
}
