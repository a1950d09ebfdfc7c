//! The requests and changes that `explain` foretells, beside those that the server receives.

use serde::{Deserialize, Serialize};
use tablesdk::action::{Batch, Transaction};
use tablesdk::encryption::{Keyring, LocalKey};
use tablesdk::index::CopyOf;
use tablesdk::outbox::{Message, Outbox, Received, Step};
use tablesdk::query::Explanation;
use tablesdk::{DynamicEntity, Stored, TableClient, TableEntity, Timestamp, WritableEntity};

use super::Costs;
use super::patterns::rows;

macro_rules! employees {
    ($($name:ident($($attribute:tt)*);)*) => {$(
        #[derive(Clone, TableEntity)]
        #[table(rename_all = "PascalCase", $($attribute)*)]
        #[table(partition_key = "{department}", row_key = "empid_{id:06}")]
        struct $name {
            department: String,
            id: u32,
            email: Option<String>,
        }

        impl Employed for $name {
            fn of(id: u32) -> Self {
                let (department, email) = ("Sales".to_owned(), Some(format!("{id}@contoso.com")));
                Self { department, id, email }
            }

            fn set_email(&mut self, email: Option<&str>) {
                self.email = email.map(str::to_owned);
            }
        }
    )*};
}

trait Employed: WritableEntity {
    fn of(id: u32) -> Self;
    fn set_email(&mut self, email: Option<&str>);
}

employees! {
    Plain();
    Indexed(index(OneByEmail, row_key = "email_{email}_{id}"));
    Unique(index(UniqueByEmail, row_key = "email_{email}", unique));
    Elsewhere(index(ElsewhereByEmail, partition_key = "email_{email}", row_key = "in_{department}_{id}"));
    UniqueElsewhere(index(UniqueEmail, partition_key = "emails", row_key = "is_{email}", unique));
    InTable(index(InTableByEmail, table = "{table}ByEmail", partition_key = "{email}", row_key = "{department}_{id}"));
    Several(
        index(SeveralById, row_key = "email_{email}_{id}"),
        index(SeveralUnique, row_key = "unique_{email}", unique),
        index(SeveralEmails, partition_key = "emails_of_several", row_key = "is_{email}", unique),
        index(SeveralElsewhere, partition_key = "at_{email}", row_key = "in_{department}_{id}")
    );
    Copied(copy(EmailOf));
}

/// A part of the department of a copied employee, which loses a property with her.
#[derive(TableEntity)]
#[table(
    projection,
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "dept_"
)]
struct EmailOf {
    department: String,
    email: Option<String>,
}

impl CopyOf<Copied> for EmailOf {
    fn copies_of(employee: &Copied) -> impl IntoIterator<Item = Self> {
        let (department, email) = (employee.department.clone(), employee.email.clone());
        Some(Self { department, email })
    }
}

#[derive(Clone, TableEntity)]
#[table(partition_key = "{department}", row_key = "{id:06}")]
struct Encrypted {
    department: String,
    id: u32,
    #[table(encrypt(eq))]
    email: String,
}

#[derive(Clone, TableEntity)]
#[table(partition_key = "{user}", row_key = "session_{id:06}")]
struct Session {
    user: String,
    id: u32,
    #[table(expires(bucket = "1h"))]
    until: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct Renamed {
    department: u32,
}

impl Message for Renamed {
    const NAME: &'static str = "renamed";
}

impl Costs {
    /// Sends a batch, and compares.
    fn explained(&self, what: &str, batch: Batch<'_>) {
        let explanation = batch.explain().unwrap();
        assert_eq!(explanation.more_requests(), None, "{what}: {explanation}");
        let (result, cost) = self.measure(batch);
        result.unwrap();
        assert_eq!(
            cost.requests,
            explanation.requests(),
            "{what}: {explanation}\n{}",
            self.seen()
        );
        self.check_changes(what, &explanation);
    }

    fn check_changes(&self, what: &str, explanation: &Explanation) {
        let requests = self.journal.requests();
        let batches = requests
            .iter()
            .filter(|it| matches!(it.op, Some(op) if op.is_write()));
        // That of the entities is the largest.
        let changes = batches.map(|it| it.entities.len()).max();
        assert_eq!(
            changes,
            Some(explanation.changes()),
            "{what}: {explanation}\n{}",
            self.seen()
        );
    }

