//! The patterns.

use harness::company::indexed::{ByEmail, ByName, Employee};
use tablesdk::action::{QueryEntities, Transaction};
use tablesdk::index::CopyOf;
use tablesdk::key::Shard;
use tablesdk::rolling::{Period, RollingTable};
use tablesdk::series::Series;
use tablesdk::{DynamicEntity, ETag, TableClient, TableEntity, Timestamp, Value};

use super::{Costs, eventually, expiry, large_values};

#[derive(Clone, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(index(
    CompanyByName,
    partition_key = "name_{last_name}",
    row_key = "in_{department}_{id:06}"
))]
struct OfCompany {
    department: String,
    id: u32,
    last_name: String,
    email: String,
}

/// An employee with reviews, of which the entries have all or none.
#[derive(Clone, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(index(WholeByEmail, row_key = "email_{email}", unique))]
struct WithWhole {
    department: String,
    id: u32,
    email: String,
    last_name: String,
    review: String,
}

#[derive(Clone, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(index(PartByEmail, row_key = "email_{email}", unique, only(last_name)))]
struct WithPart {
    department: String,
    id: u32,
    email: String,
    last_name: String,
    review: String,
}

#[derive(Clone, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(index(KeysByEmail, row_key = "email_{email}", unique, only()))]
struct WithKeys {
    department: String,
    id: u32,
    email: String,
    last_name: String,
    review: String,
}

/// The employees with the same last name, by hand.
#[derive(Clone, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "list_{last_name}")]
struct Named {
    department: String,
    last_name: String,
    #[table(json)]
    ids: Vec<u32>,
}

/// 10 of 1,000 are named Jones.
fn last_name(id: u32) -> &'static str {
    if id.is_multiple_of(100) {
        "Jones"
    } else {
        "Smith"
    }
}

fn employee(id: u32) -> Employee {
    Employee::new(id, last_name(id), Some(&format!("{id}@contoso.com")))
}

pub(super) fn run(costs: &mut Costs) {
    let table = costs.table_with("Indexed", (0..1_000).map(employee));
    indexes(costs, &table);
    indexes_elsewhere(costs);
    eventually::run(costs);
    index_entities(costs, &table);
    denormalization(costs);
    compound_key(costs);
    log_tail(costs);
    archive(costs);
    high_volume_delete(costs);
    expiry::run(costs);
    data_series(costs);
    wide_entities(costs);
    large(costs);
    large_values::run(costs);
    append(costs);
}

fn indexes(costs: &mut Costs, table: &TableClient) {
    let task = "one of 1,000 employees by the email";
    costs.task("Intra-partition secondary index", task);
    let email = "500@contoso.com";
    let get = || table.get(ByEmail::key("Sales", email));
    assert!(costs.way("`get` of the index", get()).unwrap().is_some());
    let way = "`get` of the index and `follow`, to write the employee";
    assert!(costs.way(way, get().follow()).unwrap().is_some());
    let query = table.query::<Employee>().partition("Sales");
    let scan = query.filter(|e| e.email.eq(email)).collect();
    costs.read("naive: a filter", 1, scan);
    entries_with_less(costs);
}

/// Inserts employees with a review of 4 KiB, and reads their entries.
macro_rules! entries {
    ($costs:ident, $way:literal, $entity:ident, $index:ident) => {{
        let employee = |id: u32| $entity {
            department: "Sales".into(),
            id,
            email: format!("{id:03}@contoso.com"),
            last_name: last_name(id).into(),
            review: "a".repeat(4096),
        };
        let table = $costs.table(stringify!($entity));
        let ways = async {
            for id in 0..10 {
                table.insert(&employee(id)).await.unwrap();
            }
            let entries = table.query::<$index>().partition("Sales");
            entries.collect().await
        };
        $costs.read($way, 10, ways);
    }};
}

fn entries_with_less(costs: &mut Costs) {
    let task = "insert 10 employees with a review of 4 KiB, and list their entries";
    costs.task("Intra-partition secondary index", task);
    entries!(
        costs,
        "entries with all properties",
        WithWhole,
        WholeByEmail
    );
    entries!(
        costs,
        "entries with `only(last_name)`",
        WithPart,
        PartByEmail
    );
    entries!(costs, "entries with `only()`", WithKeys, KeysByEmail);
}

