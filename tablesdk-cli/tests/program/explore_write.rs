//! Changes by the forms of `tables explore`: they are staged, reviewed, and sent only then.

use tablesdk::{DynamicEntity, ETag, ErrorCode, Stored, TableClient, TableServiceClient, Value};
use tablesdk_server::testing::{Fault, Op};

use crate::page::{Element, Page, Response, elements};
use crate::server;

async fn employees(service: &TableServiceClient) -> TableClient {
    let table = service.table("Employees");
    table.create_table().await.unwrap();
    for (partition, row, salary) in [
        ("Sales", "000145", 57_000.0),
        ("Sales", "000230", 61_000.0),
        ("IT", "000007", 74_000.0),
    ] {
        let entity = DynamicEntity::new(partition, row)
            .with("Salary", salary)
            .with("Email", format!("{row}@contoso.com"))
            .with("BadgeId", 9_007_199_254_740_993_i64);
        table.insert(&entity).await.unwrap();
    }
    table
}

async fn stored(table: &TableClient, partition: &str, row: &str) -> Stored<DynamicEntity> {
    table.get((partition, row)).await.unwrap().unwrap()
}

async fn salary(table: &TableClient, partition: &str, row: &str) -> Value {
    let entity = stored(table, partition, row).await;
    entity.properties().get("Salary").unwrap().clone()
}

fn url(partition: &str, row: &str) -> String {
    format!("/t/Employees/e?pk={partition}&rk={row}")
}

/// The fields of the form with that id, or of the only one with that action, as a browser sends
/// them: those that have a value or are ticked.
fn fields(page: &str, action: &str) -> Vec<(String, String)> {
    let all = elements(page);
    let begins = |it: &Element| it.name == "form" && it.get("action") == Some(action);
    let form = all.iter().skip_while(|it| !begins(it)).skip(1);
    let form: Vec<_> = form.take_while(|it| it.name != "/form").collect();
    assert!(!form.is_empty(), "no form {action}: {page}");
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut select: Option<String> = None;
    for element in form {
        let name = element.get("name").unwrap_or_default().to_owned();
        match &*element.name {
            "input"
                if element.get("type") == Some("checkbox") && element.get("checked").is_none() => {}
            "input" => fields.push((name, element.get("value").unwrap_or_default().to_owned())),
            // The first end of a line belongs to the page. A browser sends the others as CR and LF.
            "textarea" => {
                let text = element.text.strip_prefix('\n').unwrap_or(&element.text);
                fields.push((name, text.replace('\n', "\r\n")));
            }
            "select" => select = Some(name),
            "option" if element.get("selected").is_some() => {
                let value = element.get("value").unwrap().to_owned();
                fields.push((select.take().unwrap(), value));
            }
            _ => {}
        }
    }
    fields
}

/// Changes the value of a property of a form.
fn set(fields: &mut [(String, String)], property: &str, value: &str) {
    let at = fields
        .iter()
        .position(|(name, value)| name == "name" && value == property);
    let rest = fields.get_mut(at.unwrap()..).unwrap();
    let field = rest.iter_mut().find(|(name, _)| name == "value").unwrap();
    value.clone_into(&mut field.1);
}

fn set_type(fields: &mut [(String, String)], property: &str, edm_type: &str) {
    let at = fields
        .iter()
        .position(|(name, value)| name == "name" && value == property);
    let rest = fields.get_mut(at.unwrap()..).unwrap();
    let field = rest.iter_mut().find(|(name, _)| name == "type").unwrap();
    edm_type.clone_into(&mut field.1);
}

/// Fills in the keys of a form for a new entity.
fn set_keys(fields: &mut [(String, String)], key: &str) {
    let is_key = |it: &&mut (String, String)| matches!(&*it.0, "pk" | "rk");
    for (_, value) in fields.iter_mut().filter(is_key) {
        key.clone_into(value);
    }
}

async fn press(
    page: &Page,
    action: &str,
    fields: &[(String, String)],
    button: &[(&str, &str)],
) -> Response {
    let fields = fields.iter().map(|(name, value)| (&**name, &**value));
    let fields = fields.filter(|(name, _)| *name != "token");
    let fields: Vec<_> = fields.chain(button.iter().copied()).collect();
    page.post(action, &fields).await
}

/// Stages another salary.
async fn stage_salary(page: &Page, partition: &str, row: &str, text: &str) {
    let url = url(partition, row);
    let shown = page.get(&url).await;
    let mut fields = fields(&shown.body, &url);
    set(&mut fields, "Salary", text);
    let staged = press(page, &url, &fields, &[("action", "merge")]).await;
    assert_eq!(staged.status, 303, "{staged:?}");
    assert_eq!(staged.headers("location"), [&*url]);
}

/// Discards what the bar below a page shows.
async fn discard_all(page: &Page) {
    let shown = page.get("/").await;
    let bar = fields(&shown.body, "/review/discard");
    let discarded = press(page, "/review/discard", &bar, &[("id", "all")]).await;
    assert_eq!(discarded.status, 303, "{discarded:?}");
}

/// Sends what the review shows.
async fn send(page: &Page) -> Response {
    let review = page.get("/review").await;
    let fields = fields(&review.body, "/review/send");
    let sent = press(page, "/review/send", &fields, &[]).await;
    assert_eq!(sent.status, 303, "{sent:?}");
    page.get("/review").await
}

