//! The values at which encodings go wrong.

use tablesdk::{Guid, Timestamp, Value};

pub(crate) fn values() -> impl Iterator<Item = Value> {
    let booleans = [true, false].map(Value::Boolean);
    let int32 = [0, 1, -1, i32::MIN, i32::MAX].map(Value::Int32);
    let int64 = [
        0,
        5,
        -5,
        i64::from(i32::MAX) + 1,
        i64::from(i32::MIN) - 1,
        // Differences that a double does not represent.
        (1 << 53) + 1,
        i64::MIN,
        i64::MAX,
    ];
    let doubles = [
        0.0,
        -0.0,
        0.1,
        5.0,
        -1.0,
        1e15,
        2_147_483_647.0,
        2_147_483_648.0,
        9_007_199_254_740_993.0,
        1e20,
        1e21,
        1e22,
        1e308,
        -1e308,
        123_456_789.123_456_79,
        1e-7,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        f64::EPSILON,
        f64::from_bits(1),                     // the smallest
        f64::from_bits(0x000F_FFFF_FFFF_FFFF), // the largest subnormal one
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    let dates = [
        "1601-01-01T00:00:00Z",
        "1601-01-01T00:00:00.0000001Z",
        "1899-12-31T23:59:59.9999999Z",
        "1969-12-31T23:59:59.9999999Z",
        "1970-01-01T00:00:00Z",
        "2000-02-29T12:30:45.123Z",
        "2024-03-15T10:20:30.1234567Z",
        "2024-03-15T10:20:30.1234560Z",
        "2024-03-15T10:20:30.0000001Z",
        "2024-03-15T10:20:30.9999999Z",
        "9999-12-31T23:59:59.9999999Z",
    ];
    let guids = [[0; 16], [0xFF; 16], *b"0123456789abcdef"];
    let binaries = [
        Vec::new(),
        vec![0],
        (0..=255).collect(),
        vec![0xFF; 65_536],
        b"\r\n--batch_\r\n\r\n".to_vec(),
    ];
    let texts = [
        String::new(),
        " ".to_owned(),
        "  spaces around ".to_owned(),
        "\"quoted\" \\ / 'single' & <b>]]></b> %41 +".to_owned(),
        "line\r\nline\n\ttab".to_owned(),
        // Controls, which XML forbids and JSON does not.
        (0_u8..0x20).map(char::from).collect(),
        "\u{7F}\u{80}\u{9F}\u{A0}\u{AD}".to_owned(),
        "\u{2028}\u{2029}\u{200B}\u{FEFF}".to_owned(),
        "\u{FFFD}\u{FFFE}\u{FFFF}\u{FDD0}".to_owned(),
        // On both sides of the surrogates, and what needs two of them.
        "\u{D7FF}\u{E000}\u{10000}\u{10FFFF}\u{1FFFE}".to_owned(),
        "🦀 👩‍👩‍👧 é e\u{301} Ａ".to_owned(),
        // The longest string: 32,768 UTF-16 units, by characters of one, two, three and four bytes.
        "x".repeat(32_768),
        "é".repeat(32_768),
        "東".repeat(32_768),
        "🦀".repeat(16_384),
        // The longest string in JSON.
        "\u{1}".repeat(32_768),
        // What looks like another type.
        "5".to_owned(),
        "NaN".to_owned(),
        "true".to_owned(),
        "null".to_owned(),
        "2024-03-15T10:20:30Z".to_owned(),
        "c9da6455-213d-42c9-9a79-3e9149a57833".to_owned(),
    ];
    let date = |text: &str| Value::DateTime(text.parse::<Timestamp>().expect("a date"));
    booleans
        .into_iter()
        .chain(int32)
        .chain(int64.map(Value::Int64))
        .chain(doubles.map(Value::Double))
        .chain(dates.map(date))
        .chain(guids.map(|bytes| Value::Guid(Guid::from_bytes(bytes))))
        .chain(binaries.map(Value::Binary))
        .chain(texts.map(Value::String))
}
