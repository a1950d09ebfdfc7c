//! The patterns.

use tablesdk::action::{QueryEntities, Transaction};
use tablesdk::index::CopyOf;
use tablesdk::key::Shard;
use tablesdk::rolling::{Period, RollingTable};
use tablesdk::series::Series;
use tablesdk::{DynamicEntity, ETag, TableClient, TableEntity, Timestamp, Value};

use super::{Costs, eventually, expiry, large_values};

#[derive(Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "empid_{id:06}"
)]
#[table(index(ByEmail, row_key = "email_{email}", unique))]
#[table(index(ByLastName, row_key = "name_{last_name}_{id:06}"))]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
    email: String,
}

#[derive(Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "empid_{id:06}"
)]
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

/// The employees with the same last name, by hand.
#[derive(Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "list_{last_name}"
)]
struct Named {
    department: String,
    last_name: String,
    #[table(json)]
    ids: Vec<u32>,
}

/// 10 of 1,000 are named Jones.
fn employee(id: u32) -> Employee {
    let last_name = if id.is_multiple_of(100) {
        "Jones"
    } else {
        "Smith"
    };
    Employee {
        department: "Sales".into(),
        id,
        last_name: last_name.into(),
        email: format!("{id}@contoso.com"),
    }
}

pub(super) async fn run(costs: &mut Costs) {
    let table = costs.table("Indexed").await;
    for id in 0..1_000 {
        table.insert(&employee(id)).await.unwrap();
    }
    indexes(costs, &table).await;
    indexes_elsewhere(costs).await;
    eventually::run(costs).await;
    index_entities(costs, &table).await;
    denormalization(costs).await;
    compound_key(costs).await;
    log_tail(costs).await;
    archive(costs).await;
    high_volume_delete(costs).await;
    expiry::run(costs).await;
    data_series(costs).await;
    wide_entities(costs).await;
    large_values::run(costs).await;
    append(costs).await;
}

async fn indexes(costs: &mut Costs, table: &TableClient) {
    costs.task(
        "Intra-partition secondary index",
        "one of 1,000 employees by the email",
    );
    let email = "500@contoso.com";
    let key = || ByEmail::key("Sales", email);
    let get = async || assert!(table.get(key()).await.unwrap().is_some());
    costs.way("`get` of the index", get()).await;
    let follow = async || assert!(table.get(key()).follow().await.unwrap().is_some());
    costs
        .way(
            "`get` of the index and `follow`, to write the employee",
            follow(),
        )
        .await;
    let scan = async || {
        let query = table.query::<Employee>().partition("Sales");
        let found = query.filter(|e| e.email.eq(email)).collect().await.unwrap();
        assert_eq!(found.len(), 1);
    };
    costs.way("naive: a filter", scan()).await;
}

async fn indexes_elsewhere(costs: &mut Costs) {
    let table = costs.table("Company").await;
    let of_company = |id: u32| {
        let Employee {
            last_name, email, ..
        } = employee(id);
        let department = format!("Department{}", id % 7);
        OfCompany {
            department,
            id,
            last_name,
            email,
        }
    };
    for id in 0..1_000 {
        table.insert(&of_company(id)).await.unwrap();
    }
    let pattern = "Inter-partition secondary index";
    costs.task(
        pattern,
        "the 10 of 1,000 employees with a last name, in 7 departments",
    );
    let jones = || {
        table
            .query::<CompanyByName>()
            .partition(CompanyByName::partition("Jones"))
    };
    let follow = async { assert_eq!(jones().follow().collect().await.unwrap().len(), 10) };
    costs
        .way("a query of the index, and `follow`: the employees", follow)
        .await;
    let unverified = async { assert_eq!(jones().unverified().collect().await.unwrap().len(), 10) };
    costs
        .way(
            "a query of the index, `unverified`: the entries",
            unverified,
        )
        .await;
    let scan = async {
        let query = table
            .query::<OfCompany>()
            .filter(|e| e.last_name.eq("Jones"));
        assert_eq!(query.collect().await.unwrap().len(), 10);
    };
    costs.way("naive: a filter", scan).await;

    costs.task(
        pattern,
        "insert one employee more, and give her another name",
    );
    let insert = async {
        let mut new = table.insert(&of_company(1_000)).await.unwrap();
        new.last_name = "Smith".into();
        table.replace(&mut new).await.unwrap();
    };
    costs.way("`insert` and `replace`", insert).await;
    let by_hand = async {
        let entity = |partition: &str, row: &str, name: &str| {
            let entity = DynamicEntity::new(partition, row).with("LastName", name);
            entity.with("Email", "1000@contoso.com")
        };
        table
            .insert(&entity("Sales", "1000", "Jones"))
            .await
            .unwrap();
        table
            .insert(&entity("Jones", "Sales_1000", "Jones"))
            .await
            .unwrap();
        table
            .upsert_replace(&entity("Sales", "1000", "Smith"))
            .await
            .unwrap();
        table
            .insert(&entity("Smith", "Sales_1000", "Smith"))
            .await
            .unwrap();
        assert!(table.delete(("Jones", "Sales_1000")).await.unwrap());
    };
    costs
        .way(
            "naive: entries by hand, which a stopped program leaves wrong",
            by_hand,
        )
        .await;
}

