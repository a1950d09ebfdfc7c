//! Values in chunks: what is stored, what is read when the chunks do not belong together, and how
//! much fits.

use harness::seeded;
use tablesdk::chunked::Chunked;
use tablesdk::entity::{EntityError, EntityProblem, Json};
use tablesdk::{
    DynamicEntity, Error, ErrorKind, PropertyValue, Stored, TableClient, TableEntity, Value,
};

use super::on_both_transports;

/// The bytes of a chunk of ASCII, and half of those of a chunk of binary.
const CHUNK: usize = 32 * 1024;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{employee}",
    row_key = "{year:04}"
)]
struct Review {
    employee: String,
    year: u16,
    rating: i32,
    #[table(flatten, prefix = "Text")]
    text: Chunked<String>,
    #[table(flatten, prefix = "Scan")]
    scan: Option<Chunked<Vec<u8>, 3>>,
}

impl Review {
    fn new(year: u16, text: impl Into<String>) -> Self {
        Self {
            employee: "ann".into(),
            year,
            rating: 4,
            text: Chunked(text.into()),
            scan: None,
        }
    }
}

#[derive(Debug, TableEntity)]
#[table(projection)]
struct TextOf {
    #[table(flatten, prefix = "Text")]
    text: Chunked<String>,
}

async fn get(table: &TableClient, year: u16) -> Result<Stored<Review>, Error> {
    let review = table.get(Review::key("ann", year)).await?;
    Ok(review.expect("was written"))
}

async fn raw(table: &TableClient, year: u16) -> DynamicEntity {
    let key = ("ann".to_owned(), format!("{year:04}"));
    let raw = table.get::<DynamicEntity>(key).await.unwrap();
    raw.expect("was written").into_inner()
}

/// The names of the properties that hold the text.
async fn names(table: &TableClient, year: u16) -> Vec<String> {
    let raw = raw(table, year).await;
    let names = raw.properties().iter().map(|(name, _)| name.to_owned());
    let mut names: Vec<_> = names.filter(|name| name.starts_with("Text")).collect();
    names.sort();
    names
}

fn text_of(error: &Error) -> String {
    let problem = error.downcast_ref::<EntityError>().expect("of an entity");
    problem.to_string()
}

