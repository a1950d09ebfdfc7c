//! `infer`: what it prints, and what it refuses.

use tablesdk::DynamicEntity;

use super::run::run;
use super::{fill, server};

#[tokio::test(flavor = "multi_thread")]
async fn a_module_is_printed_and_nothing_else() {
    let (_server, service, account) = server().await;
    fill(&service, "People", 1_234).await;
    let marker = DynamicEntity::new("a", "~tablesdk.outbox.head").with("TablesdkNext", 1_i64);
    // A query of the client does not return it.
    service.table("People").insert(&marker).await.unwrap();

    let (code, out, errors) = run(&["infer", "People"], &account).await;
    assert_eq!(code, 0, "{errors}");
    assert!(
        out.starts_with("// The entities of the table People, inferred from 1,000 entities.\n")
    );
    assert!(
        out.contains("#[table(row_key = \"{number:05}\")]\npub struct People {"),
        "{out}"
    );
    assert!(out.contains("/// In the row key; 0 to 1099."), "{out}");
    assert!(
        errors.contains("1000 entities, in 1 partition; --sample COUNT looks at more"),
        "{errors}"
    );
    assert!(
        errors.contains("left out: 1 entity of the client itself"),
        "{errors}"
    );

    let (code, out, _) = run(
        &["infer", "People", "--sample", "7", "--name", "Human"],
        &account,
    )
    .await;
    assert_eq!(code, 0);
    assert!(
        out.contains("from 7 entities") && out.contains("pub struct Human {"),
        "{out}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_are_not_valid_are_refused_before_anything_is_sent() {
    // No server has this address.
    let account = "TableEndpoint=http://127.0.0.1:9/a;AccountName=a;AccountKey=a2V5";
    for (words, problem) in [
        (&["infer", "T", "--name", "employee"][..], "capital letter"),
        (&["infer", "T", "--name", "Option"], "another type"),
        (&["infer", "T", "--sample", "0"], "--sample"),
        (&["infer", "T", "--sample", "100001"], "--sample"),
        (&["infer", "T", "--output", "json"], "leave --output out"),
    ] {
        let (code, out, errors) = run(words, account).await;
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}: {errors}");
        assert!(errors.contains(problem), "{words:?}: {errors}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_without_entities_has_no_struct() {
    let (_server, service, account) = server().await;
    fill(&service, "Empty", 0).await;
    let head = DynamicEntity::new("ann", "2024").with("TablesdkVersion", "5be0cd19137e2179");
    service.table("Wide").create_table().await.unwrap();
    service.table("Wide").insert(&head).await.unwrap();
    for (table, problem) in [
        ("Empty", "Empty has no entities"),
        ("Missing", "Missing"),
        ("Wide", "#[table(wide)]"),
    ] {
        let (code, out, errors) = run(&["infer", table], &account).await;
        assert_eq!((code, out.as_str()), (1, ""), "{errors}");
        assert!(errors.contains(problem), "{errors}");
    }
}
