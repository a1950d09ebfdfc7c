//! `explore`: the page of the schema of a table, and the history of queries.

use tablesdk::{DynamicEntity, TableServiceClient, Value};

use crate::page::{Element, Page, elements};
use crate::{fill, server};

/// Employees and departments in three partitions.
async fn company(service: &TableServiceClient) {
    let table = service.table("Company");
    table.create_table().await.unwrap();
    for number in 0..24 {
        let partition = if number < 20 { "Sales & co" } else { "IT" };
        let mut entity = DynamicEntity::new(partition, format!("empid_{number:06}"))
            .with("EntityType", "Employee")
            .with("Email", format!("{number}@contoso.com"))
            .with("Badge", (1_i64 << 53) + i64::from(number));
        let salary = match number {
            7 => Value::Int32(40_000),
            _ => Value::Double(f64::from(30_000 + number * 1_000)),
        };
        entity.properties_mut().set("Salary", salary);
        table.insert(&entity).await.unwrap();
    }
    for partition in ["Sales & co", "IT", "Legal"] {
        let entity = DynamicEntity::new(partition, "dept").with("EntityType", "Department");
        let photo = vec![0x89_u8; 5_000];
        table.insert(&entity.with("Photo", photo)).await.unwrap();
    }
}

/// The text of a page, in one line.
fn text(page: &str) -> String {
    let texts = elements(page).into_iter().map(|element| element.text);
    let texts = texts.collect::<Vec<_>>().join(" ");
    texts.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The cells of the row of a property.
fn row<'p>(page: &'p str, property: &str) -> &'p str {
    let mut rows = page.split("<tr>");
    rows.find(|row| row.contains(&format!(">{property}</th>")))
        .unwrap_or_else(|| panic!("no {property}: {page}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_sees_what_the_entities_have_in_common() {
    let (_server, service, account) = server().await;
    company(&service).await;
    let page = Page::open(&[], &account).await;
    let response = page.get("/t/Company/schema").await;
    assert_eq!(response.status, 200);
    let (body, all) = (&response.body, text(&response.body));
    for expected in [
        "2 kinds",
        "Employee 88 % · Department 11 %, by EntityType",
        "3 partitions",
        "the largest, Sales & co , has 77 % of the sample hot partition",
        "the largest has 4.9 KiB: Sales & co / dept",
        "Employee: empid_{empid:06} all of one form",
        "Department: dept always the same",
        "all 27 entities in ",
    ] {
        assert!(all.contains(expected), "{expected}: {all}");
    }
    assert!(
        body.contains("href=\"/t/Company?pk=Sales%20%26%20co\""),
        "{body}"
    );
    let salary = row(body, "Salary");
    for expected in [
        "Double 95 % · Int32 4 %",
        "aria-label=\"in 24 of 27 entities\"",
        "aria-label=\"values in each eighth of the range: 3, 3, 2, 4, 3, 3, 3, 3\"",
        "30000.0 … 53000.0",
        "two types: a filter on Double skips Int32",
        "only Employee",
    ] {
        assert!(salary.contains(expected), "{expected}: {salary}");
    }
    assert!(
        row(body, "Email").contains("could be a unique index"),
        "{body}"
    );
    assert!(
        row(body, "Badge").contains("JavaScript loses digits"),
        "{body}"
    );
    let photo = row(body, "Photo");
    assert!(
        photo.contains("4.8 KiB<") && photo.contains("89898989898989…"),
        "{photo}"
    );
    let rust = elements(body).into_iter();
    let rust: Vec<Element> = rust.filter(|it| it.get("id") == Some("rust")).collect();
    let rust = &rust.first().unwrap().text;
    assert!(rust.contains("pub enum CompanyRow {"), "{rust}");
    assert!(rust.contains("entity_type = \"Employee\""), "{rust}");
    assert!(body.contains("data-copy=\"rust\""), "{body}");

    // A search lists some of the properties.
    let response = page.get("/t/Company/schema?find=AL&sample=2000").await;
    let listed = response.body.matches("scope=\"row\"").count();
    assert_eq!(listed, 1, "{}", response.body);
    assert!(
        response.body.contains("value=\"2000\" selected"),
        "{}",
        response.body
    );
    let response = page.get("/t/Company/schema?find=nothing%22%3E").await;
    assert!(text(&response.body).contains("No property of the sample has nothing\">"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_without_entities_and_a_missing_one_say_so() {
    let (_server, service, account) = server().await;
    fill(&service, "Empty", 0).await;
    let page = Page::open(&[], &account).await;
    let response = page.get("/t/Empty/schema").await;
    assert!(text(&response.body).contains("no entities to look at"));
    let response = page.get("/t/Missing/schema?from=x&sample=y").await;
    assert!(
        text(&response.body).contains("TableNotFound"),
        "{}",
        response.body
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_properties_are_listed_in_parts() {
    let (_server, service, account) = server().await;
    let table = service.table("Wide");
    table.create_table().await.unwrap();
    let entities = (0..12_u32).map(|row| {
        let entity = DynamicEntity::new("wide", format!("{row:03}"));
        (0..200).fold(entity, |entity, column| {
            entity.with(&*format!("Column{:05}", row * 200 + column), 7)
        })
    });
    let report = table.bulk().upsert_replace(futures::stream::iter(entities));
    assert!(report.await.unwrap().is_success());
    let page = Page::open(&[], &account).await;
    let mut target = "/t/Wide/schema".to_owned();
    let mut listed = Vec::new();
    loop {
        let response = page.get(&target).await;
        listed.push(response.body.matches("scope=\"row\"").count());
        let mut links = elements(&response.body).into_iter();
        let Some(next) = links.find(|it| it.text == "Next properties") else {
            break;
        };
        next.get("href").unwrap().clone_into(&mut target);
    }
    assert_eq!(listed, [1_000, 1_000, 402]);
    let response = page.get("/t/Wide/schema?find=column00007").await;
    assert_eq!(response.body.matches("scope=\"row\"").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_is_found_in_the_history_run_again_and_removed() {
    let (_server, service, account) = server().await;
    fill(&service, "People", 3).await;
    let page = Page::open(&[], &account).await;
    let response = page.get("/history").await;
    assert!(text(&response.body).contains("No query was run yet."));
    let targets = [
        "/t/People?pk=p&rk=00001",
        "/t/People?pk=p&filter=Age%20ge%207",
    ];
    for target in targets {
        assert_eq!(page.get(target).await.status, 200);
    }
    let response = page.get("/history").await;
    let queries = |body: &str| -> Vec<String> {
        let elements = elements(body).into_iter();
        let links = elements.filter_map(|it| it.get("href").map(str::to_owned));
        links.filter(|href| href.contains("?pk=")).collect()
    };
    assert_eq!(queries(&response.body), [targets[1], targets[0]]);
    let all = text(&response.body);
    assert!(
        all.contains("PartitionKey p · RowKey 00001 point 1 1 "),
        "{all}"
    );
    assert!(
        all.contains("PartitionKey p · Age ge 7 partition 0 1 "),
        "{all}"
    );
    let response = page.get("/history?find=AGE").await;
    assert_eq!(queries(&response.body), [targets[1]]);
    assert!(text(&response.body).contains("1 of 2 queries"));

    let response = page.post("/history/forget", &[("url", targets[1])]).await;
    assert_eq!(response.status, 303);
    assert_eq!(queries(&page.get("/history").await.body), [targets[0]]);
    // Without the token of the form, nothing is removed.
    let body = "token=x";
    let forged = page.post_of("/history/clear", &page.form_lines(), body);
    assert!(page.send(&forged).await.is_refused());
    assert_eq!(queries(&page.get("/history").await.body), [targets[0]]);
    assert_eq!(page.post("/history/clear", &[]).await.status, 303);
    assert!(queries(&page.get("/history").await.body).is_empty());
}
