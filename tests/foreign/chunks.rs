//! Values in chunks beside a program in Python: it reads what our client wrote, and writes what our
//! client reads.

use harness::Subject;
use tablesdk::TableEntity;
use tablesdk::chunked::Chunked;
use tablesdk::entity::{EntityError, EntityProblem, Json};

use crate::child::run_python;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{employee}",
    row_key = "{name}"
)]
struct Review {
    employee: String,
    name: String,
    #[table(flatten, prefix = "Text")]
    text: Chunked<String>,
    #[table(flatten, prefix = "Scan")]
    scan: Option<Chunked<Vec<u8>>>,
    #[table(flatten, prefix = "Answers")]
    answers: Option<Chunked<Json<Vec<String>>, 2>>,
}

impl Review {
    fn new(name: &str, text: String, scan: Vec<u8>, answers: &[&str]) -> Self {
        let answers = answers.iter().map(|&answer| answer.to_owned()).collect();
        Self {
            employee: "ann".to_owned(),
            name: name.to_owned(),
            text: Chunked(text),
            scan: Some(Chunked(scan)),
            answers: Some(Chunked(Json(answers))),
        }
    }
}

#[tokio::test]
#[ignore = "needs the Python client: tests/interop/run.sh"]
async fn python_reads_and_writes_values_in_chunks() {
    let subject = Subject::over_http().await;
    let table = subject.table().await;
    let values = [
        ("empty", String::new(), Vec::new()),
        ("exact", "x".repeat(32_768), vec![7; 65_536]),
        ("longer", "x".repeat(32_769), vec![7; 65_537]),
        // A character of two UTF-16 units lies across the end of the first chunk.
        (
            "characters",
            format!("x{}", "🦀".repeat(40_000)),
            (0..=255).cycle().take(700 * 256).collect(),
        ),
    ];
    for (name, text, scan) in &values {
        let first: String = text.chars().take(10).collect();
        let review = Review::new(name, text.clone(), scan.clone(), &["Yes", &first]);
        table.insert(&review).await.unwrap();
    }
    for name in ["alone", "torn"] {
        let review = Review::new(name, "late".to_owned(), vec![], &[]);
        table.insert(&review).await.unwrap();
    }
    run_python("chunks.py", &subject).await;

    for (name, text, mut scan) in values {
        let text: String = text.chars().skip(1).chain(['🦀']).collect();
        scan.pop();
        let expected = Review::new(name, text, scan, &["No"]);
        let found = table.get(Review::key("ann", name)).await.unwrap();
        assert!(found.unwrap().into_inner() == expected, "{name}");
    }
    let alone = table.get(Review::key("ann", "alone")).await;
    let alone = alone.unwrap().unwrap();
    assert_eq!((&*alone.text.0, &alone.scan), ("punctual", &None));
    let error = table.get(Review::key("ann", "torn")).await.unwrap_err();
    let problem = error.downcast_ref::<EntityError>().unwrap().problem();
    assert!(
        matches!(problem, EntityProblem::Chunks { property, .. } if property == "Text"),
        "{error}"
    );
}