fn indexes_elsewhere(costs: &mut Costs) {
    let of_company = |id: u32| OfCompany {
        department: format!("Department{}", id % 7),
        id,
        last_name: last_name(id).into(),
        email: format!("{id}@contoso.com"),
    };
    let table = costs.table_with("Company", (0..1_000).map(of_company));
    let pattern = "Inter-partition secondary index";
    let task = "the 10 of 1,000 employees with a last name, in 7 departments";
    costs.task(pattern, task);
    let partition = || CompanyByName::partition("Jones");
    let jones = || table.query::<CompanyByName>().partition(partition());
    let way = "a query of the index, and `follow`: the employees";
    costs.read(way, 10, jones().follow().collect());
    let way = "a query of the index, `unverified`: the entries";
    costs.read(way, 10, jones().unverified().collect());
    let all = table.query::<OfCompany>();
    let scan = all.filter(|e| e.last_name.eq("Jones")).collect();
    costs.read("naive: a filter", 10, scan);

    let task = "insert one employee more, and give her another name";
    costs.task(pattern, task);
    let insert = async {
        let mut new = table.insert(&of_company(1_000)).await.unwrap();
        new.last_name = "Smith".into();
        table.replace(&mut new).await.unwrap();
    };
    costs.way("`insert` and `replace`", insert);
    let by_hand = async {
        let entity = |partition: &str, row: &str, name: &str| {
            let entity = DynamicEntity::new(partition, row).with("LastName", name);
            entity.with("Email", "1000@contoso.com")
        };
        let insert = async |entity| table.insert(&entity).await.unwrap();
        insert(entity("Sales", "1000", "Jones")).await;
        insert(entity("Jones", "Sales_1000", "Jones")).await;
        let renamed = entity("Sales", "1000", "Smith");
        table.upsert_replace(&renamed).await.unwrap();
        insert(entity("Smith", "Sales_1000", "Smith")).await;
        assert!(table.delete(("Jones", "Sales_1000")).await.unwrap());
    };
    let way = "naive: entries by hand, which a stopped program leaves wrong";
    costs.way(way, by_hand);
}

fn index_entities(costs: &mut Costs, table: &TableClient) {
    let list = Named {
        department: "Sales".to_owned(),
        last_name: "Jones".to_owned(),
        ids: (0..10).map(|id| id * 100).collect(),
    };
    costs.insert(table, [list]);

    let task = "the 10 of 1,000 employees with a last name";
    costs.task("Index entities", task);
    let by_name = table.query::<ByName>().partition("Sales");
    let by_name = by_name.rows(ByName::rows().last_name("Jones"));
    costs.read("a query of an index", 10, by_name.collect());
    let key = || Named::key("Sales", "Jones");
    let by_list = async {
        let list = table.get(key()).await.unwrap().unwrap();
        let keys = list.ids.iter().map(|id| Employee::key("Sales", *id));
        table.get_many(keys).await
    };
    costs.read("a list of keys, and `get_many`", 10, by_list);
    let query = table.query::<Employee>().partition("Sales");
    let scan = query.filter(|e| e.last_name.eq("Jones")).collect();
    costs.read("naive: a filter", 10, scan);

    costs.task("Index entities", "insert one employee more with the name");
    let insert = table.insert(&employee(1_000));
    costs.way("with two indexes: `insert`", insert).unwrap();
    let add = async |tx: Transaction| {
        let mut list = tx.get(key()).await?.unwrap();
        list.ids.push(2_000);
        tx.replace(list)
            .insert(&DynamicEntity::new("Sales", "plain_002000"));
        Ok(())
    };
    let list = table.transaction(Employee::partition("Sales"), add);
    let way = "with a list of keys: `transaction`";
    costs.way(way, list).unwrap();
}

#[derive(Clone, TableEntity)]
#[table(rename_all = "PascalCase", copy(ManagerOf))]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
struct Manager {
    department: String,
    id: u32,
    email: String,
}

#[derive(Clone, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "dept_")]
struct Department {
    department: String,
    title: String,
    manager: u32,
    manager_email: String,
}