on_both_transports! {
    async fn a_value_is_cut_and_joined(subject: Subject) {
        let table = subject.table().await;
        let digits = |length: usize| "0123456789".chars().cycle().take(length).collect::<String>();
        for (year, length) in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 200_000].into_iter().enumerate() {
            let year = u16::try_from(year).unwrap();
            let scan = (0..251).cycle().take(length.min(190_000)).collect();
            let review = Review { scan: Some(Chunked(scan)), ..Review::new(year, digits(length)) };
            table.insert(&review).await.unwrap();
            assert_eq!(*get(&table, year).await.unwrap(), review);
            let chunks = length.div_ceil(CHUNK).max(1);
            assert_eq!(names(&table, year).await.len(), chunks + 2, "{length}");
            let raw = raw(&table, year).await;
            assert_eq!(raw.properties().get("Text__n"), Some(&Value::Int32(i32::try_from(chunks).unwrap())));
        }
        let of_ann = || table.query::<Review>().partition("ann");
        let found = of_ann().select(|r| (r.year, r.text, r.scan.optional())).collect().await.unwrap();
        let texts = table.query::<TextOf>().partition("ann").collect().await.unwrap();
        assert_eq!((found.len(), texts.len()), (7, 7));
        for ((year, text, scan), projected) in found.into_iter().zip(texts) {
            let whole = get(&table, year).await.unwrap();
            assert_eq!((&text, &scan), (&whole.text, &whole.scan));
            assert_eq!(projected.text, text);
        }
    }

    async fn a_shorter_value_hides_the_chunks_of_a_longer_one(subject: Subject) {
        let table = subject.table().await;
        let mut review = table.insert(&Review::new(1, "long".repeat(CHUNK))).await.unwrap();
        review.text = Chunked("short".into());
        table.merge(&mut review).await.unwrap();
        assert_eq!(names(&table, 1).await.len(), 4 + 2, "a merge removes nothing");
        assert_eq!(*get(&table, 1).await.unwrap(), *review);

        review.text.push('!');
        table.replace(&mut review).await.unwrap();
        assert_eq!(names(&table, 1).await, ["Text", "Text__n", "Text__sha"]);
        assert_eq!(get(&table, 1).await.unwrap().text.0, "short!");
    }

    async fn a_merge_without_a_value_keeps_it(subject: Subject) {
        let table = subject.table().await;
        let scan = vec![7; 3 * CHUNK];
        let review = Review { scan: Some(Chunked(scan.clone())), ..Review::new(1, "") };
        table.insert(&review).await.unwrap();
        table.upsert_merge(&Review::new(1, "x")).await.unwrap();
        let merged = get(&table, 1).await.unwrap();
        assert_eq!((merged.text.0.as_str(), &merged.scan), ("x", &Some(Chunked(scan))));
        table.upsert_replace(&Review::new(1, "x")).await.unwrap();
        assert_eq!(get(&table, 1).await.unwrap().scan, None);
    }

    async fn a_modification_and_the_differences_keep_the_value_whole(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Review::new(1, "a".repeat(3 * CHUNK))).await.unwrap();
        let shorten = |review: &mut Review| { review.text.truncate(CHUNK + 1); Ok(()) };
        table.modify(Review::key("ann", 1), shorten).await.unwrap();
        assert_eq!(get(&table, 1).await.unwrap().text.len(), CHUNK + 1);
        assert_eq!(names(&table, 1).await.len(), 2 + 2);

        let tracked = async || table.get(Review::key("ann", 1)).tracked().await.unwrap().unwrap();
        let mut one = tracked().await;
        one.rating = 5;
        table.merge(&mut one).changed_only().await.unwrap();
        let mut one = tracked().await;
        one.text.push_str("end");
        table.merge(&mut one).changed_only().await.unwrap();
        let now = get(&table, 1).await.unwrap();
        assert_eq!((now.rating, now.text.len()), (5, CHUNK + 4));
        let mut one = tracked().await;
        one.text.truncate(3);
        table.merge(&mut one).changed_only().await.unwrap();
        assert_eq!(names(&table, 1).await.len(), 1 + 2);
        assert_eq!(get(&table, 1).await.unwrap().text.0, "aaa");
    }

    async fn chunks_of_two_writes_are_an_error(subject: Subject) {
        let table = subject.table().await;
        let long = Review::new(1, "a".repeat(3 * CHUNK));
        let row = || DynamicEntity::new("ann", "0001");
        let mixed = "they do not match the checksum: they are of different writes, or a program has changed one of them alone";
        for (change, problem) in [
            (row().with("Text__1", "b".repeat(CHUNK)), mixed),
            (row().with("Text", "short"), mixed),
            (row().with("Text__n", 2), mixed),
            (row().with("Text__sha", vec![0_u8; 32]), mixed),
            (row().with("Text__n", 4), "\"Text__3\" is missing, and there are 4"),
            (row().with("Text__n", -1), "there are -1, and the field has 1 to 16"),
            (row().with("Text__n", 0), "there are 0, and the field has 1 to 16"),
            (row().with("Text__n", 17), "there are 17, and the field has 1 to 16"),
            (row().with("Text__2", 5), "property \"Text__2\": expected Edm.String, found Edm.Int32"),
            (row().with("Text__n", "3"), "property \"Text__n\": expected Edm.Int32, found Edm.String"),
        ] {
            table.upsert_replace(&long).await.unwrap();
            table.upsert_merge(&change).await.unwrap();
            let error = get(&table, 1).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Data);
            let found = error.downcast_ref::<EntityError>().unwrap().problem();
            assert!(matches!(found, EntityProblem::Chunks { .. } | EntityProblem::Value { .. }));
            let expected = if problem.starts_with("property") {
                problem.to_owned()
            } else {
                format!("property \"Text\": its chunks cannot be joined: {problem}")
            };
            assert_eq!(text_of(&error), expected);
            let of_column = table.query::<Review>().select(|r| r.text).collect().await.unwrap_err();
            assert_eq!(text_of(&of_column), expected);
        }
        // What is behind the last chunk does not count, whatever it is.
        table.upsert_replace(&long).await.unwrap();
        table.upsert_merge(&row().with("Text__9", 5)).await.unwrap();
        assert_eq!(*get(&table, 1).await.unwrap(), long);
    }

    async fn a_value_in_one_property_is_read_too(subject: Subject) {
        let table = subject.table().await;
        let plain = DynamicEntity::new("ann", "0001").with("Rating", 4).with("Text", "plain");
        table.insert(&plain).await.unwrap();
        assert_eq!(*get(&table, 1).await.unwrap(), Review::new(1, "plain"));

        let without = DynamicEntity::new("ann", "0002").with("Rating", 4);
        table.insert(&without).await.unwrap();
        let error = text_of(&get(&table, 2).await.unwrap_err());
        assert_eq!(error, "property \"Text\" is missing, expected Edm.String; make its field an Option if it may be absent, or give it a default");
        for (property, missing) in [("Text__1", "Text__n"), ("Text__sha", "Text__n")] {
            let part = without.clone().with("Text", "part").with(property, "x");
            table.upsert_replace(&part).await.unwrap();
            let error = text_of(&get(&table, 2).await.unwrap_err());
            assert_eq!(error, format!("property \"Text\": its chunks cannot be joined: {missing:?} is missing"));
        }
    }
}

