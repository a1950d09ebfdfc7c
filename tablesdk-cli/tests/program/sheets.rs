//! CSV and selections: `export` and `query` write what `import` reads.

use std::fs;

use tablesdk::{DynamicEntity, TableServiceClient};

use super::run::run;
use super::{STRING, names, server, tables};

/// Three entities, of which one has an empty string.
async fn people(service: &TableServiceClient) {
    let table = service.table("People");
    table.create_table().await.unwrap();
    let ada = DynamicEntity::new("Sales", "1")
        .with("Name", "Ada")
        .with("Age", 36);
    let empty = DynamicEntity::new("Sales", "2").with("Name", "");
    let formula = DynamicEntity::new("Other", "3")
        .with("Name", "=1+2")
        .with("Big", 7_i64);
    for entity in [ada, empty, formula] {
        table.insert(&entity).await.unwrap();
    }
}

/// The properties of all entities.
async fn stored(service: &TableServiceClient, table: &str) -> Vec<String> {
    let query = service.table(table).query::<DynamicEntity>();
    let found = query.collect().await.unwrap();
    let shown = found.iter().map(|entity| {
        let mut properties: Vec<_> = entity.properties().iter().collect();
        properties.sort_by_key(|(name, _)| *name);
        format!(
            "{} {} {properties:?}",
            entity.partition_key(),
            entity.row_key()
        )
    });
    shown.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_goes_through_csv_and_comes_back() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_server, service, text) = server().await;
    people(&service).await;
    let account = [(STRING, text.as_str())];
    // The name of the file says the form.
    let words = ["export", "people.csv", "--table", "People"];
    let (code, json, errors) = tables(directory, &words, &account).await;
    assert_eq!((code, &json["entities"]), (0, &3.into()), "{errors}");
    assert_eq!(names(directory), ["people.csv"]);
    let csv = fs::read_to_string(directory.join("people.csv")).unwrap();
    let header =
        "\u{FEFF}PartitionKey,RowKey,Timestamp,Name,Name@type,Big,Big@type,Age,Age@type\r\n";
    assert!(csv.starts_with(header), "{csv}");
    assert_eq!(csv.lines().count(), 4);

    let words = ["import", "people.csv", "--table", "Copies"];
    let (code, json, errors) = tables(directory, &words, &account).await;
    assert_eq!(
        (code, &json["entities"], &json["guessed"]),
        (0, &3.into(), &0.into()),
        "{errors}"
    );
    assert_eq!(
        stored(&service, "Copies").await,
        stored(&service, "People").await
    );

    // A row is named as a spreadsheet counts.
    let words = [
        "import",
        "people.csv",
        "--table",
        "Copies",
        "--mode",
        "insert",
    ];
    let (code, json, errors) = tables(directory, &words, &account).await;
    let failures = json["failures"].as_array().unwrap().iter();
    let mut places: Vec<_> = failures.map(|failure| failure["place"].as_str()).collect();
    places.sort_unstable();
    let rows = [
        "people.csv: row 2",
        "people.csv: row 3",
        "people.csv: row 4",
    ];
    assert_eq!((code, places), (3, rows.map(Some).to_vec()), "{errors}");

    // An empty table is one, too.
    fs::write(directory.join("empty.csv"), "PartitionKey,RowKey\n").unwrap();
    let words = ["import", "empty.csv", "--table", "Empty"];
    let (code, json, errors) = tables(directory, &words, &account).await;
    assert_eq!(
        (code, &json["tables"], &json["entities"]),
        (0, &1.into(), &0.into()),
        "{errors}"
    );
    assert!(stored(&service, "Empty").await.is_empty());

    // The same without types, and through pipes.
    let words = [
        "query",
        "People",
        "--scan",
        "--output",
        "csv",
        "--select",
        "Name,Age,None",
    ];
    let (code, out, _) = run(&words, &text).await;
    assert_eq!(code, 0);
    let header = "PartitionKey,RowKey,Timestamp,Name,Name@type,Age,Age@type,None,None@type\n";
    assert!(out.starts_with(header), "{out}");
    fs::write(
        directory.join("plain.csv"),
        "PartitionKey,RowKey,Age\na,1,36\n",
    )
    .unwrap();
    let file = directory.join("plain.csv");
    let words = ["import", file.to_str().unwrap(), "--table", "Plain"];
    let (code, _, errors) = run(&words, &text).await;
    assert_eq!(code, 0);
    let lines: Vec<_> = errors.lines().collect();
    assert!(
        lines[0].starts_with("Imported 1 table with 1 entity in "),
        "{errors}"
    );
    assert_eq!(
        lines[1..],
        [
            "Their timestamps are new: the service sets them",
            "1 value without a type got one by their text: --types strings keeps them as strings",
        ]
    );
    assert_eq!(
        stored(&service, "Plain").await,
        [r#"a 1 [("Age", Int32(36))]"#]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn csv_has_all_columns_of_all_pages_also_in_a_pipe() {
    let (_server, service, text) = server().await;
    people(&service).await;
    let table = service.table("People");
    let others = (0..1_500).map(|row| {
        DynamicEntity::new("p", format!("{row:05}")).with(format!("P{}", row / 1_000), row)
    });
    let report = table.bulk().insert(futures::stream::iter(others)).await;
    assert!(report.unwrap().is_success());
    for words in [
        &["query", "People", "--scan", "--all", "--output", "csv"][..],
        &["export", "-", "--table", "People", "--format", "csv"],
    ] {
        let (code, out, errors) = run(words, &text).await;
        assert_eq!(code, 0, "{errors}");
        let header = out.lines().next().unwrap();
        for name in ["Name", "Age", "Big", "P0", "P1"] {
            assert!(header.contains(&format!(",{name},{name}@type")), "{header}");
        }
        assert_eq!(out.lines().count(), 1_504);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_is_printed_can_be_csv_and_safe_for_a_spreadsheet() {
    let (_server, service, text) = server().await;
    people(&service).await;
    let csv = |words: &[&'static str]| [words, &["--output", "csv"]].concat();
    let (code, out, _) = run(&csv(&["ls"]), &text).await;
    assert_eq!((code, out.as_str()), (0, "table\nPeople\n"));
    let (code, out, _) = run(&csv(&["outbox", "list", "People"]), &text).await;
    assert_eq!((code, out.as_str()), (0, ""));
    let (_, out, _) = run(&csv(&["schema", "People"]), &text).await;
    let header = "bytesMax,bytesMean,entities,largest,property,smallest,type\n";
    assert!(
        out.starts_with(header) && out.contains("4,4,1,36,Age,36,Edm.Int32\n"),
        "{out}"
    );
    let get = ["get", "People", "Other", "3"];
    let (_, out, _) = run(&csv(&get), &text).await;
    assert!(out.ends_with(",=1+2,Edm.String,7,Edm.Int64\n"), "{out}");
    let (_, out, _) = run(&csv(&[&get[..], &["--spreadsheet"]].concat()), &text).await;
    assert!(
        out.starts_with('\u{FEFF}') && out.ends_with(",'=1+2,Edm.String,7,Edm.Int64\r\n"),
        "{out}"
    );
    let words = [
        "export",
        "-",
        "--table",
        "People",
        "--format",
        "csv",
        "--spreadsheet",
    ];
    let (_, out, _) = run(&words, &text).await;
    assert!(out.contains(",'=1+2,"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_may_have_a_part_of_a_table() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (server, service, text) = server().await;
    people(&service).await;
    // Entities of the client go along.
    let batch = service.table("People").batch("Sales");
    let ada = DynamicEntity::new("Sales", "1").with("Name", "Ada");
    let step = tablesdk::outbox::Step::upsert_replace(&service.table("Others"), &ada);
    batch.upsert_replace(&ada).step(step).await.unwrap();
    let account = [(STRING, text.as_str())];
    for (selection, rows) in [
        (
            &["--partition", "Sales"][..],
            &["1", "2", "~tablesdk.outbox"][..],
        ),
        (&["--partition", "Sales", "--row", "2"], &["2"]),
        (&["--partition", "Sales", "--rows", "2..3"], &["2"]),
        (&["--filter", "Big eq 7L"], &["3"]),
        (
            &[
                "--filter",
                "Big eq 7L or Name eq ''",
                "--partition",
                "Sales",
            ],
            &["2"],
        ),
    ] {
        let words = [
            &["export", "part.jsonl", "--force", "--table", "People"],
            selection,
        ]
        .concat();
        let (code, _, errors) = tables(directory, &words, &account).await;
        assert_eq!(code, 0, "{errors}");
        let file = fs::read_to_string(directory.join("part.jsonl")).unwrap();
        let found = file.split(r#""RowKey":""#).skip(1);
        let found: Vec<_> = found.map(|rest| rest.split('"').next().unwrap()).collect();
        assert!(
            rows.iter()
                .all(|row| found.iter().any(|it| it.starts_with(row))),
            "{found:?}"
        );
        assert!(
            found
                .iter()
                .all(|it| rows.iter().any(|row| it.starts_with(row))),
            "{found:?}"
        );
    }
    let journal = server.journal();
    let before = journal.requests().count();
    for (words, problem) in [
        (
            &["--partition", "Sales"][..],
            "a selection of entities needs exactly one --table",
        ),
        (&["--format", "csv"], "CSV needs exactly one --table"),
        (
            &["--table", "People", "--table", "Others", "--format", "csv"],
            "exactly one --table",
        ),
        (&["--table", "People", "--filter", "Age >"], "Age >"),
        (&["--spreadsheet"], "--spreadsheet is for CSV"),
    ] {
        let words = [&["export", "none.jsonl"], words].concat();
        let (code, _, errors) = tables(directory, &words, &account).await;
        assert!(code == 2 && errors.contains(problem), "{code} {errors}");
    }
    let (code, _, errors) = run(&["query", "People", "--spreadsheet"], &text).await;
    assert!(
        code == 2 && errors.contains("--spreadsheet is for CSV"),
        "{errors}"
    );
    assert_eq!(journal.requests().count(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_to_csv_continues_where_it_stopped() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_server, service, text) = server().await;
    let table = service.table("People");
    table.create_table().await.unwrap();
    let wide = |row: usize| {
        let entity = DynamicEntity::new("a", row.to_string());
        let names = (0..101).map(|index| format!("P{row:02}x{index:03}"));
        names.fold(entity, |entity, name| entity.with(name, 1))
    };
    let entities = futures::stream::iter((0..100).map(wide));
    assert!(table.bulk().insert(entities).await.unwrap().is_success());
    let account = [(STRING, text.as_str())];
    let words = [
        "export",
        "people.csv",
        "--table",
        "People",
        "--format",
        "csv",
    ];
    // The last step fails.
    let (code, _, errors) = tables(directory, &words, &account).await;
    assert!(
        code == 1
            && errors.contains("people.csv cannot be written: the entities have more than 10000"),
        "{errors}"
    );
    let left = ["people.csv.export", "people.csv.part"];
    assert_eq!(names(directory), left);
    // All entities get the same properties.
    let part = directory.join("people.csv.part");
    let lines = fs::read_to_string(&part).unwrap();
    let alike = (1..100).fold(lines, |lines, row| {
        lines.replace(&format!("P{row:02}x"), "P00x")
    });
    fs::write(&part, alike).unwrap();
    service.table("People").delete_table().await.unwrap();
    let (code, json, errors) = tables(directory, &words, &account).await;
    assert_eq!((code, &json["entities"]), (0, &100.into()), "{errors}");
    assert_eq!(names(directory), ["people.csv"]);
    let csv = fs::read_to_string(directory.join("people.csv")).unwrap();
    assert_eq!(csv.lines().count(), 101);
}

/// The examples of the page about the files of other programs.
#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_the_page_are_imported() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_server, service, text) = server().await;
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/importing.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks = page
        .split("\n```")
        .filter_map(|block| block.split_once('\n'));
    let samples = blocks.filter(|(form, _)| ["csv", "json"].contains(form));
    let samples: Vec<_> = samples.map(|(_, sample)| sample).collect();
    let typed = [
        r#"Sales 1 [("Age", Int32(36)), ("Badge", Int64(9007199254740993)), ("Name", String("Ada"))]"#,
        r#"Sales 2 [("Name", String(""))]"#,
    ];
    let guessed = [
        r#"Sales 1 [("Age", Int32(36)), ("Code", String("007")), ("Name", String("Ada"))]"#,
        r#"Sales 2 [("Age", Int64(5000000000)), ("Name", String("Grace"))]"#,
    ];
    let expected = [("Explorer", typed), ("Json", typed), ("Plain", guessed)];
    assert_eq!(samples.len(), expected.len());
    for (sample, (table, expected)) in samples.into_iter().zip(expected) {
        fs::write(directory.join("file"), sample).unwrap();
        let words = ["import", "file", "--table", table];
        let (code, _, errors) = tables(directory, &words, &[(STRING, &text)]).await;
        assert_eq!(code, 0, "{errors}");
        assert_eq!(stored(&service, table).await, expected);
    }
}