/// A part of a department.
#[derive(TableEntity)]
#[table(projection, rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "dept_")]
struct ManagerOf {
    department: String,
    manager_email: String,
}

impl CopyOf<Manager> for ManagerOf {
    fn copies_of(manager: &Manager) -> impl IntoIterator<Item = Self> {
        let (department, manager_email) = (manager.department.clone(), manager.email.clone());
        Some(Self {
            department,
            manager_email,
        })
    }
}

fn denormalization(costs: &mut Costs) {
    let table = costs.table("Denormalized");
    let department = Department {
        department: "Sales".into(),
        title: "Sales and marketing".into(),
        manager: 1,
        manager_email: String::new(),
    };
    costs.insert(&table, [department]);
    let manager = Manager {
        department: "Sales".into(),
        id: 1,
        email: "1@contoso.com".into(),
    };
    let mut manager = costs.run(table.insert(&manager)).unwrap();

    let section = "Denormalization";
    costs.task(section, "a department, and the email of its manager");
    let get = || table.get(Department::key("Sales"));
    let copy = costs.way("a copy of the email in the department: `get`", get());
    assert_eq!(copy.unwrap().unwrap().manager_email, "1@contoso.com");
    let both = async {
        let department = get().await.unwrap().unwrap();
        let key = Manager::key("Sales", department.manager);
        assert!(table.get(key).await.unwrap().is_some());
    };
    costs.way("naive: `get` both", both);

    costs.task(section, "change the email of a manager who was read");
    manager.email = "jones@contoso.com".into();
    let replace = table.replace(&mut manager);
    costs.way("with `copy`: `replace`", replace).unwrap();
    let by_hand = async {
        let manager = DynamicEntity::new("Sales", "empid_000001").with("Email", "a@contoso.com");
        let part = DynamicEntity::new("Sales", "dept_").with("ManagerEmail", "a@contoso.com");
        table.merge_if(&manager, ETag::ANY).await.unwrap();
        table.merge_if(&part, ETag::ANY).await.unwrap();
    };
    costs.way("naive: two merges, not together", by_hand);
}

/// The entities of a partition whose row keys begin with a text.
pub(super) fn rows(
    table: &TableClient,
    partition: &str,
    text: &str,
) -> QueryEntities<DynamicEntity> {
    let query = table.query::<DynamicEntity>().partition(partition);
    // `~` sorts after digits.
    let row_key = || DynamicEntity::columns().property("RowKey");
    query.filter(|_| row_key().ge(text) & row_key().lt(format!("{text}~")))
}

fn compound_key(costs: &mut Costs) {
    let employee = || DynamicEntity::new("Sales", "000223").with("LastName", "Jones");
    let years = (2010..2020)
        .map(|year| DynamicEntity::new("Sales", format!("000223_{year}")).with("Rating", 4));
    let together = costs.table_with("Reviews", years.chain([employee()]));
    let apart = costs.table_with("Employed", [employee()]);
    let reviews = (0..1_000).map(|id| {
        let review = DynamicEntity::new("Sales", format!("{id:06}"));
        review.with("Employee", id / 10).with("Rating", 4)
    });
    let reviews = costs.table_with("ReviewsById", reviews);

    costs.task("Compound key", "an employee and 10 yearly reviews");
    let range = rows(&together, "Sales", "000223").collect();
    costs.read("row keys of number and year: a row range", 11, range);
    let both = async {
        let employee = apart.get::<DynamicEntity>(("Sales", "000223")).await;
        assert!(employee.unwrap().is_some());
        let query = reviews.query::<DynamicEntity>().partition("Sales");
        let query = query.filter(|e| e.property("Employee").eq(22));
        query.collect().await
    };
    costs.read("naive: `get`, and a filter on 1,000 reviews", 10, both);
}

#[derive(Clone, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{employee}", row_key = "{claimed:desc}_{number:04}")]
struct ExpenseClaim {
    employee: String,
    claimed: Timestamp,
    number: u32,
    cents: i64,
}

