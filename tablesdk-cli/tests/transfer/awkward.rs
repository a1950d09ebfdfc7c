//! Entities that are hard to transfer: every EDM type at its limits, and every key that a URL, a
//! batch or a file could damage.

use tablesdk::{DynamicEntity, Guid, Properties, Timestamp, Value};

/// Keys that the service takes.
pub(crate) fn keys() -> Vec<String> {
    let mut keys: Vec<String> = [
        "",
        " ",
        "  a  ",
        "a b",
        "'",
        "''",
        "a'b",
        "\"",
        "%",
        "%25",
        "%2F",
        "%%",
        "+",
        "a+b",
        "&",
        "=",
        "a=b&c",
        ";",
        ",",
        "a,b",
        "(",
        ")",
        "()",
        "PartitionKey='a',RowKey='b'",
        "$batch",
        "$filter",
        "@",
        ":",
        "*",
        "<>",
        "|",
        "[x]",
        "{x}",
        "`",
        "^",
        "~",
        "!",
        ".",
        "..",
        "...",
        "-",
        "--batch",
        "_",
        "a",
        "A",
        "aa",
        "0",
        "00",
        "é",
        "e\u{301}",
        "ß",
        "中文",
        "\u{1F600}",
        "\u{E000}",
        "\u{FFFD}",
        "\u{10FFFF}",
        "\u{A0}",
        "\u{200B}",
        "null",
        "true",
    ]
    .map(str::to_owned)
    .to_vec();
    keys.push("k".repeat(512));
    keys.push("\u{1F600}".repeat(256));
    keys
}

/// Values of every type.
pub(crate) fn values() -> Vec<(&'static str, Value)> {
    let at = |text: &str| Value::DateTime(text.parse::<Timestamp>().unwrap());
    let guid = |text: &str| Value::Guid(text.parse::<Guid>().unwrap());
    let mut values = vec![
        ("BooleanTrue", Value::Boolean(true)),
        ("BooleanFalse", Value::Boolean(false)),
        ("Int32Zero", Value::Int32(0)),
        ("Int32Min", Value::Int32(i32::MIN)),
        ("Int32Max", Value::Int32(i32::MAX)),
        ("Int64Zero", Value::Int64(0)),
        ("Int64Small", Value::Int64(7)),
        ("Int64Min", Value::Int64(i64::MIN)),
        ("Int64Max", Value::Int64(i64::MAX)),
        ("DoubleWhole", Value::Double(5.0)),
        ("DoubleZero", Value::Double(0.0)),
        ("DoubleMinusZero", Value::Double(-0.0)),
        ("DoubleThird", Value::Double(1.0 / 3.0)),
        ("DoubleMin", Value::Double(f64::MIN)),
        ("DoubleMax", Value::Double(f64::MAX)),
        ("DoubleTiny", Value::Double(5e-324)),
        ("DoubleNan", Value::Double(f64::NAN)),
        ("DoubleInfinity", Value::Double(f64::INFINITY)),
        ("DoubleMinusInfinity", Value::Double(f64::NEG_INFINITY)),
        ("DateMin", at("1601-01-01T00:00:00Z")),
        ("DateMax", at("9999-12-31T23:59:59.9999999Z")),
        ("DateTicks", at("2021-01-19T17:08:02.4069791Z")),
        ("DateWhole", at("2021-01-19T17:08:02Z")),
        ("GuidNil", guid("00000000-0000-0000-0000-000000000000")),
        ("GuidAny", guid("c9da6455-213d-42c9-9a79-3e9149a57833")),
        ("BinaryEmpty", Value::Binary(Vec::new())),
        ("BinaryBytes", Value::Binary((0..=255).collect())),
        ("BinaryLong", Value::Binary(vec![0xFF; 64 * 1024])),
        ("StringEmpty", Value::from("")),
        ("StringDate", Value::from("2021-01-19T17:08:02Z")),
        ("StringNumber", Value::from("12")),
        ("StringQuotes", Value::from("\"'\\/`")),
        ("StringLines", Value::from("a\nb\r\nc\td\u{2028}e\u{85}")),
        (
            "StringUnicode",
            Value::from("é 中文 \u{1F600} \u{E000} \u{10FFFF} \u{FEFF}"),
        ),
        ("StringMarkup", Value::from("<a href=\"x\">&amp;</a>]]>")),
        ("StringSpaces", Value::from("  a  ")),
        ("StringLong", Value::from("x".repeat(32 * 1024))),
    ];
    values.push(("StringControls", Value::from("\u{1}\u{8}\u{C}\u{1F}\u{7F}")));
    values
}

/// Tables by name: an empty one, one of every key, and one of every value.
pub(crate) fn tables() -> Vec<(&'static str, Vec<DynamicEntity>)> {
    let keys = keys();
    let one = |partition: &str, row: &str| {
        let mut entity = DynamicEntity::new(partition, row);
        entity.properties_mut().set("P", partition);
        entity.properties_mut().set("R", row);
        entity
    };
    // Each key in its own partition, and all of them in one: single writes and batches.
    let apart = keys.iter().map(|key| one(key, key));
    let together = keys.iter().map(|key| one("all of them", key));
    let mut by_key: Vec<_> = apart.chain(together).collect();
    by_key.push(DynamicEntity::new("bare", "bare"));

    let mut typed: Vec<_> = values()
        .into_iter()
        .map(|(name, value)| {
            let properties = [(name, value)].into_iter().collect::<Properties>();
            DynamicEntity::new("types", name).with_properties(properties)
        })
        .collect();
    let all = values()
        .into_iter()
        .filter(|(name, _)| !name.ends_with("Long"));
    typed.push(DynamicEntity::new("together", "values").with_properties(all.collect()));
    let many = (0..252).map(|index| (format!("Property{index:03}"), Value::Int32(index)));
    typed.push(DynamicEntity::new("together", "many").with_properties(many.collect()));
    let names = [
        "a",
        "A",
        "_",
        "größe",
        "属性",
        "value",
        "odata",
        "table",
        "entity",
        "Partitionkey",
    ];
    let names = names
        .into_iter()
        .map(|name| (name, name))
        .collect::<Properties>();
    typed.push(DynamicEntity::new("together", "names").with_properties(names));
    vec![
        ("TransferEmpty", Vec::new()),
        ("TransferKeys", by_key),
        ("TransferTypes", typed),
    ]
}
