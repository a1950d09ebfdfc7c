//! The lists of differences are complete: that of Azurite agrees with the guide `emulators`, and
//! both name tests that exist.

use harness::azurite::DIFFERENCES;
use harness::cosmos_db;
use harness::elsewhere::{Difference, Known};

/// The table of the guide has one line for each difference, and no other.
#[test]
fn the_guide_lists_the_differences() {
    let guide = include_str!("../../../tablesdk/src/guide/emulators.md");
    let rows = guide.lines().filter(|line| line.starts_with("| "));
    let told: Vec<_> = rows.skip(1).map(str::to_owned).collect();
    let expected = DIFFERENCES.list.iter().map(|difference| {
        let Difference {
            matter,
            elsewhere,
            service,
            ..
        } = difference;
        let known = match difference.known {
            Known::Recorded(_) => "recorded",
            Known::Documented(_) => "documented",
            Known::Unsure(_) => "unsure",
        };
        format!("| {matter} | {elsewhere} | {service} | {known} |")
    });
    assert_eq!(told, expected.collect::<Vec<_>>());
}

/// Without its test, an obsolete difference would not be found.
#[test]
fn every_difference_has_tests() {
    for difference in DIFFERENCES.list.iter().chain(cosmos_db::DIFFERENCES.list) {
        assert!(!difference.tests.is_empty(), "{}", difference.matter);
        for (test, _) in difference.tests {
            let (module, test) = test.rsplit_once("::").unwrap();
            let module = module.replace("::", "/");
            let file = format!("{}/client/{module}.rs", env!("CARGO_MANIFEST_DIR"));
            let source = std::fs::read_to_string(file).unwrap();
            let signature = format!("    async fn {test}(subject: Subject)");
            assert!(source.contains(&signature), "{module}: {test}");
        }
    }
}