fn log_tail(costs: &mut Costs) {
    let claims = (0..1_000).map(|number| ExpenseClaim {
        employee: "jonesj".into(),
        claimed: "2024-03-15T10:20:30Z".parse().unwrap(),
        number,
        cents: 1_250,
    });
    let table = costs.table_with("Claims", claims);
    costs.task("Log tail", "the 10 newest of 1,000 expense claims");
    let claims = || table.query::<ExpenseClaim>().partition("jonesj");
    costs.read("`:desc` and `take(10)`", 10, claims().take(10).collect());
    costs.read("naive: read all, and sort", 1_000, claims().collect());
}

fn high_volume_delete(costs: &mut Costs) {
    let logins = || (0..1_000).map(|id| DynamicEntity::new("ann", format!("{id:04}")));
    costs.table_with("Logins202401", logins());
    costs.table("Logins202402");
    costs.task("High volume delete", "1,000 logins of a month");
    let months = RollingTable::new(&costs.service, "Logins", Period::Month);
    let february = "2024-02-01".parse::<Timestamp>().unwrap();
    let way = "a table for each month: `RollingTable::drop_before`";
    costs.read(way, 1, months.drop_before(february));
    let table = costs.table_with("Logins", logins());
    let all = table.query::<DynamicEntity>().partition("ann");
    let deleted = costs.way("`delete_all`", all.delete_all());
    assert!(deleted.unwrap().is_success());
    let table = costs.table_with("LoginsByHand", logins());
    let naive = async {
        for login in table.query::<DynamicEntity>().collect().await.unwrap() {
            assert!(table.delete(login.key()).await.unwrap());
        }
    };
    costs.way("naive: a query, and `delete` for each", naive);
}

fn archive(costs: &mut Costs) {
    costs.task("The archive", "1,000 employees into another table");
    let archive = costs.table("FormerArchive");
    let table = costs.table_with("Former", eventually::employees(0, 1_000));
    let all = table.query::<DynamicEntity>().partition("Sales");
    let moved = all.move_to(&archive).concurrency(1);
    let report = costs.way("a query and `move_to`", moved).unwrap();
    assert_eq!(report.progress().written, 1_000);
    let archive = costs.table("FormerArchiveByHand");
    let table = costs.table_with("FormerByHand", eventually::employees(0, 1_000));
    let way = "naive: `insert` and `delete_stored` for each";
    costs.way(way, eventually::archive_by_hand(&table, &archive));
}

#[derive(TableEntity)]
#[table(partition_key = "{employee}", row_key = "{day}")]
struct MessageDay {
    employee: String,
    day: String,
    #[table(flatten, prefix = "H")]
    hours: Series<i32, 24>,
}

fn data_series(costs: &mut Costs) {
    let day = |hours: std::ops::Range<usize>| MessageDay {
        employee: "ann".into(),
        day: "2024-03-15".into(),
        hours: hours.map(|hour| (hour, 42)).collect(),
    };
    let hour =
        |hour| DynamicEntity::new("ann", format!("2024-03-15_{hour:02}")).with("Messages", 42);
    let table = costs.table_with("Days", [day(0..23)]);
    let by_hour = costs.table_with("Hours", (0..23).map(hour));
    let task = "add the messages of the last hour, and read those of 24 hours";
    costs.task("Data series", task);
    let one = async {
        table.upsert_merge(&day(23..24)).await.unwrap();
        let day = table.get(MessageDay::key("ann", "2024-03-15")).await;
        assert_eq!(day.unwrap().unwrap().hours.filled().count(), 24);
    };
    let way = "24 properties: `upsert_merge` of a `Series`, and `get`";
    costs.way(way, one);
    let each = async {
        by_hour.insert(&hour(23)).await.unwrap();
        rows(&by_hour, "ann", "2024-03-15_").collect().await
    };
    costs.read("naive: 24 entities: `insert`, and a row range", 24, each);
}