async fn index_entities(costs: &mut Costs, table: &TableClient) {
    let ids = (0..10).map(|id| id * 100).collect();
    let (department, last_name) = ("Sales".to_owned(), "Jones".to_owned());
    let list = Named {
        department,
        last_name,
        ids,
    };
    table.insert(&list).await.unwrap();

    costs.task(
        "Index entities",
        "the 10 of 1,000 employees with a last name",
    );
    let by_name = async || {
        let rows = ByLastName::rows().last_name("Jones");
        let found = table.query::<ByLastName>().partition("Sales").rows(rows);
        assert_eq!(found.collect().await.unwrap().len(), 10);
    };
    costs.way("a query of an index", by_name()).await;
    let by_list = async || {
        let list = table
            .get(Named::key("Sales", "Jones"))
            .await
            .unwrap()
            .unwrap();
        let keys = list.ids.iter().map(|id| Employee::key("Sales", *id));
        assert_eq!(table.get_many(keys).await.unwrap().len(), 10);
    };
    costs.way("a list of keys, and `get_many`", by_list()).await;
    let scan = async || {
        let query = table.query::<Employee>().partition("Sales");
        let found = query.filter(|e| e.last_name.eq("Jones"));
        assert_eq!(found.collect().await.unwrap().len(), 10);
    };
    costs.way("naive: a filter", scan()).await;

    costs.task("Index entities", "insert one employee more with the name");
    let new = employee(1_000);
    let insert = async || drop(table.insert(&new).await.unwrap());
    costs.way("with two indexes: `insert`", insert()).await;
    let list = async || {
        let partition = Employee::partition("Sales");
        let add = async |tx: Transaction| {
            let mut list = tx.get(Named::key("Sales", "Jones")).await?.unwrap();
            list.ids.push(2_000);
            tx.replace(list)
                .insert(&DynamicEntity::new("Sales", "plain_002000"));
            Ok(())
        };
        table.transaction(partition, add).await.unwrap();
    };
    costs
        .way("with a list of keys: `transaction`", list())
        .await;
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

async fn denormalization(costs: &mut Costs) {
    let table = costs.table("Denormalized").await;
    let department = Department {
        department: "Sales".into(),
        title: "Sales and marketing".into(),
        manager: 1,
        manager_email: String::new(),
    };
    table.insert(&department).await.unwrap();
    let manager = Manager {
        department: "Sales".into(),
        id: 1,
        email: "1@contoso.com".into(),
    };
    let mut manager = table.insert(&manager).await.unwrap();
    let get = async || table.get(Department::key("Sales")).await.unwrap().unwrap();

    costs.task(
        "Denormalization",
        "a department, and the email of its manager",
    );
    let copy = async { assert_eq!(get().await.manager_email, "1@contoso.com") };
    costs
        .way("a copy of the email in the department: `get`", copy)
        .await;
    let both = async {
        let key = Manager::key("Sales", get().await.manager);
        assert!(table.get(key).await.unwrap().is_some());
    };
    costs.way("naive: `get` both", both).await;

    costs.task(
        "Denormalization",
        "change the email of a manager who was read",
    );
    manager.email = "jones@contoso.com".into();
    let replace = async { drop(table.replace(&mut manager).await.unwrap()) };
    costs.way("with `copy`: `replace`", replace).await;
    let by_hand = async {
        let manager = DynamicEntity::new("Sales", "empid_000001").with("Email", "a@contoso.com");
        let part = DynamicEntity::new("Sales", "dept_").with("ManagerEmail", "a@contoso.com");
        table.merge_if(&manager, ETag::ANY).await.unwrap();
        table.merge_if(&part, ETag::ANY).await.unwrap();
    };
    costs.way("naive: two merges, not together", by_hand).await;
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

async fn compound_key(costs: &mut Costs) {
    let years = (2010..2020)
        .map(|year| DynamicEntity::new("Sales", format!("000223_{year}")).with("Rating", 4));
    let employee = || DynamicEntity::new("Sales", "000223").with("LastName", "Jones");
    let together = costs.table_with("Reviews", years.collect()).await;
    together.insert(&employee()).await.unwrap();
    let apart = costs.table("Employed").await;
    apart.insert(&employee()).await.unwrap();
    let reviews = (0..1_000).map(|id| {
        let review = DynamicEntity::new("Sales", format!("{id:06}"));
        review.with("Employee", id / 10).with("Rating", 4)
    });
    let reviews = costs.table_with("ReviewsById", reviews.collect()).await;

    costs.task("Compound key", "an employee and 10 yearly reviews");
    let range = async {
        let read = rows(&together, "Sales", "000223");
        assert_eq!(read.collect().await.unwrap().len(), 11);
    };
    costs
        .way("row keys of number and year: a row range", range)
        .await;
    let both = async {
        let employee = apart
            .get::<DynamicEntity>(("Sales", "000223"))
            .await
            .unwrap();
        let query = reviews.query::<DynamicEntity>().partition("Sales");
        let read = query
            .filter(|e| e.property("Employee").eq(22))
            .collect()
            .await
            .unwrap();
        assert!(employee.is_some() && read.len() == 10);
    };
    costs
        .way("naive: `get`, and a filter on 1,000 reviews", both)
        .await;
}

#[derive(Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{employee}",
    row_key = "{claimed:desc}_{number:04}"
)]
struct ExpenseClaim {
    employee: String,
    claimed: Timestamp,
    number: u32,
    cents: i64,
}