    fn seen(&self) -> String {
        self.journal.requests().to_string()
    }

    /// Each change of an entity in a batch of its own, and several together.
    fn verbs<E: Employed>(&self, table: &TableClient) {
        let what = std::any::type_name::<E>();
        let batch = || table.batch("Sales");
        let read = |id: u32| -> Stored<E> {
            let key = E::of(id).entity_key().unwrap();
            let key = (key.partition_key().as_str(), key.row_key().as_str());
            self.run(table.get::<E>(key)).unwrap().unwrap()
        };
        self.explained(what, batch().insert(&E::of(1)));
        self.explained(
            what,
            batch()
                .insert(&E::of(2))
                .insert(&DynamicEntity::new("Sales", "x")),
        );
        let mut stored = read(1);
        self.explained(what, batch().replace(&mut stored));
        stored.set_email(Some("lovelace@contoso.com"));
        self.explained(what, batch().replace(&mut stored));
        self.explained(what, batch().insert(&E::of(3)).exactly_once());
        let mut without = E::of(4);
        without.set_email(None);
        self.explained(what, batch().insert(&without));
        let mut without = read(4);
        without.set_email(Some("hopper@contoso.com"));
        self.explained(what, batch().replace(&mut without));
        without.set_email(None);
        self.explained(what, batch().replace(&mut without).delete_stored(&read(3)));
        self.explained(what, batch().delete_stored(&read(2)));
        self.explained(
            what,
            batch().delete_stored(&read(1)).delete_stored(&read(4)),
        );
    }
}

fn new_costs() -> Costs {
    Costs::new("")
}

#[test]
fn batches_send_the_requests_that_they_explain_with_indexes() {
    let costs = new_costs();
    costs.table("InTableByEmail");
    costs.verbs::<Plain>(&costs.table("Plain"));
    costs.verbs::<Indexed>(&costs.table("Indexed"));
    costs.verbs::<Unique>(&costs.table("Unique"));
    costs.verbs::<Elsewhere>(&costs.table("Elsewhere"));
    costs.verbs::<UniqueElsewhere>(&costs.table("UniqueElsewhere"));
    costs.verbs::<InTable>(&costs.table("InTable"));
    costs.verbs::<Several>(&costs.table("Several"));
}

#[test]
fn batches_send_the_requests_that_they_explain_with_copies() {
    let costs = new_costs();
    let table = costs.table("Copied");
    costs.insert(&table, [DynamicEntity::new("Sales", "dept_")]);
    let batch = || table.batch("Sales");
    let mut without = Copied::of(2);
    without.email = None;
    costs.explained("copy", batch().insert(&Copied::of(1)));
    let mut stored = costs
        .run(table.get(Copied::key("Sales", 1)))
        .unwrap()
        .unwrap();
    stored.set_email(Some("lovelace@contoso.com"));
    costs.explained("copy", batch().replace(&mut stored));
    // The department is read to remove the property.
    costs.explained("copy without a value", batch().insert(&without));
}

#[test]
fn batches_send_the_requests_that_they_explain_with_steps() {
    let costs = new_costs();
    let (table, titles) = (costs.table("Divisions"), costs.table("Titles"));
    let division = |id: u32| DynamicEntity::new("Sales", format!("{id:06}"));
    let title = |id: u32| DynamicEntity::new(format!("{id:06}"), "title").with("Title", "Sales");
    let drained = || {
        let outbox = Outbox::new(&table).on(async |_: Received<Renamed>| Ok(()));
        costs.run(outbox.drain().partition("Sales")).unwrap();
    };
    let batch = |id| table.batch("Sales").insert(&division(id));
    let upsert = |id| Step::upsert_replace(&titles, &title(id));
    costs.explained("a step", batch(1).step(upsert(1)));
    costs.explained("a later step", batch(2).step(upsert(2)).leave_steps());
    drained();
    let merge = Step::upsert_merge(&titles, &title(1));
    costs.explained("two steps", batch(3).step(upsert(3)).step(merge));
    costs.explained("only steps", table.batch("Sales").step(upsert(4)));
    costs.explained("a marker", batch(4).step(upsert(5)).exactly_once());
    let unique = table.batch("Sales").insert(&Several::of(1)).step(upsert(6));
    costs.explained("an index", unique);
    let message = || Step::message(&Renamed { department: 1 });
    costs.explained("a message", batch(5).step(upsert(7)).step(message()));
    drained();

    // The least number, if what a step deletes is not there.
    let delete = |id: u32| Step::delete(&titles, (format!("{id:06}"), "title"));
    let of_missing = batch(6).step(upsert(8)).step(delete(9));
    let explanation = of_missing.explain().unwrap();
    assert_eq!(
        explanation.more_requests(),
        Some("one for each entity that a step deletes")
    );
    let (result, cost) = costs.measure(of_missing);
    result.unwrap();
    assert_eq!(
        cost.requests,
        explanation.requests(),
        "{explanation}\n{}",
        costs.seen()
    );
}

#[test]
fn batches_send_the_requests_that_they_explain_with_other_patterns() {
    let costs = new_costs();
    let keys = costs.table("Keys");
    let provider = LocalKey::new("2024-01", [7; 32]);
    let keyring = costs.run(Keyring::open(&keys, provider)).unwrap();
    let table = costs.table("Encrypted").with_encryption(keyring);
    let encrypted = |id: u32| Encrypted {
        department: "Sales".into(),
        id,
        email: "ada@contoso.com".into(),
    };
    let batch = |id| {
        table
            .batch("Sales")
            .insert(&encrypted(id))
            .insert(&encrypted(id + 1))
    };
    costs.explained("known keys", batch(1));
    costs
        .server
        .clock()
        .advance(std::time::Duration::from_secs(3600));
    costs.explained("old keys", batch(3));
    costs.explained("known keys", batch(5));

    let table = costs.table("Sessions");
    let session = Session {
        user: "ada".into(),
        id: 1,
        until: "2030-01-01".parse().unwrap(),
    };
    costs.explained("expires", table.batch("ada").insert(&session));

    let table = costs.table_with("Plain", [Plain::of(3)]);
    let set =
        |patch: tablesdk::action::PatchProperties<Plain>| patch.set(|e| e.email, "3@contoso.com");
    costs.explained(
        "a patch",
        table.batch("Sales").patch(Plain::key("Sales", 3), set),
    );
    let (commit, cost) = costs.measure(table.transaction("Sales", async |tx: Transaction| {
        assert!(tx.explain().is_err(), "nothing would be sent");
        tx.insert(&Indexed::of(1)).insert(&Plain::of(2));
        Ok(tx.explain()?)
    }));
    let explanation = commit.unwrap();
    assert_eq!((explanation.requests(), cost.requests), (1, 1));
    costs.check_changes("a transaction", &explanation);
    assert_eq!(explanation.changes(), 3);
}

#[test]
fn queries_send_the_requests_that_they_explain() {
    let costs = new_costs();
    let table = costs.table_with("Reviews", (1..=30).map(Plain::of));
    let check = |explanation: Explanation, requests: &dyn Fn(&Costs) -> usize, is_exact: bool| {
        assert_eq!(
            explanation.more_requests().is_none(),
            is_exact,
            "{explanation}"
        );
        assert_eq!(requests(&costs), explanation.requests(), "{explanation}");
    };
    let sales = || table.query::<Plain>().partition("Sales");
    let point = || sales().odata("RowKey eq 'empid_000001'");
    check(
        point().explain().unwrap(),
        &|costs| costs.cost(point().collect()).requests,
        true,
    );
    check(
        sales().explain().unwrap(),
        &|costs| costs.cost(sales().collect()).requests,
        false,
    );
    let three = || {
        table
            .query::<Plain>()
            .partitions(["Sales", "Legal", "Support"])
    };
    check(
        three().explain().unwrap(),
        &|costs| costs.cost(three().collect()).requests,
        false,
    );
    let merged = || three().merged();
    check(
        merged().explain().unwrap(),
        &|costs| costs.cost(merged().collect()).requests,
        false,
    );
    let shown = three().explain().unwrap().to_string();
    assert!(
        shown.contains("requests: at least 3, and one for each further page\n"),
        "{shown}"
    );
    let none = table
        .query::<Plain>()
        .partitions(Vec::<&str>::new())
        .explain();
    assert!(none.unwrap_err().to_string().contains("without parts"));
    let rows = rows(&table, "Sales", "empid_00000");
    assert_eq!(rows.explain().unwrap().changes(), 0);
}
