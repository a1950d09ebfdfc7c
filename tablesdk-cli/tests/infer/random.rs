//! Modules of random tables: all are source that rustfmt leaves as it is, and some are compiled and
//! read their tables.
//!
//! `TABLESDK_INFER_SEED` is the seed of another run, and `TABLESDK_INFER_TABLES` the number of
//! tables that are compiled.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::process::Command;
use std::{env, fs};

use fastrand::Rng;
use tablesdk::{DynamicEntity, Guid, Timestamp, Value};
use tablesdk_cli::infer::Sample;
use tablesdk_cli::lines::Line;

#[test]
fn modules_of_random_tables_are_formatted_source() {
    let seed = seed();
    println!("TABLESDK_INFER_SEED={seed}");
    let mut random = Rng::with_seed(seed);
    let directory = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for number in 0..300 {
        let sample = sample(&entities(&mut random));
        let source = sample.module("Random", None).unwrap().to_string();
        let file = syn::parse_file(&source);
        let file = file.unwrap_or_else(|error| panic!("table {number}: {error}\n{source}"));
        let structs = file.items.iter().filter_map(|item| match item {
            syn::Item::Struct(one) => Some(one),
            _ => None,
        });
        let mut names = HashSet::new();
        for one in structs {
            assert!(
                names.insert(one.ident.to_string()),
                "table {number}\n{source}"
            );
            let fields = one.fields.iter().filter_map(|field| field.ident.as_ref());
            let unique: HashSet<_> = fields.clone().map(ToString::to_string).collect();
            assert_eq!(unique.len(), fields.count(), "table {number}\n{source}");
        }
        let file = directory.path().join(format!("{number}.rs"));
        fs::write(&file, source).unwrap();
        files.push(file);
    }
    let formatter = Command::new("rustfmt")
        .args(["--edition=2024", "--check"])
        .args(files)
        .output();
    match formatter {
        Ok(output) => {
            let differences = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{differences}");
        }
        Err(error) => println!("the format was not checked: {error}"),
    }
}