async fn log_tail(costs: &mut Costs) {
    let claimed: Timestamp = "2024-03-15T10:20:30Z".parse().unwrap();
    let claims = (0..1_000).map(|number| ExpenseClaim {
        employee: "jonesj".into(),
        claimed,
        number,
        cents: 1_250,
    });
    let table = costs.table_with("Claims", claims.collect()).await;
    costs.task("Log tail", "the 10 newest of 1,000 expense claims");
    let claims = || table.query::<ExpenseClaim>().partition("jonesj");
    let newest = async { assert_eq!(claims().take(10).collect().await.unwrap().len(), 10) };
    costs.way("`:desc` and `take(10)`", newest).await;
    let all = async { assert_eq!(claims().collect().await.unwrap().len(), 1_000) };
    costs.way("naive: read all, and sort", all).await;
}

async fn high_volume_delete(costs: &mut Costs) {
    let logins = || {
        (0..1_000)
            .map(|id| DynamicEntity::new("ann", format!("{id:04}")))
            .collect()
    };
    costs.table_with("Logins202401", logins()).await;
    costs.table("Logins202402").await;
    costs.task("High volume delete", "1,000 logins of a month");
    let months = RollingTable::new(&costs.service, "Logins", Period::Month);
    let february = "2024-02-01".parse::<Timestamp>().unwrap();
    let old = async { assert_eq!(months.drop_before(february).await.unwrap().len(), 1) };
    costs
        .way("a table for each month: `RollingTable::drop_before`", old)
        .await;
    let table = costs.table_with("Logins", logins()).await;
    let all = || table.query::<DynamicEntity>().partition("ann");
    costs
        .way("`delete_all`", async {
            drop(all().delete_all().await.unwrap());
        })
        .await;
    let table = costs.table_with("LoginsByHand", logins()).await;
    let naive = async {
        for login in table.query::<DynamicEntity>().collect().await.unwrap() {
            assert!(table.delete(login.key()).await.unwrap());
        }
    };
    costs
        .way("naive: a query, and `delete` for each", naive)
        .await;
}