/// The texts of a page, joined.
fn texts(page: &str) -> String {
    let texts = elements(page).into_iter().map(|it| it.text);
    let texts: Vec<_> = texts.collect();
    texts
        .join(" ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

fn has(page: &Response, text: &str) {
    let texts = texts(&page.body);
    assert!(texts.contains(text), "no {text:?} in {texts}");
}

fn has_not(page: &Response, text: &str) {
    let texts = texts(&page.body);
    assert!(!texts.contains(text), "{text:?} in {texts}");
}

#[tokio::test]
async fn a_change_is_stored_only_after_the_review() {
    let (_server, service, account) = server().await;
    let table = employees(&service).await;
    let page = Page::open(&[], &account).await;
    stage_salary(&page, "Sales", "000145", "58500.0").await;
    assert_eq!(salary(&table, "Sales", "000145").await, 57_000.0.into());

    let grid = page.get("/t/Employees?pk=Sales").await;
    has(&grid, "1 staged change");
    let marked = elements(&grid.body).into_iter();
    let marked: Vec<_> = marked
        .filter(|it| it.name == "td" && it.get("class").is_some_and(|it| it.contains("staged")))
        .map(|it| it.text)
        .collect();
    assert_eq!(marked, ["58500.0"]);

    let etag = stored(&table, "Sales", "000145").await.etag().clone();
    let review = page.get("/review").await;
    has(
        &review,
        "MERGE Employees(PartitionKey='Sales',RowKey='000145')",
    );
    has(&review, &format!("If-Match: {}", etag.as_str()));
    has(
        &review,
        r#"{"PartitionKey":"Sales","RowKey":"000145","Salary@odata.type":"Edm.Double","Salary":58500.0}"#,
    );
    let sent = send(&page).await;
    has(&sent, "1 of 1 stored");
    let entity = stored(&table, "Sales", "000145").await;
    assert_eq!(entity.properties().get("Salary"), Some(&58_500.0.into()));
    assert_eq!(
        entity.properties().read::<i64>("BadgeId").unwrap(),
        9_007_199_254_740_993
    );
    has_not(&page.get("/t/Employees?pk=Sales").await, "staged change");
}

#[tokio::test]
async fn changes_of_a_partition_are_one_transaction_and_a_conflict_stops_only_its_own() {
    let (_server, service, account) = server().await;
    let table = employees(&service).await;
    let page = Page::open(&[], &account).await;
    stage_salary(&page, "Sales", "000145", "58500.0").await;
    let shown = page.get(&url("Sales", "000230")).await;
    let delete = fields(&shown.body, &url("Sales", "000230"));
    press(
        &page,
        &url("Sales", "000230"),
        &delete,
        &[("action", "delete")],
    )
    .await;
    stage_salary(&page, "IT", "000007", "75500.0").await;
    // Meanwhile, another client.
    let other = DynamicEntity::new("IT", "000007").with("Email", "grace.h@contoso.com");
    table.upsert_merge(&other).await.unwrap();

    let review = page.get("/review").await;
    has(
        &review,
        "Transaction 1 of 2 · Employees · partition Sales · 2 changes, one request",
    );
    has(
        &review,
        "Request 2 of 2 · Employees · partition IT · 1 change",
    );
    let sent = send(&page).await;
    has(&sent, "2 of 3 stored");
    has(
        &sent,
        "sent Transaction · Employees · partition Sales · 2 changes",
    );
    has(
        &sent,
        "partly sent: one request was carried out, one met another version",
    );
    has(&sent, "changed since");
    has(&sent, "Stage Salary on the stored version");
    assert_eq!(
        table
            .get::<DynamicEntity>(("Sales", "000230"))
            .await
            .unwrap(),
        None
    );
    assert_eq!(salary(&table, "IT", "000007").await, 74_000.0.into());

    // What I changed, on the stored version.
    let resolve = fields(&sent.body, "/review/resolve");
    let resolved = press(&page, "/review/resolve", &resolve, &[("how", "apply")]).await;
    assert_eq!(resolved.status, 303, "{resolved:?}");
    let review = page.get("/review").await;
    has(&review, r#""Salary":75500.0}"#);
    has(&review, "Salary: 74000.0 → 75500.0");
    has_not(&review, "Timestamp");
    // What was sent is below the plan, and the rest is no longer so.
    has_not(&review, "of 3 stored");
    has(
        &review,
        "Send 1 change sent Transaction · Employees · partition Sales · 2 changes",
    );
    // The history keeps what was sent, without keys and values.
    let history = page.get("/history").await;
    has(&history, "Employees: 1 delete, 2 merges");
    has(
        &history,
        "2 of 3 stored, partly sent: one request was carried out, one met another version",
    );
    has_not(&history, "75500");
    has_not(&review, "met another version");
    has(&send(&page).await, "1 of 1 stored");
    let grace = stored(&table, "IT", "000007").await;
    assert_eq!(grace.properties().get("Salary"), Some(&75_500.0.into()));
    assert_eq!(
        grace.properties().read::<String>("Email").unwrap(),
        "grace.h@contoso.com"
    );
}

#[tokio::test]
async fn a_conflict_is_resolved_for_the_stored_version_or_for_all_of_mine() {
    let (_server, service, account) = server().await;
    let table = employees(&service).await;
    let page = Page::open(&[], &account).await;
    for (how, email, salary) in [
        ("keep", "other@contoso.com", 57_000.0),
        ("replace", "000145@contoso.com", 58_500.0),
    ] {
        let original = DynamicEntity::new("Sales", "000145")
            .with("Salary", 57_000.0)
            .with("Email", "000145@contoso.com");
        table.upsert_replace(&original).await.unwrap();
        stage_salary(&page, "Sales", "000145", "58500.0").await;
        let other = DynamicEntity::new("Sales", "000145").with("Email", "other@contoso.com");
        table.upsert_merge(&other).await.unwrap();
        let sent = send(&page).await;
        has(&sent, "0 of 1 stored");
        let resolve = fields(&sent.body, "/review/resolve");
        press(&page, "/review/resolve", &resolve, &[("how", how)]).await;
        has_not(&page.get("/review").await, "of 1 sent");
        if how == "replace" {
            has(&page.get("/review").await, "PUT Employees(");
            has(&send(&page).await, "1 of 1 stored");
        }
        let entity = stored(&table, "Sales", "000145").await;
        assert_eq!(
            entity.properties().read::<String>("Email").unwrap(),
            email,
            "{how}"
        );
        assert_eq!(
            entity.properties().get("Salary"),
            Some(&salary.into()),
            "{how}"
        );
    }
    has(&page.get("/review").await, "1 of 1 stored");
}

#[tokio::test]
async fn a_form_that_is_sent_twice_writes_once() {
    let (_server, service, account) = server().await;
    let table = employees(&service).await;
    let page = Page::open(&[], &account).await;
    let new = "/t/Employees/new";
    let mut insert = fields(&page.get(new).await.body, new);
    for (name, value) in &mut insert {
        match &**name {
            "pk" => "IT".clone_into(value),
            "rk" => "000099".clone_into(value),
            _ => {}
        }
    }
    assert_eq!(
        press(&page, new, &insert, &[("action", "insert")])
            .await
            .status,
        303
    );
    let review = page.get("/review").await;
    let plan = fields(&review.body, "/review/send");
    // Another tab stages a change meanwhile: what is sent is not what was seen.
    stage_salary(&page, "Sales", "000145", "58500.0").await;
    let refused = press(&page, "/review/send", &plan, &[]).await;
    assert_eq!(refused.status, 409);
    has(&refused, "The staged changes are not those that were shown");
    assert_eq!(
        table.get::<DynamicEntity>(("IT", "000099")).await.unwrap(),
        None
    );

    let plan = fields(&page.get("/review").await.body, "/review/send");
    assert_eq!(press(&page, "/review/send", &plan, &[]).await.status, 303);
    table.delete(("IT", "000099")).await.unwrap();
    assert_eq!(press(&page, "/review/send", &plan, &[]).await.status, 409);
    assert_eq!(
        table.get::<DynamicEntity>(("IT", "000099")).await.unwrap(),
        None
    );
}

#[tokio::test]
async fn a_transaction_with_one_change_that_fails_stores_nothing() {
    let (_server, service, account) = server().await;
    let table = employees(&service).await;
    let page = Page::open(&[], &account).await;
    for row in 0..4 {
        let new = "/t/Employees/new";
        let entity = format!(r#"{{"PartitionKey":"Sales","RowKey":"0009{row:02}","Salary":1.5}}"#);
        let insert = [("view", "json"), ("json", &*entity)];
        assert_eq!(page.post(new, &insert).await.status, 303);
    }
    stage_salary(&page, "Sales", "000145", "1.0").await;
    table.delete(("Sales", "000145")).await.unwrap();
    let sent = send(&page).await;
    has(&sent, "0 of 5 stored");
    has(&sent, "nothing was stored: one met another version");
    has(
        &sent,
        "another client deleted it · nothing of yours was stored",
    );
    has(&sent, "Leave it deleted");
    let inserted = table
        .get::<DynamicEntity>(("Sales", "000900"))
        .await
        .unwrap();
    assert_eq!(inserted, None);
    let resolve = fields(&sent.body, "/review/resolve");
    press(&page, "/review/resolve", &resolve, &[("how", "keep")]).await;
    has(&send(&page).await, "4 of 4 stored");
    assert_eq!(salary(&table, "Sales", "000903").await, 1.5.into());
}

#[tokio::test]
async fn what_is_wrong_is_said_at_its_property_and_nothing_is_staged() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    let page = Page::open(&[], &account).await;
    let url = url("Sales", "000145");
    let mut form = fields(&page.get(&url).await.body, &url);
    set(&mut form, "BadgeId", "9223372036854775808");
    set(&mut form, "Email", "<b>kept as typed</b>");
    let refused = press(&page, &url, &form, &[("action", "merge")]).await;
    assert_eq!(refused.status, 422);
    has(
        &refused,
        "\"9223372036854775808\" is no Edm.Int64, which is an integer from",
    );
    let again = fields(&refused.body, &url);
    let typed = |text: &str| again.iter().any(|(_, value)| value == text);
    assert!(
        typed("9223372036854775808") && typed("<b>kept as typed</b>"),
        "{again:?}"
    );
    let unchanged = fields(&page.get(&url).await.body, &url);
    let refused = press(&page, &url, &unchanged, &[("action", "merge")]).await;
    has(&refused, "Nothing differs from the version that was read.");
    has(&page.get("/review").await, "Nothing is staged.");
}

#[tokio::test]
async fn a_removed_property_makes_a_replace_and_a_value_of_another_type_a_merge() {
    let (_server, service, account) = server().await;
    let table = employees(&service).await;
    let page = Page::open(&[], &account).await;
    let url = url("Sales", "000145");
    let mut form = fields(&page.get(&url).await.body, &url);
    set_type(&mut form, "BadgeId", "Edm.String");
    press(&page, &url, &form, &[("action", "merge")]).await;
    has(&page.get("/review").await, "MERGE Employees(");
    let mut form = fields(&page.get(&url).await.body, &url);
    set_type(&mut form, "Email", "absent");
    press(&page, &url, &form, &[("action", "merge")]).await;
    has(&page.get(&url).await, "A merge cannot remove a property");
    let review = page.get("/review").await;
    has(&review, "PUT Employees(");
    has(&review, "Email: 000145@contoso.com → absent");
    send(&page).await;
    let entity = stored(&table, "Sales", "000145").await;
    let expected = DynamicEntity::new("Sales", "000145")
        .with("Salary", 57_000.0)
        .with("BadgeId", "9007199254740993");
    assert_eq!(entity.properties(), expected.properties());
}

#[tokio::test]
async fn values_that_a_form_cannot_hold_come_back_to_the_bit() {
    let (_server, service, account) = server().await;
    let table = employees(&service).await;
    let entity = DynamicEntity::new("Odd", "1")
        .with("Long", "x\n".repeat(8000))
        .with("Acts", "a\u{202e}\r\n\u{0}b")
        .with("Lines", "\n first\n second\n")
        .with("Nan", f64::NAN)
        .with("Low", f64::NEG_INFINITY)
        .with("Photo", vec![7_u8; 60_000])
        .with("Count", 1);
    table.insert(&entity).await.unwrap();
    let page = Page::open(&[], &account).await;
    let url = url("Odd", "1");
    let mut form = fields(&page.get(&url).await.body, &url);
    set(&mut form, "Count", "2");
    press(&page, &url, &form, &[("action", "merge")]).await;
    let review = page.get("/review").await;
    has(&review, r#"{"PartitionKey":"Odd","RowKey":"1","Count":2}"#);
    // The same by its JSON.
    let json = format!("{url}&view=json");
    let form = fields(&page.get(&json).await.body, &url);
    let form: Vec<_> = form
        .into_iter()
        .map(|(name, value)| match &*name {
            "json" => (name, value.replace("\"Count\":2", "\"Count\":3")),
            _ => (name, value),
        })
        .collect();
    press(&page, &url, &form, &[("action", "replace")]).await;
    has(&page.get("/review").await, "PUT Employees(");
    has(&send(&page).await, "1 of 1 stored");
    let stored = stored(&table, "Odd", "1").await;
    for name in ["Long", "Acts", "Lines", "Photo", "Low"] {
        assert_eq!(
            stored.properties().get(name),
            entity.properties().get(name),
            "{name}"
        );
    }
    assert!(stored.properties().read::<f64>("Nan").unwrap().is_nan());
    assert_eq!(stored.properties().read::<i32>("Count").unwrap(), 3);
}

#[tokio::test]
async fn selected_rows_are_deleted_unless_they_changed() {
    let (_server, service, account) = server().await;
    let table = employees(&service).await;
    let page = Page::open(&[], &account).await;
    let grid = page.get("/t/Employees").await;
    let rows = elements(&grid.body).into_iter();
    let rows = rows.filter(|it| it.get("name") == Some("key") && it.get("form") == Some("picked"));
    let rows: Vec<_> = rows.map(|it| it.get("value").unwrap().to_owned()).collect();
    assert_eq!(rows.len(), 3);
    let rows: Vec<_> = rows.iter().map(|row| ("key", &**row)).collect();
    let staged = page.post("/t/Employees/delete", &rows).await;
    assert_eq!(staged.status, 303, "{staged:?}");
    let other = DynamicEntity::new("IT", "000007").with("Salary", 1.0);
    table.upsert_merge(&other).await.unwrap();
    let sent = send(&page).await;
    has(&sent, "2 of 3 stored");
    has(&sent, "Stage delete of the stored version");
    let left = table.query::<DynamicEntity>().count().await.unwrap();
    assert_eq!(left, 1);
    let none = page.post("/t/Employees/delete", &[]).await;
    assert_eq!(none.status, 422);
    has(&none, "No row is selected.");
    let forged = page
        .post("/t/Employees/delete", &[("key", r#"["a","b","*"]"#)])
        .await;
    assert_eq!(forged.status, 422);
}

#[tokio::test]
async fn deletes_of_rows_take_the_place_of_a_staged_change_only_after_a_question() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    let page = Page::open(&[], &account).await;
    let grid = page.get("/t/Employees?pk=Sales").await;
    let rows = elements(&grid.body).into_iter();
    let rows = rows.filter(|it| it.get("name") == Some("key"));
    let rows: Vec<_> = rows.map(|it| it.get("value").unwrap().to_owned()).collect();
    let rows: Vec<_> = rows.iter().map(|row| ("key", &**row)).collect();
    stage_salary(&page, "Sales", "000145", "58500.0").await;
    let deletes = "/t/Employees/delete";
    let asked = page.post(deletes, &rows).await;
    assert_eq!(asked.status, 422);
    has(&asked, "The merge of (\"Sales\", \"000145\")");
    has(&asked, "Stage 2 deletes anyway");
    let question = fields(&asked.body, deletes);
    let review = page.get("/review").await;
    has(&review, "58500.0");
    has_not(&review, "DELETE");
    // The change that the question has shown is another one now.
    stage_salary(&page, "Sales", "000145", "59000.0").await;
    let asked = press(&page, deletes, &question, &[]).await;
    assert_eq!(asked.status, 422);
    has(&page.get("/review").await, "59000.0");
    let question = fields(&asked.body, deletes);
    let staged = press(&page, deletes, &question, &[]).await;
    assert_eq!(staged.status, 303, "{staged:?}");
    let review = page.get("/review").await;
    has(&review, "2 deletes — sent as one transaction");
    has_not(&review, "MERGE");
}

#[cfg(unix)]
#[tokio::test]
async fn the_end_of_the_program_says_how_many_staged_changes_are_lost() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    let page = Page::open(&[], &account).await;
    stage_salary(&page, "Sales", "000145", "1.0").await;
    stage_salary(&page, "IT", "000007", "2.0").await;
    let (code, said) = page.interrupt();
    assert_eq!(code, Some(130), "{said}");
    assert!(
        said.ends_with("lost without being sent: 2 staged changes\n"),
        "{said}"
    );
    let (code, said) = Page::open(&[], &account).await.interrupt();
    assert_eq!(code, Some(130), "{said}");
    assert!(!said.contains("lost"), "{said}");
}

#[tokio::test]
async fn a_clone_is_a_new_entity_under_other_keys() {
    let (_server, service, account) = server().await;
    let table = employees(&service).await;
    let page = Page::open(&[], &account).await;
    let clone = page.get("/t/Employees/new?pk=Sales&rk=000145").await;
    let mut form = fields(&clone.body, "/t/Employees/new");
    for (name, value) in &mut form {
        if name == "rk" {
            "000146".clone_into(value);
        }
    }
    let staged = press(&page, "/t/Employees/new", &form, &[("action", "insert")]).await;
    assert_eq!(staged.headers("location"), [&*url("Sales", "000146")]);
    let shown = page.get(&url("Sales", "000146")).await;
    has(&shown, "staged insert");
    has(
        &shown,
        "1 insert — sent as one request, if no entity has its keys",
    );
    has(&send(&page).await, "1 of 1 stored");
    let [original, copy] = [
        stored(&table, "Sales", "000145").await,
        stored(&table, "Sales", "000146").await,
    ];
    assert_eq!(original.properties(), copy.properties());
}

#[tokio::test]
async fn an_insert_that_meets_an_entity_is_written_nowhere_without_a_decision() {
    let (_server, service, account) = server().await;
    let table = employees(&service).await;
    let page = Page::open(&[], &account).await;
    let new = "/t/Employees/new";
    let json = r#"{"PartitionKey":"IT","RowKey":"000007","Salary":1.5,"Note":"mine"}"#;
    let insert = [("view", "json"), ("json", json)];
    let met = async || {
        assert_eq!(page.post(new, &insert).await.status, 303);
        let sent = send(&page).await;
        has(&sent, "already exists");
        has(&sent, "nothing was stored: one met an entity with its keys");
        has(
            &sent,
            "an entity with these keys exists · nothing of yours was stored",
        );
        has_not(&sent, "changed since");
        sent
    };
    let decide = async |sent: &Response, how| {
        let resolve = fields(&sent.body, "/review/resolve");
        let resolved = press(&page, "/review/resolve", &resolve, &[("how", how)]).await;
        assert_eq!(resolved.status, 303, "{resolved:?}");
        page.get("/review").await
    };
    let etag = stored(&table, "IT", "000007").await.etag().clone();
    has_not(&decide(&met().await, "keep").await, "to send");
    for (how, request) in [("apply", "MERGE Employees("), ("replace", "PUT Employees(")] {
        let review = decide(&met().await, how).await;
        has(&review, request);
        has(&review, &format!("If-Match: {}", etag.as_str()));
        discard_all(&page).await;
    }
    // Under other keys.
    let sent = met().await;
    let links = elements(&sent.body).into_iter();
    let link = links.filter(|it| it.name == "a" && it.text == "Change the keys");
    let link = link.map(|it| it.get("href").unwrap().to_owned()).next();
    let shown = page.get(&link.unwrap()).await;
    let mut form = fields(&shown.body, new);
    assert!(form.iter().all(|(_, value)| value != "BadgeId"), "{form:?}");
    set_keys(&mut form, "000008");
    assert_eq!(
        press(&page, new, &form, &[("action", "insert")])
            .await
            .status,
        303
    );
    has(&send(&page).await, "1 of 1 stored");
    assert_eq!(*stored(&table, "IT", "000007").await.etag(), etag);
    assert_eq!(salary(&table, "000008", "000008").await, 1.5.into());
}

#[tokio::test]
async fn what_the_library_keeps_is_written_only_with_the_switch() {
    let (_server, service, account) = server().await;
    let table = employees(&service).await;
    let entry = DynamicEntity::new("Sales", "email_ada@contoso.com")
        .with("TablesdkIndex", "Employee.ByEmail")
        .with("Count", 1);
    table.insert(&entry).await.unwrap();
    let page = Page::open(&[], &account).await;
    let url = "/t/Employees/e?pk=Sales&rk=email%5Fada%40contoso.com";
    let shown = page.get(url).await;
    has(&shown, "kept by the library");
    has(&shown, "an entry of the index Employee.ByEmail");
    let action = elements(&shown.body)
        .into_iter()
        .find(|it| it.get("id") == Some("entity"))
        .unwrap();
    let action = action.get("action").unwrap();
    let mut form = fields(&shown.body, action);
    set(&mut form, "Count", "2");
    let refused = press(&page, action, &form, &[("action", "merge")]).await;
    assert_eq!(refused.status, 422);
    has(
        &refused,
        "nothing is staged. To write it anyway, tick the box; then run `table.repair::<Employee>()`",
    );
    // An employee of the table leaves its entry stale.
    let of_ken = self::url("Sales", "000145");
    let mut ken = fields(&page.get(&of_ken).await.body, &of_ken);
    set(&mut ken, "Salary", "1.0");
    let refused = press(&page, &of_ken, &ken, &[("action", "merge")]).await;
    has(
        &refused,
        "Employees contains an entry of the index Employee.ByEmail, which this write leaves as it is",
    );

    let forced = press(&page, action, &form, &[("action", "merge"), ("force", "1")]).await;
    assert_eq!(forced.status, 303, "{forced:?}");
    let sent = send(&page).await;
    has(&sent, "Now run `table.repair::<Employee>()`.");
    let stored: Option<Stored<DynamicEntity>> =
        table.get(("Sales", "email_ada@contoso.com")).await.unwrap();
    assert_eq!(
        stored.unwrap().properties().read::<i32>("Count").unwrap(),
        2
    );

    let grid = page.get("/t/Employees?rk=email_*&pk=Sales").await;
    let mut row = elements(&grid.body).into_iter();
    let row = row.find(|it| it.get("name") == Some("key")).unwrap();
    let row = row.get("value").unwrap();
    let asked = page.post("/t/Employees/delete", &[("key", row)]).await;
    assert_eq!(asked.status, 422);
    has(
        &asked,
        "Nothing is staged: other entities would become stale.",
    );
    let forced = page
        .post("/t/Employees/delete", &[("key", row), ("force", "1")])
        .await;
    assert_eq!(forced.status, 303, "{forced:?}");
}

#[tokio::test]
async fn a_staged_change_is_changed_again_and_withdrawn() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    let page = Page::open(&[], &account).await;
    stage_salary(&page, "Sales", "000145", "58500.0").await;
    stage_salary(&page, "Sales", "000145", "59000.0").await;
    has(&page.get("/review").await, "\"Salary\":59000.0");
    has(&page.get("/review").await, "Salary: 57000.0 → 59000.0");
    has(&page.get("/t/Employees").await, "1 staged change");
    // Back to what is stored.
    stage_salary(&page, "Sales", "000145", "57000").await;
    has(&page.get("/review").await, "Nothing is staged.");
    stage_salary(&page, "Sales", "000145", "1.0").await;
    stage_salary(&page, "IT", "000007", "2.0").await;
    let review = page.get("/review").await;
    let one = fields(&review.body, "/review/discard");
    let mut id = elements(&review.body).into_iter();
    let id = id.find(|it| it.get("name") == Some("id")).unwrap();
    let id = id.get("value").unwrap().to_owned();
    press(&page, "/review/discard", &one, &[("id", &id)]).await;
    has_not(&page.get("/review").await, "RowKey='000145'");
    discard_all(&page).await;
    has(&page.get("/review").await, "Nothing is staged.");
    has(&page.get("/").await, "2 changes were discarded.");
    let restored = page.post("/review/restore", &[]).await;
    assert_eq!(restored.status, 303);
    let review = page.get("/review").await;
    has(&review, "RowKey='000145'");
    has(&review, "RowKey='000007'");
    has_not(&review, "discarded");
    discard_all(&page).await;
    let forgotten = [("what", "discarded")];
    assert_eq!(page.post("/review/dismiss", &forgotten).await.status, 303);
    has_not(&page.get("/review").await, "discarded");
    let gone = page.post("/review/discard", &[("id", &id)]).await;
    assert_eq!(gone.status, 409);
}

#[tokio::test]
async fn to_discard_all_removes_no_change_that_was_staged_since() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    let page = Page::open(&[], &account).await;
    stage_salary(&page, "Sales", "000145", "1.0").await;
    let old = page.get("/t/Employees").await;
    stage_salary(&page, "IT", "000007", "2.0").await;
    let bar = fields(&old.body, "/review/discard");
    let refused = press(&page, "/review/discard", &bar, &[("id", "all")]).await;
    assert_eq!(refused.status, 409);
    has(&refused, "not those that were shown");
    for row in ["000145", "000007"] {
        has(&refused, &format!("RowKey='{row}'"));
    }
    let reviewed = fields(&refused.body, "/review/send");
    let discarded = press(&page, "/review/discard", &reviewed, &[("id", "all")]).await;
    assert_eq!(discarded.status, 303);
    has(&page.get("/review").await, "Nothing is staged.");
}

#[tokio::test]
async fn a_table_that_does_not_answer_keeps_no_change_of_another_one() {
    let (server, service, account) = server().await;
    employees(&service).await;
    service.table("Silent").create_table().await.unwrap();
    let page = Page::open(&[], &account).await;
    let rule = server.faults().on(Op::QueryEntities).table("Silent");
    let silence = rule.inject(Fault::no_response());
    let json = r#"{"PartitionKey":"a","RowKey":"b"}"#;
    let fields = [("view", "json"), ("json", json), ("action", "insert")];
    let asked = async {
        while silence.hits() == 0 {
            tokio::task::yield_now().await;
        }
        stage_salary(&page, "Sales", "000145", "58500.0").await;
    };
    tokio::select! {
        biased;
        () = asked => {}
        answer = page.post("/t/Silent/new", &fields) => panic!("{answer:?}"),
    }
}

#[tokio::test]
async fn conflicts_of_large_entities_are_shown_as_far_as_memory_has_room() {
    let (_server, service, account) = server().await;
    let table = service.table("Large");
    table.create_table().await.unwrap();
    let etag = "W/\"datetime'2001-01-01T00%3A00%3A00Z'\"";
    let mut rows = Vec::new();
    for partition in 0..28 {
        let mut large = DynamicEntity::new(partition.to_string(), "1");
        for part in 0..15 {
            let bytes = vec![0_u8; 64 << 10];
            large.properties_mut().set(format!("Part{part}"), bytes);
        }
        table.insert(&large).await.unwrap();
        rows.push(serde_json::json!([partition.to_string(), "1", etag]).to_string());
    }
    let page = Page::open(&[], &account).await;
    let rows: Vec<_> = rows.iter().map(|row| ("key", &**row)).collect();
    let staged = page.post("/t/Large/delete", &rows).await;
    assert_eq!(staged.status, 303, "{}", texts(&staged.body));
    let sent = send(&page).await;
    has(&sent, "0 of 28 stored");
    has(&sent, "met another version");
    has(&sent, "not sent");
}

#[tokio::test]
async fn read_only_pages_have_no_controls_and_refuse_each_form() {
    let (_server, service, account) = server().await;
    let table = employees(&service).await;
    let etag: ETag = stored(&table, "Sales", "000145").await.etag().clone();
    let page = Page::open(&["--read-only"], &account).await;
    let shown = page.get(&url("Sales", "000145")).await;
    has(&shown, "read only");
    has(&shown, "the page was started with --read-only");
    for page in [
        &shown,
        &page.get("/t/Employees").await,
        &page.get("/review").await,
    ] {
        for control in ["Stage", "Clone", "New entity", "Send"] {
            has_not(page, control);
        }
    }
    assert_eq!(page.get("/t/Employees/new").await.status, 403);
    let base = format!(
        r#"{{"odata.etag":{},"PartitionKey":"Sales","RowKey":"000145"}}"#,
        serde_json::Value::from(etag.as_str())
    );
    let edit = [
        ("pk", "Sales"),
        ("rk", "000145"),
        ("base", &*base),
        ("action", "delete"),
    ];
    for (action, fields) in [
        (&*url("Sales", "000145"), &edit[..]),
        (
            "/t/Employees/new",
            &[
                ("view", "json"),
                ("json", r#"{"PartitionKey":"a","RowKey":"b"}"#),
            ],
        ),
        ("/t/Employees/delete", &[]),
        ("/review/send", &[("plan", "0")]),
        ("/review/discard", &[("id", "all")]),
        ("/review/resolve", &[("id", "0"), ("how", "apply")]),
        ("/review/restore", &[]),
        ("/review/dismiss", &[]),
    ] {
        let refused = page.post(action, fields).await;
        assert_eq!(refused.status, 403, "{action}");
        has(&refused, "Nothing is changed: the page is read only.");
    }
}

#[tokio::test]
async fn nothing_is_sent_after_an_outcome_that_is_unknown() {
    let (server, service, account) = server().await;
    let table = employees(&service).await;
    let page = Page::open(&[], &account).await;
    stage_salary(&page, "Sales", "000145", "58500.0").await;
    stage_salary(&page, "IT", "000007", "75500.0").await;
    let rule = server.faults().on(Op::MergeEntity).partition_key("Sales");
    rule.inject(Fault::lost_response());
    let sent = send(&page).await;
    has(&sent, "0 of 2 stored");
    has(&sent, "one has an unknown outcome, one was not sent");
    has(&sent, "outcome unknown");
    has(&sent, "what is stored now is what you sent");
    has_not(&sent, "Stage it again");
    assert_eq!(salary(&table, "IT", "000007").await, 74_000.0.into());
    server.faults().clear();
    let resolve = fields(&sent.body, "/review/resolve");
    press(&page, "/review/resolve", &resolve, &[("how", "keep")]).await;
    has(&send(&page).await, "1 of 1 stored");
    assert_eq!(salary(&table, "Sales", "000145").await, 58_500.0.into());
}

#[tokio::test]
async fn a_change_that_may_have_been_lost_is_sent_again_and_carried_out_once() {
    let (server, service, account) = server().await;
    let table = employees(&service).await;
    let page = Page::open(&[], &account).await;
    stage_salary(&page, "Sales", "000145", "58500.0").await;
    server.faults().on(Op::MergeEntity).inject(Fault::reset());
    let sent = send(&page).await;
    has(
        &sent,
        "not known what is stored: one has an unknown outcome",
    );
    has(&sent, "what is stored now is not what you sent");
    server.faults().clear();
    let resolve = fields(&sent.body, "/review/resolve");
    press(&page, "/review/resolve", &resolve, &[("how", "again")]).await;
    has(&send(&page).await, "1 of 1 stored");
    assert_eq!(salary(&table, "Sales", "000145").await, 58_500.0.into());
}

#[tokio::test]
async fn a_busy_service_leaves_all_changes_staged() {
    let (server, service, account) = server().await;
    let table = employees(&service).await;
    let page = Page::open(&[], &account).await;
    stage_salary(&page, "Sales", "000145", "58500.0").await;
    stage_salary(&page, "IT", "000007", "75500.0").await;
    let busy = Fault::error(ErrorCode::ServerBusy);
    server.faults().on(Op::MergeEntity).inject(busy);
    let sent = send(&page).await;
    has(
        &sent,
        "nothing was stored: one was refused, one was not sent",
    );
    has(&sent, "503 ServerBusy");
    has(&sent, "Send 2 changes");
    server.faults().clear();
    has(&send(&page).await, "2 of 2 stored");
    assert_eq!(salary(&table, "IT", "000007").await, 75_500.0.into());
}

/// The types that a form offers for a property.
fn types_of(page: &str, property: &str) -> Vec<String> {
    let all = elements(page).into_iter();
    let begins = |it: &Element| it.get("name") == Some("name") && it.get("value") == Some(property);
    let select = all.skip_while(|it| !begins(it)).skip(2);
    let options = select.take_while(|it| it.name != "/select");
    let options = options.filter(|it| it.name == "option");
    options
        .map(|it| it.get("value").unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_value_that_a_form_cannot_hold_stays_or_goes_and_becomes_no_other() {
    let (_server, service, account) = server().await;
    let table = employees(&service).await;
    let entity = DynamicEntity::new("Odd", "1").with("Long", "x".repeat(9000));
    table.insert(&entity).await.unwrap();
    let page = Page::open(&[], &account).await;
    let url = url("Odd", "1");
    let shown = page.get(&url).await;
    assert_eq!(types_of(&shown.body, "Long"), ["unchanged", "absent"]);
    let mut form = fields(&shown.body, &url);
    set_type(&mut form, "Long", "absent");
    press(&page, &url, &form, &[("action", "merge")]).await;
    // The way back from a removal is to the value, and not to an empty text.
    let shown = page.get(&url).await;
    has(&shown, "staged replace");
    assert_eq!(types_of(&shown.body, "Long"), ["unchanged", "absent"]);
    let mut form = fields(&shown.body, &url);
    set_type(&mut form, "Long", "unchanged");
    press(&page, &url, &form, &[("action", "merge")]).await;
    has(&page.get("/review").await, "Nothing is staged.");
}

#[tokio::test]
async fn a_form_takes_the_place_of_no_change_that_it_has_not_shown() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    let page = Page::open(&[], &account).await;
    let url = url("Sales", "000145");
    let earlier = fields(&page.get(&url).await.body, &url);
    stage_salary(&page, "Sales", "000145", "58500.0").await;
    let mut other = earlier.clone();
    set(&mut other, "Email", "other@contoso.com");
    for form in [&earlier, &other] {
        let refused = press(&page, &url, form, &[("action", "merge")]).await;
        assert_eq!(refused.status, 422);
        has(&refused, "another form has staged a change of this entity");
        has(&page.get("/review").await, "\"Salary\":58500.0");
    }
    // The form that says so knows of the change.
    let refused = press(&page, &url, &other, &[("action", "merge")]).await;
    let again = fields(&refused.body, &url);
    let staged = press(&page, &url, &again, &[("action", "merge")]).await;
    assert_eq!(staged.status, 303);
    let review = page.get("/review").await;
    has(&review, "other@contoso.com");
    has_not(&review, "58500.0");
}

#[tokio::test]
async fn a_staged_insert_under_other_keys_is_still_one_insert() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    let page = Page::open(&[], &account).await;
    let new = "/t/Employees/new";
    let mut form = fields(&page.get(new).await.body, new);
    for key in ["Mistyped", "Sales2"] {
        set_keys(&mut form, key);
        press(&page, new, &form, &[("action", "insert")]).await;
        form = fields(&page.get(&url(key, key)).await.body, new);
    }
    let review = page.get("/review").await;
    has(&review, r#"{"PartitionKey":"Sales2","RowKey":"Sales2"}"#);
    has_not(&review, "Mistyped");
}

#[tokio::test]
async fn a_staged_insert_whose_form_was_refused_is_still_one_insert() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    let page = Page::open(&[], &account).await;
    let new = "/t/Employees/new";
    let mut form = fields(&page.get(new).await.body, new);
    set_keys(&mut form, "Mistyped");
    press(&page, new, &form, &[("action", "insert")]).await;
    let mut form = fields(&page.get(&url("Mistyped", "Mistyped")).await.body, new);
    set_keys(&mut form, "Sales2");
    let wrong = [
        ("name", "Age"),
        ("type", "Edm.Int32"),
        ("value", "old"),
        ("action", "insert"),
    ];
    let refused = press(&page, new, &form, &wrong).await;
    assert_eq!(refused.status, 422);
    let mut form = fields(&refused.body, new);
    set(&mut form, "Age", "36");
    let staged = press(&page, new, &form, &[("action", "insert")]).await;
    assert_eq!(staged.status, 303, "{staged:?}");
    let review = page.get("/review").await;
    has(
        &review,
        r#"{"PartitionKey":"Sales2","RowKey":"Sales2","Age":36}"#,
    );
    has_not(&review, "Mistyped");
}

#[tokio::test]
async fn the_json_of_a_new_entity_takes_the_place_of_a_staged_insert_once_that_is_shown() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    let page = Page::open(&[], &account).await;
    let new = "/t/Employees/new";
    let json = r#"{"PartitionKey":"Sales","RowKey":"Sales","Age":36}"#;
    let of_json = |it: (String, String)| match &*it.0 {
        "json" => (it.0, json.to_owned()),
        _ => it,
    };
    let mut form = fields(&page.get(new).await.body, new);
    set_keys(&mut form, "Sales");
    press(&page, new, &form, &[("action", "insert")]).await;
    let blank = page.get("/t/Employees/new?view=json").await;
    let form: Vec<_> = fields(&blank.body, new).into_iter().map(of_json).collect();
    let refused = press(&page, new, &form, &[("action", "insert")]).await;
    assert_eq!(refused.status, 422);
    has(&refused, "another form has staged a change of this entity");
    let staged = press(
        &page,
        new,
        &fields(&refused.body, new),
        &[("action", "insert")],
    )
    .await;
    assert_eq!(staged.status, 303, "{}", texts(&staged.body));
    has(&page.get("/review").await, json);
}

#[tokio::test]
async fn a_new_property_that_is_not_valid_can_be_mended() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    let page = Page::open(&[], &account).await;
    let url = url("Sales", "000145");
    let form = fields(&page.get(&url).await.body, &url);
    for (name, expected) in [
        ("1st", "\"1st\" cannot be the name of a property"),
        ("", "\"\" cannot be the name of a property"),
    ] {
        let new = [("name", name), ("type", "Edm.Int32"), ("value", "7007")];
        let buttons = [new.as_slice(), &[("action", "merge")]].concat();
        let refused = press(&page, &url, &form, &buttons).await;
        assert_eq!(refused.status, 422);
        has(&refused, expected);
        let mut again = fields(&refused.body, &url);
        let at = again.iter().position(|(_, value)| value == "7007").unwrap();
        let typed = again.get_mut(at - 2..=at).unwrap();
        let [(_, known), (_, edm_type), _] = typed else {
            panic!("three fields");
        };
        assert_eq!((&**known, &**edm_type), (name, "Edm.Int32"));
        "First".clone_into(known);
        let staged = press(&page, &url, &again, &[("action", "merge")]).await;
        assert_eq!(staged.status, 303);
        has(&page.get("/review").await, "\"First\":7007");
        discard_all(&page).await;
    }
}