#[test]
fn modules_of_random_tables_are_compiled_and_read_them() {
    let seed = seed();
    println!("TABLESDK_INFER_SEED={seed}");
    let mut random = Rng::with_seed(seed);
    let count = env::var("TABLESDK_INFER_TABLES").map_or(6, |count| count.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let (mut modules, mut calls) = (String::new(), String::new());
    let mut lines = Vec::new();
    for number in 0..count {
        let entities = entities(&mut random);
        let sample = sample(&entities);
        let name = "Entity".parse().unwrap();
        let source = sample.module("Random", Some(name)).unwrap();
        write!(modules, "mod m{number} {{\n{source}}}\n").unwrap();
        write!(
            calls,
            "\"Table{number}\" => reads::<m{number}::Entity>(&entity),"
        )
        .unwrap();
        for entity in entities {
            let table = format!("Table{number}");
            Line::Entity { table, entity }.write(&mut lines);
        }
    }
    let (file, data) = (
        directory.path().join("main.rs"),
        directory.path().join("lines"),
    );
    fs::write(
        &file,
        format!(
            "#![allow(warnings)]\n{modules}{}",
            PROGRAM.replace("CALLS", &calls)
        ),
    )
    .unwrap();
    fs::write(&data, lines).unwrap();
    let program = directory.path().join("program");
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler)
        .args(["--edition=2024", "--color=never", "-Cdebuginfo=0"])
        .args(tablesdk_rustc_args::library_options!())
        .arg("-o")
        .args([&program, &file])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{modules}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let output = Command::new(program).arg(data).output().unwrap();
    assert!(
        output.status.success(),
        "{modules}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Reads each entity of a file as the struct of its table, and writes it under its key again.
const PROGRAM: &str = r#"
use tablesdk::{DynamicEntity, TableEntity, WritableEntity};
use tablesdk_cli::lines::Line;

fn reads<E: TableEntity + WritableEntity>(entity: &DynamicEntity) {
    let read = entity.to_entity::<E>();
    let read = read.unwrap_or_else(|error| panic!("{entity:?}: {error}"));
    let written = DynamicEntity::from_entity(&read).unwrap();
    let key = |entity: &DynamicEntity| (entity.partition_key().to_owned(), entity.row_key().to_owned());
    assert_eq!(key(&written), key(entity));
    assert_eq!(written.properties().iter().count(), entity.properties().iter().count(), "{entity:?}");
}

fn main() {
    let file = std::env::args().nth(1).unwrap();
    for line in std::fs::read_to_string(file).unwrap().lines() {
        let Ok(Line::Entity { table, entity }) = Line::read(line.as_bytes()) else {
            panic!("{line}");
        };
        match table.as_str() {
            CALLS
            _ => panic!("{line}"),
        };
    }
}
"#;

/// The seed of this run, to be printed.
fn seed() -> u64 {
    let seed = env::var("TABLESDK_INFER_SEED");
    seed.map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap())
}

fn sample(entities: &[DynamicEntity]) -> Sample {
    let mut sample = Sample::default();
    for entity in entities {
        sample.add(entity);
    }
    sample
}

/// The entities of a table: of up to three kinds, with keys in some form, and properties of any
/// types.
fn entities(random: &mut Rng) -> Vec<DynamicEntity> {
    let types = [("head", "Post"), ("item", "type"), ("Größe", "a \"b\" {c}")];
    let count = random.usize(1..=types.len());
    let kinds = types.into_iter().take(count);
    let kinds: Vec<_> = kinds
        .map(|(lead, label)| (lead, label, Kind::random(random)))
        .collect();
    let (by, property) = (
        random.u8(..3),
        pick(&["EntityType", "kind", "What"], random),
    );
    let mut entities = Vec::new();
    for number in 0..random.usize(1..40) {
        let (lead, label, kind) = random.choice(&kinds).unwrap();
        let mut row_key = key(kind.row_key, number, random);
        if by == 1 {
            row_key = format!("{lead}_{row_key}");
        }
        let mut entity = DynamicEntity::new(key(kind.partition_key, number / 4, random), row_key);
        if by == 2 && random.u8(..50) > 0 {
            entity.properties_mut().set(property, *label);
        }
        for property in &kind.properties {
            if random.f32() < property.share {
                let value = value(pick(&property.forms, random), random);
                entity.properties_mut().set(property.name.clone(), value);
            }
        }
        entities.push(entity);
    }
    entities
}

fn pick<T: Copy>(items: &[T], random: &mut Rng) -> T {
    *random.choice(items).unwrap()
}

struct Kind {
    partition_key: u8,
    row_key: u8,
    properties: Vec<Property>,
}

struct Property {
    name: String,
    share: f32,
    /// The types of the values: one for most properties.
    forms: Vec<u8>,
}

impl Kind {
    fn random(random: &mut Rng) -> Self {
        let count = if random.u8(..20) == 0 {
            300
        } else {
            random.usize(..8)
        };
        let properties = (0..count).map(|number| Property::random(count == 300, number, random));
        let properties = properties.collect();
        Self {
            partition_key: random.u8(..FORMS),
            row_key: random.u8(..FORMS),
            properties,
        }
    }
}

impl Property {
    fn random(is_one_of_many: bool, number: usize, random: &mut Rng) -> Self {
        let share = pick(&[1.0, 1.0, 0.5, 0.1], random);
        let (name, share) = if is_one_of_many {
            (format!("P{number}"), share * 0.7)
        } else {
            (name(random), share)
        };
        let forms = if random.u8(..4) == 0 { 2 } else { 1 };
        Self {
            name,
            share,
            forms: (0..forms).map(|_| random.u8(..8)).collect(),
        }
    }
}

/// A name that a property of the service may have.
fn name(random: &mut Rng) -> String {
    let names = [
        "type",
        "Name",
        "name",
        "FirstName",
        "first_name",
        "self",
        "_",
        "Größe",
        "名前",
        "a\u{202e}b",
        "ETag",
        "PartitionKey_",
        "row_key",
        "Other",
        "EntityTypes",
        "CreatedAt",
        "unitPrice",
    ];
    if random.bool() {
        return pick(&names, random).to_owned();
    }
    let letters: Vec<_> = "aBcXyZ_09äßΩ".chars().collect();
    let rest = (0..random.usize(..12)).map(|_| pick(&letters, random));
    ['x'].into_iter().chain(rest).collect()
}

fn value(form: u8, random: &mut Rng) -> Value {
    match form {
        0 => Value::Boolean(random.bool()),
        1 => Value::Int32(random.i32(..)),
        2 => Value::Int64(random.i64(..)),
        3 => Value::Double(pick(&[1.5, f64::NAN, f64::INFINITY, -0.0, 1e300], random)),
        4 => Value::DateTime(Timestamp::from_unix_ticks(random.i64(0..1 << 54)).unwrap()),
        5 => Value::Guid(Guid::from_bytes(random.u128(..).to_be_bytes())),
        6 => Value::Binary(vec![1; random.usize(..3)]),
        _ => Value::String(
            pick(&["", "open", "closed", "`*/\n\u{202e}", "a\"b\\"], random).to_owned(),
        ),
    }
}

/// A key of some form, which each number has in another way.
fn key(form: u8, number: usize, random: &mut Rng) -> String {
    let word = pick(
        &[
            "ann", "bob", "Größe", "a=2Fb", "{x}", "", "100%", "a_b", "eu-west", "x y",
        ],
        random,
    );
    let tick = 2_517_000_000_000_000_000_u64 + number as u64;
    match form {
        0 => number.to_string(),
        1 => format!("{number:06}"),
        2 => format!("empid_{number:06}"),
        3 => format!("{word}_{number:03}"),
        4 => format!("{number:03}|{word}"),
        5 => format!("{word}{number}"),
        6 => Guid::from_bytes((number as u128).to_be_bytes()).to_string(),
        7 => format!("{tick:019}_{number:04}"),
        8 => format!("2024-03-{:02}_{number}", 1 + number % 28),
        9 => format!("log.2024-03-15T10:20:{:02}.0000000Z", number % 60),
        10 => format!("{}-{:02}:{number}", 2000 + number, 1 + number % 12),
        11 => format!("{word}|{word}|{number}"),
        12 => format!("{number:025}"),
        13 => format!("v{number:02}.{word}"),
        14 => "same".to_owned(),
        15 => format!("{number:02}"),
        _ => format!("{word}:=2F{number}"),
    }
}

const FORMS: u8 = 17;