async fn archive(costs: &mut Costs) {
    let employees = || -> Vec<_> {
        let ids = (0..1_000).map(|id| format!("empid_{id:06}"));
        let employees = ids.map(|id| DynamicEntity::new("Sales", id).with("LastName", "Jones"));
        employees.collect()
    };
    let archive = costs.table("FormerArchive").await;
    costs.task("The archive", "1,000 employees into another table");
    let table = costs.table_with("Former", employees()).await;
    let all = table.query::<DynamicEntity>().partition("Sales");
    costs
        .way("a query and `move_to`", async {
            let report = all.move_to(&archive).concurrency(1).await.unwrap();
            assert_eq!(report.progress().written, 1_000);
        })
        .await;
    let table = costs.table_with("FormerByHand", employees()).await;
    let archive = costs.table("FormerArchiveByHand").await;
    let naive = async {
        for employee in table.query::<DynamicEntity>().collect().await.unwrap() {
            archive.insert(&*employee).await.unwrap();
            assert!(table.delete_stored(&employee).await.unwrap());
        }
    };
    costs
        .way("naive: `insert` and `delete_stored` for each", naive)
        .await;
}

#[derive(TableEntity)]
#[table(partition_key = "{employee}", row_key = "{day}")]
struct MessageDay {
    employee: String,
    day: String,
    #[table(flatten, prefix = "H")]
    hours: Series<i32, 24>,
}

async fn data_series(costs: &mut Costs) {
    let day = |hours: std::ops::Range<usize>| MessageDay {
        employee: "ann".into(),
        day: "2024-03-15".into(),
        hours: hours.map(|hour| (hour, 42)).collect(),
    };
    let table = costs.table("Days").await;
    let hours = (0..23).map(|hour| {
        DynamicEntity::new("ann", format!("2024-03-15_{hour:02}")).with("Messages", 42)
    });
    let by_hour = costs.table_with("Hours", hours.collect()).await;
    table.insert(&day(0..23)).await.unwrap();
    costs.task(
        "Data series",
        "add the messages of the last hour, and read those of 24 hours",
    );
    let one = async {
        table.upsert_merge(&day(23..24)).await.unwrap();
        let day = table.get(MessageDay::key("ann", "2024-03-15")).await;
        assert_eq!(day.unwrap().unwrap().hours.filled().count(), 24);
    };
    costs
        .way(
            "24 properties: `upsert_merge` of a `Series`, and `get`",
            one,
        )
        .await;
    let each = async {
        let hour = DynamicEntity::new("ann", "2024-03-15_23").with("Messages", 42);
        by_hour.insert(&hour).await.unwrap();
        let day = rows(&by_hour, "ann", "2024-03-15_");
        assert_eq!(day.collect().await.unwrap().len(), 24);
    };
    costs
        .way("naive: 24 entities: `insert`, and a row range", each)
        .await;
}

