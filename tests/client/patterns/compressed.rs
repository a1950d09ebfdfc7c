//! Compressed values: alone, in chunks, and what a read refuses.

use std::io::Write as _;

use harness::seeded;
use tablesdk::chunked::Chunked;
use tablesdk::entity::{Compressed, EntityError, Json, ValueError};
use tablesdk::{DynamicEntity, ErrorKind, PropertyValue, TableEntity, Value};

use super::on_both_transports;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{employee}",
    row_key = "{year:04}"
)]
struct Review {
    employee: String,
    year: u16,
    summary: Option<Compressed<String, 100_000>>,
    scan: Compressed<Vec<u8>>,
    #[table(flatten, prefix = "Text")]
    text: Chunked<Compressed<String>>,
    #[table(flatten, prefix = "Answers")]
    answers: Option<Chunked<Compressed<Json<Vec<String>>>>>,
}

fn review() -> Review {
    Review {
        employee: "ann".into(),
        year: 2024,
        summary: Some(Compressed("punctual ".repeat(10_000))),
        scan: Compressed(vec![7; 200_000]),
        text: Chunked(Compressed("She sings. 日本 ".repeat(100_000))),
        answers: Some(Chunked(Compressed(Json(vec!["Yes".into(); 50_000])))),
    }
}

on_both_transports! {
    async fn compressed_values_are_read_as_they_were(subject: Subject) {
        let table = subject.table().await;
        table.insert(&review()).await.unwrap();
        let read = table.get(Review::key("ann", 2024)).await.unwrap().unwrap();
        assert_eq!(*read, review());
        let none = Review { summary: None, scan: Compressed(Vec::new()), text: Chunked::default(), answers: None, ..review() };
        table.upsert_replace(&none).await.unwrap();
        assert_eq!(*table.get(Review::key("ann", 2024)).await.unwrap().unwrap(), none);

        // What does not become smaller.
        let mut rng = seeded();
        let noise: Vec<u8> = (0..400_000).map(|_| rng.u8(..)).collect();
        let text = noise.iter().map(|byte| char::from(byte & 0x7F)).collect::<String>();
        let noise = Review { text: Chunked(Compressed(text)), ..none };
        table.upsert_replace(&noise).await.unwrap();
        assert_eq!(*table.get(Review::key("ann", 2024)).await.unwrap().unwrap(), noise);
    }

    async fn what_is_no_compressed_value_is_an_error(subject: Subject) {
        let table = subject.table().await;
        let refused = async |summary: Value| {
            let row = DynamicEntity::new("ann", "2024").with("Scan", zstd(b"")).with("Text", zstd(b""));
            table.upsert_replace(&row.with("Summary", summary)).await.unwrap();
            let error = table.get(Review::key("ann", 2024)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Data);
            error.downcast_ref::<EntityError>().expect("of the entity").to_string()
        };
        assert_eq!(refused("text".into()).await, "property \"Summary\": expected Edm.Binary, found Edm.String");
        let whole = zstd("punctual ".repeat(1000).as_bytes());
        assert_eq!(
            refused(Value::Binary(whole[..whole.len() - 1].to_vec())).await,
            format!("property \"Summary\": the value of {} bytes cannot be read: decompression: incomplete frame", whole.len() - 1)
        );
        let unknown = "property \"Summary\": the value of 4 bytes cannot be read: decompression: Unknown frame descriptor";
        assert_eq!(refused(Value::Binary(b"text".to_vec())).await, unknown);
        assert!(refused(Value::Binary([&*whole, b"text"].concat())).await.ends_with("Unknown frame descriptor"));
        assert!(refused(Value::Binary(Vec::new())).await.contains("the value of 0 bytes cannot be read"));
        assert!(refused(Value::Binary(zstd(&[0xFF]))).await.ends_with("invalid utf-8 sequence of 1 bytes from index 0"));
    }
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 19).unwrap()
}

/// As a program writes that does not know the size in advance: the frame does not declare it.
fn zstd_stream(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 19).unwrap();
    let (first, rest) = bytes.split_at(1);
    encoder.write_all(first).unwrap();
    encoder.flush().unwrap();
    encoder.write_all(rest).unwrap();
    let frame = encoder.finish().unwrap();
    assert_eq!(zstd::decompressed_size(&frame), None);
    frame
}

#[test]
fn decompression_ends_at_the_limit() {
    type Small = Compressed<Vec<u8>, 100_000>;
    let (fits, over) = (vec![7; 100_000], vec![7; 100_001]);
    for compress in [zstd, zstd_stream] {
        let read = Small::from_value(Value::Binary(compress(&fits))).unwrap();
        assert_eq!(read.0, fits);
        let error = Small::from_value(Value::Binary(compress(&over))).unwrap_err();
        let rule = "cannot be read: decompressed, it has more than 100000 bytes";
        assert!(error.to_string().ends_with(rule), "{error}");
    }
    assert!(Compressed::<_, 100_000>(fits).to_value().is_ok());
    let error = Small::to_value(&Compressed(over)).unwrap_err();
    assert_eq!(
        error,
        ValueError::unwritable("its 100001 bytes are more than the 100000 that are read")
    );
}

/// A bomb: 64 KiB that stand for 2 GiB, in one frame, in many frames, and in a frame that demands a large window.
#[test]
fn a_bomb_is_refused() {
    let mebibytes = zstd_stream(&vec![0; 4 << 20]);
    let many = mebibytes.repeat(65_536 / mebibytes.len());
    assert!(many.len() > 50_000);
    // The size is in the header: no more than that is read.
    let mut declares = vec![0x28, 0xB5, 0x2F, 0xFD, 0xC0, 0x00];
    declares.extend((1_u64 << 40).to_le_bytes());
    for bomb in [many, declares] {
        let error = Compressed::<Vec<u8>>::from_value(Value::Binary(bomb)).unwrap_err();
        let rule = "decompressed, it has more than 16777216 bytes";
        assert!(error.to_string().ends_with(rule), "{error}");
    }
    // A window of 128 MiB.
    let window = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x88, 0x01, 0x00, 0x00];
    let error = Compressed::<Vec<u8>>::from_value(Value::Binary(window.to_vec())).unwrap_err();
    assert!(error.to_string().contains("too much memory"), "{error}");
}

/// The levels of zstd whose frames every reader takes, and those of other programs.
#[test]
fn frames_of_every_level_are_read() {
    let text = "She is punctual. ".repeat(900_000);
    for level in [1, 3, 9, 19] {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), level).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(text.as_bytes()).unwrap();
        let frame = encoder.finish().unwrap();
        let read = Compressed::<String>::from_value(Value::Binary(frame)).unwrap();
        assert!(read.0 == text, "{level}");
    }
}

#[test]
fn filters_cannot_compare_compressed_values() {
    let table = harness::client(&tablesdk_server::TableServer::in_process()).table("Reviews");
    let query = table.query::<Review>();
    let query = query.filter(|r| r.summary.eq(Compressed("punctual".to_owned())));
    let error = query.explain().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(error.to_string().contains("it is compressed"), "{error}");
}