#[derive(Debug, TableEntity)]
#[table(partition_key = "p", row_key = "{r}")]
struct Scan {
    r: String,
    #[table(flatten, prefix = "S")]
    scan: Chunked<Vec<u8>>,
}

#[derive(Debug, TableEntity)]
#[table(partition_key = "p", row_key = "{r}")]
struct Note {
    r: String,
    #[table(flatten, prefix = "T")]
    text: Chunked<String>,
}

/// The bytes that an entity takes without its chunks' values: the keys, the properties' names and
/// lengths, the number and the checksum.
fn overhead(chunks: usize) -> usize {
    let property = |name: &str, value: usize| 8 + 2 * name.len() + value;
    let own = 4 + 2 * "pr".len() + property("T__n", 4) + property("T__sha", 4 + 32);
    let others = (1..chunks).map(|chunk| property(&format!("T__{chunk}"), 4));
    own + property("T", 4) + others.sum::<usize>()
}

on_both_transports! {
    async fn the_default_holds_what_an_entity_can_hold(subject: Subject) {
        let table = subject.table().await;
        let scan = |bytes| Scan { r: "r".into(), scan: Chunked(vec![7; bytes]) };
        let most = 1024 * 1024 - overhead(16);
        table.upsert_replace(&scan(most)).await.unwrap();
        let read = table.get(Scan::key("r")).await.unwrap().unwrap();
        assert_eq!(read.scan.len(), most);
        let error = table.upsert_replace(&scan(most + 1)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().contains("the entity takes 1048577 bytes, more than the 1048576 that the service stores"), "{error}");

        let note = |units| Note { r: "r".into(), text: Chunked("x".repeat(units)) };
        table.upsert_replace(&note(most / 2)).await.unwrap();
        let read = table.get(Note::key("r")).await.unwrap().unwrap();
        assert_eq!(read.text.len(), most / 2);
        let error = table.upsert_replace(&note(most / 2 + 1)).await.unwrap_err();
        assert!(error.to_string().contains("the entity takes 10485"), "{error}");
        let error = table.upsert_replace(&scan(1024 * 1024 + 1)).await.unwrap_err();
        assert!(error.to_string().ends_with("property \"S\": the value cannot be stored: its 1048577 bytes take 17 chunks of 64 KiB, and the field has 16: an entity of 1 MiB holds at most 16, and an object store holds larger values"), "{error}");
    }

    async fn a_field_with_fewer_chunks_holds_less(subject: Subject) {
        let table = subject.table().await;
        let review = |bytes| Review { scan: Some(Chunked(vec![7; bytes])), ..Review::new(1, "") };
        table.upsert_replace(&review(3 * 65_536)).await.unwrap();
        assert_eq!(*get(&table, 1).await.unwrap(), review(3 * 65_536));
        let error = table.upsert_replace(&review(3 * 65_536 + 1)).await.unwrap_err();
        assert!(error.to_string().contains("property \"Scan\": the value cannot be stored: its 196609 bytes take 4 chunks of 64 KiB, and the field has 3"), "{error}");
    }
}