fn wide_entities(costs: &mut Costs) {
    let table = costs.table("Wide");
    let part = |id: u32, part: u32| {
        let properties = (0..200).map(|n| (format!("P{n:03}"), 42));
        DynamicEntity::new("Sales", format!("{id:06}_{part:02}"))
            .with_properties(properties.collect())
    };
    costs.task("Wide entities", "write and read 400 properties");
    let wide = async {
        let properties = (0..400).map(|index| (format!("Day{index:03}"), index));
        let year = DynamicEntity::new("Sales", "2024").with_properties(properties.collect());
        let years = table.wide::<DynamicEntity>();
        years.insert(&year).await.unwrap();
        let read = years.get(("Sales", "2024")).await.unwrap().unwrap();
        assert_eq!(read.properties().len(), 400);
    };
    costs.way("`insert` and `get` of `wide`", wide);
    let together = async {
        let batch = table.batch("Sales").insert(&part(1, 1));
        batch.insert(&part(1, 2)).await.unwrap();
        rows(&table, "Sales", "000001_").collect().await
    };
    let way = "by hand, two entities: `batch`, and a row range";
    costs.read(way, 2, together);
    let apart = async {
        table.insert(&part(2, 1)).await.unwrap();
        table.insert(&part(2, 2)).await.unwrap();
        let keys = [("Sales", "000002_01"), ("Sales", "000002_02")];
        let read = table.get_many::<DynamicEntity, _>(keys).await.unwrap();
        assert!(read.iter().all(Option::is_some));
    };
    costs.way("naive: one by one, not together", apart);
}

fn large(costs: &mut Costs) {
    let table = costs.table("Large");
    costs.task("Large entities", "write, read and delete 6 MiB");
    let of = |row_key: String, properties: std::ops::Range<usize>| {
        let property = |index| (format!("P{index:02}"), Value::Binary(vec![7; 64 * 1024]));
        DynamicEntity::new("Sales", row_key).with_properties(properties.map(property).collect())
    };
    let wide = async {
        let reports = table.wide::<DynamicEntity>();
        let report = reports.insert(&of("report".into(), 0..96)).await.unwrap();
        assert!(reports.get(("Sales", "report")).await.unwrap().is_some());
        assert!(reports.delete_stored(&report).await.unwrap());
    };
    costs.way("`wide`: readers see all or nothing", wide);
    let naive = async {
        for part in 0..7 {
            let properties = part * 15..96.min(part * 15 + 15);
            let part = of(format!("part_{part}"), properties);
            table.insert(&part).await.unwrap();
        }
        let parts = table.query::<DynamicEntity>().partition("Sales");
        for part in parts.collect().await.unwrap() {
            table.delete_stored(&part).await.unwrap();
        }
    };
    costs.way("naive: one by one, not together", naive);
}

#[derive(Clone, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{hour}_{shard}", row_key = "{sensor:04}")]
struct Reading {
    hour: String,
    shard: Shard<16>,
    sensor: u32,
    celsius: f64,
}

fn append(costs: &mut Costs) {
    let hour = "2024-03-15T10";
    let readings = (0..1_000).map(|sensor| Reading {
        hour: hour.into(),
        shard: Shard::of(sensor.to_string()),
        sensor,
        celsius: 18.5,
    });
    let sharded = costs.table_with("Sharded", readings);
    let readings = (0..1_000)
        .map(|sensor| DynamicEntity::new(hour, format!("{sensor:04}")).with("Celsius", 18.5));
    let single = costs.table_with("Unsharded", readings);
    let partitions = || Shard::<16>::all().map(|shard| Reading::partition(hour, shard));
    let of_all = || sharded.query::<Reading>().partitions(partitions());
    let of_one = || single.query::<DynamicEntity>().partition(hour);

    let section = "Prepend and append anti-pattern";
    costs.task(section, "read the 1,000 readings of an hour");
    let way = "16 partitions, which take 10 times the writes, as an account does: `Shard`";
    costs.read(way, 1_000, of_all().collect());
    let way = "naive: one partition, which takes 2,000 entities a second";
    costs.read(way, 1_000, of_one().collect());

    costs.task(section, "read the first 100 readings of an hour, in order");
    let merged = of_all().merged().take(100);
    let page = costs.way("16 partitions: `merged`", merged.page(None));
    assert_eq!(page.unwrap().items.len(), 100);
    let page = of_one().take(100).page(None);
    let page = costs.way("naive: one partition", page).unwrap();
    assert_eq!(page.items.len(), 100);
}