async fn wide_entities(costs: &mut Costs) {
    let table = costs.table("Wide").await;
    let part = |id: u32, part: u32| {
        let mut entity = DynamicEntity::new("Sales", format!("{id:06}_{part:02}"));
        entity
            .properties_mut()
            .extend((0..200).map(|n| (format!("P{n:03}"), 42)));
        entity
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
    costs.way("`insert` and `get` of `wide`", wide).await;
    let together = async {
        table
            .batch("Sales")
            .insert(&part(1, 1))
            .insert(&part(1, 2))
            .await
            .unwrap();
        let read = rows(&table, "Sales", "000001_");
        assert_eq!(read.collect().await.unwrap().len(), 2);
    };
    costs
        .way("by hand, two entities: `batch`, and a row range", together)
        .await;
    let apart = async {
        table.insert(&part(2, 1)).await.unwrap();
        table.insert(&part(2, 2)).await.unwrap();
        let keys = [("Sales", "000002_01"), ("Sales", "000002_02")];
        let read = table.get_many::<DynamicEntity, _>(keys).await.unwrap();
        assert!(read.iter().all(Option::is_some));
    };
    costs.way("naive: one by one, not together", apart).await;
    large(costs).await;
}

async fn large(costs: &mut Costs) {
    let table = costs.table("Large").await;
    costs.task("Large entities", "write, read and delete 6 MiB");
    let property = |index| (format!("P{index:02}"), Value::Binary(vec![7; 64 * 1024]));
    let wide = async {
        let report = DynamicEntity::new("Sales", "report");
        let report = report.with_properties((0..96).map(property).collect());
        let reports = table.wide::<DynamicEntity>();
        let report = reports.insert(&report).await.unwrap();
        assert!(reports.get(("Sales", "report")).await.unwrap().is_some());
        assert!(reports.delete_stored(&report).await.unwrap());
    };
    costs.way("`wide`: readers see all or nothing", wide).await;
    let naive = async {
        let part = |part: usize| {
            let properties = (part * 15..96.min(part * 15 + 15)).map(property);
            DynamicEntity::new("Sales", format!("part_{part}"))
                .with_properties(properties.collect())
        };
        for number in 0..7 {
            table.insert(&part(number)).await.unwrap();
        }
        let parts = table.query::<DynamicEntity>().partition("Sales");
        for part in parts.collect().await.unwrap() {
            table.delete_stored(&part).await.unwrap();
        }
    };
    costs.way("naive: one by one, not together", naive).await;
}

#[derive(Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{hour}_{shard}",
    row_key = "{sensor:04}"
)]
struct Reading {
    hour: String,
    shard: Shard<16>,
    sensor: u32,
    celsius: f64,
}

async fn append(costs: &mut Costs) {
    let hour = "2024-03-15T10";
    let readings = (0..1_000).map(|sensor| Reading {
        hour: hour.into(),
        shard: Shard::of(sensor.to_string()),
        sensor,
        celsius: 18.5,
    });
    let sharded = costs.table_with("Sharded", readings.collect()).await;
    let readings = (0..1_000)
        .map(|sensor| DynamicEntity::new(hour, format!("{sensor:04}")).with("Celsius", 18.5));
    let single = costs.table_with("Unsharded", readings.collect()).await;
    costs.task(
        "Prepend and append anti-pattern",
        "read the 1,000 readings of an hour",
    );
    let all = async {
        let partitions = Shard::<16>::all().map(|shard| Reading::partition(hour, shard));
        let read = sharded.query::<Reading>().partitions(partitions);
        assert_eq!(read.collect().await.unwrap().len(), 1_000);
    };
    costs
        .way(
            "16 partitions, which take 10 times the writes, as an account does: `Shard`",
            all,
        )
        .await;
    let all = async {
        let read = single.query::<DynamicEntity>().partition(hour);
        assert_eq!(read.collect().await.unwrap().len(), 1_000);
    };
    costs
        .way(
            "naive: one partition, which takes 2,000 entities a second",
            all,
        )
        .await;
    costs.task(
        "Prepend and append anti-pattern",
        "read the first 100 readings of an hour, in order",
    );
    let page = async {
        let partitions = Shard::<16>::all().map(|shard| Reading::partition(hour, shard));
        let read = sharded.query::<Reading>().partitions(partitions).merged();
        assert_eq!(read.take(100).page(None).await.unwrap().items.len(), 100);
    };
    costs.way("16 partitions: `merged`", page).await;
    let page = async {
        let read = single.query::<DynamicEntity>().partition(hour);
        assert_eq!(read.take(100).page(None).await.unwrap().items.len(), 100);
    };
    costs.way("naive: one partition", page).await;
}