/// A service limits a chunk to 32,768 UTF-16 units, which a pair of surrogates may exceed by one.
#[tokio::test]
async fn text_is_cut_between_characters() {
    let subject = harness::Subject::in_process();
    let table = subject.table().await;
    let all_pairs = format!("a{}", "😀".repeat(240_000));
    let review = Review::new(1, &*all_pairs);
    table.upsert_replace(&review).await.unwrap();
    assert_eq!(get(&table, 1).await.unwrap().text.0, all_pairs);
    let raw = raw(&table, 1).await;
    for (name, expected) in [("Text", 32_767), ("Text__1", 32_768), ("Text__14", 21_250)] {
        let chunk: String = raw.properties().read(name).unwrap();
        assert_eq!(chunk.encode_utf16().count(), expected, "{name}");
    }

    let mut rng = seeded();
    for _ in 0..40 {
        let characters = ["a", "é", "日", "😀", "\u{10FFFF}"];
        let mut text = String::new();
        let mut units = rng.usize(..200_000);
        while units > 0 {
            let next = rng.choice(characters).unwrap().repeat(rng.usize(1..20_000));
            units = units.saturating_sub(next.encode_utf16().count());
            text.push_str(&next);
        }
        table.upsert_replace(&Review::new(2, &*text)).await.unwrap();
        assert_eq!(get(&table, 2).await.unwrap().text.0, text);
    }
}

#[derive(Clone, Debug, PartialEq, PropertyValue)]
struct Remarks(String);

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Answer {
    question: u32,
    text: String,
}

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, TableEntity)]
#[table(partition_key = "p", row_key = "{r}")]
struct Survey {
    r: String,
    #[table(flatten, prefix = "answers")]
    answers: Chunked<Json<Vec<Answer>>>,
    #[table(flatten, prefix = "extra")]
    extra: Option<Chunked<Json<Answer>, 2>>,
}

#[derive(Debug, PartialEq, TableEntity)]
#[table(partition_key = "p", row_key = "{r}")]
struct Newtypes {
    r: String,
    #[table(flatten, prefix = "remarks")]
    remarks: Chunked<Remarks>,
    #[table(flatten, prefix = "bytes")]
    bytes: Chunked<bytes::Bytes, 1>,
}

on_both_transports! {
    async fn json_and_newtypes_are_values_too(subject: Subject) {
        let table = subject.table().await;
        let answer = |question| Answer { question, text: "Yes, \"always\"\n".repeat(20) };
        let survey = Survey {
            r: "1".into(),
            answers: Chunked(Json((0..500).map(answer).collect())),
            extra: Some(Chunked(Json(answer(7)))),
        };
        table.insert(&survey).await.unwrap();
        let read = table.get(Survey::key("1")).await.unwrap().unwrap();
        assert_eq!(*read, survey);
        // As a web handler returns it: the value without a wrapper.
        let json = serde_json::to_value(&*read).unwrap();
        assert_eq!(json["answers"][499]["question"], 499);
        assert_eq!(serde_json::from_value::<Survey>(json).unwrap(), survey);

        let broken = DynamicEntity::new("p", "2").with("answers", "[{");
        table.insert(&broken).await.unwrap();
        let error = table.get(Survey::key("2")).await.unwrap_err();
        assert!(text_of(&error).starts_with("property \"answers\": the value \"[{\" cannot be read: EOF"), "{error}");

        let newtypes = Newtypes {
            r: "3".into(),
            remarks: Chunked(Remarks("x".repeat(70_000))),
            bytes: Chunked(bytes::Bytes::from_static(b"abc")),
        };
        table.insert(&newtypes).await.unwrap();
        assert_eq!(*table.get(Newtypes::key("3")).await.unwrap().unwrap(), newtypes);
    }
}
